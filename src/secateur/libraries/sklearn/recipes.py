"""Say how to prune scikit-learn estimators that contain tree models but are none: meta-estimators by class name."""

_MEMBERS = "model.estimators_ = [secateur.prune(member, X, {y}) for member in model.estimators_]"
_INSIDE = "model.{name} = secateur.prune(model.{name}, X, {y})"
_ENCODED = "model.le_.transform(y)"

RECIPES = {
    "VotingClassifier": _MEMBERS.format(y=_ENCODED),
    "VotingRegressor": _MEMBERS.format(y="y"),
    "StackingClassifier": "StackingClassifier([(name, secateur.prune(member, X, y)) for name, member in fitted], "
    "cv='prefit').fit(X, y), where `fitted` are the names and fitted members",
    "StackingRegressor": "StackingRegressor([(name, secateur.prune(member, X, y)) for name, member in fitted], "
    "cv='prefit').fit(X, y), where `fitted` are the names and fitted members",
    "CalibratedClassifierCV": "CalibratedClassifierCV(FrozenEstimator(secateur.prune(fitted, X, y))).fit(X, y), where "
    "`fitted` is the fitted classifier",
    "OneVsRestClassifier": "model.estimators_ = [secateur.prune(member, X, y == label) "
    "for member, label in zip(model.estimators_, model.classes_)]",
    "MultiOutputClassifier": "model.estimators_ = [secateur.prune(member, X, y[:, k]) "
    "for k, member in enumerate(model.estimators_)]",
    "MultiOutputRegressor": "model.estimators_ = [secateur.prune(member, X, y[:, k]) "
    "for k, member in enumerate(model.estimators_)]",
    "TransformedTargetRegressor": _INSIDE.format(
        name="regressor_", y="model.transformer_.transform(y.reshape(-1, 1)).ravel()"
    ),
    "TunedThresholdClassifierCV": _INSIDE.format(name="estimator_", y="y"),
    "FixedThresholdClassifier": _INSIDE.format(name="estimator_", y="y"),
    "FrozenEstimator": "secateur.prune(model.estimator, X, y)",
    "PrunedClassifier": "secateur.prune(model.estimator_, X, y)",
    "PrunedRegressor": "secateur.prune(model.estimator_, X, y)",
}
"""Code that prunes the tree models inside, where `model` is the estimator and X, y are rows it was not trained on."""
