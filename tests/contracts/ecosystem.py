"""Predict with other libraries what a fitted model predicts; models that a library does not support, and why.

The exceptions are those of docs/deploy.md.
"""

import io
import pickle
import tempfile
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from fnmatch import fnmatch
from typing import Any

import cloudpickle
import joblib
import m2cgen
import mlflow.catboost
import mlflow.lightgbm
import mlflow.sklearn
import mlflow.xgboost
import numpy as np
import onnxruntime
import pandas as pd
import shap
import skl2onnx
import treelite
from tests.cases import case

from secateur.forest.routing import raw_scores, route
from secateur.libraries import adapt

Prediction = tuple[Any, Any]
"""What another library predicts, and what the model itself predicts."""


@dataclass(frozen=True)
class Tool:
    """A library that reads models and predicts.

    Attributes
    ----------
    predictions : callable
        `predictions(model, case)` returns pairs of predictions for the rows of training.
    tolerance : float
        Largest difference, relative to the largest prediction; 0 means equal bits.
    libraries : tuple of str
        Whose models it reads.
    exceptions : dict
        Patterns of names of models that it does not read, or reads wrongly, before they are pruned, and why.
    once_pruned : dict
        The same of models that it reads before they are pruned and not after.
    """

    predictions: Callable[[Any, Any], list[Prediction]]
    tolerance: float = 0.0
    libraries: tuple[str, ...] = ("sklearn", "xgboost", "lightgbm", "catboost")
    exceptions: dict[str, str] = field(default_factory=dict)
    once_pruned: dict[str, str] = field(default_factory=dict)

    def check(self, model: Any, case: Any) -> None:
        """Raise an error unless the library predicts as the model does."""
        for found, expected in self.predictions(model, case):
            if self.tolerance == 0:
                assert case.same(expected, found)
            else:
                tolerance = self.tolerance * max(1.0, np.abs(expected).max(initial=0.0))
                np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance, equal_nan=False)

    def fails(self, model: Any, case: Any) -> bool:
        """Return whether the library refuses the model or predicts otherwise."""
        try:
            self.check(model, case)
        except Exception:
            return True
        return False


def matches(name: str, patterns: Collection[str]) -> bool:
    """Return whether a name is that of one of the patterns."""
    return any(fnmatch(name, pattern) for pattern in patterns)


def pickled(model: Any, case: Any) -> list[Prediction]:
    """Return what a model predicts after pickle, joblib and cloudpickle."""
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    copies = [pickle.loads(pickle.dumps(model)), joblib.load(file), cloudpickle.loads(cloudpickle.dumps(model))]
    return [pair for copy in copies for pair in by_all_methods(copy, model, case)]


def by_all_methods(copy: Any, model: Any, case: Any) -> list[Prediction]:
    """Return what a copy of a model predicts by each method it has."""
    found, expected = case.predictions(copy, case.X), case.predictions(model, case.X)
    return [(found[method], expected[method]) for method in expected]


def by_mlflow(model: Any, case: Any) -> list[Prediction]:
    """Return what a model predicts after MLflow has saved and loaded it, as a model of its library."""
    library = adapt(model).library
    flavor = getattr(mlflow, library)
    options: dict[str, Any] = {"serialization_format": "cloudpickle"} if library == "sklearn" else {}
    with tempfile.TemporaryDirectory() as folder:
        flavor.save_model(model, f"{folder}/model", pip_requirements=[], **options)
        return by_all_methods(flavor.load_model(f"{folder}/model"), model, case)


def by_treelite(model: Any, case: Any) -> list[Prediction]:
    """Return what treelite's reference implementation, GTIL, predicts."""
    library, X = adapt(model).library, case.X
    if library == "sklearn":
        loaded = treelite.sklearn.import_model(model)
        X = np.asarray(X, np.float32).astype(np.float64)  # as scikit-learn itself rounds them
    elif library == "lightgbm":
        loaded = treelite.frontend.from_lightgbm(getattr(model, "booster_", model))
    else:
        loaded = treelite.frontend.from_xgboost(model.get_booster() if hasattr(model, "get_booster") else model)
    return [alike(treelite.gtil.predict(loaded, X), prediction(model, case, case.X))]


def by_m2cgen(model: Any, case: Any) -> list[Prediction]:
    """Return what the Python code of m2cgen predicts; it makes the same code in other languages."""
    model, X = last_step(model, case.X)
    code: dict[str, Any] = {}
    exec(m2cgen.export_to_python(model), code)
    return [alike([code["score"](row) for row in np.asarray(X).tolist()], prediction(model, case, X))]


def by_skl2onnx(model: Any, case: Any) -> list[Prediction]:
    """Return what ONNX Runtime predicts from the graph of skl2onnx; labels are compared by whether they are equal."""
    X = case.X.astype(np.float32)
    classifies = hasattr(model, "predict_proba")
    options = {id(model): {"zipmap": False}} if classifies else None
    graph = skl2onnx.to_onnx(model, X[:1], options=options, target_opset={"": 21, "ai.onnx.ml": 3})
    answer, *rest = onnxruntime.InferenceSession(graph.SerializeToString()).run(None, {"X": X})
    if hasattr(model, "score_samples"):
        return [alike(rest[0], model.decision_function(X))]
    if not classifies:
        return [alike(answer, model.predict(X))]
    return [alike(rest[0], prediction(model, case, X)), ((answer == model.predict(X)) * 1.0, np.ones(len(X)))]


def by_shap(model: Any, case: Any) -> list[Prediction]:
    """Return the sums of SHAP values and their expectation, which must be the raw predictions."""
    model, X = last_step(model, case.X[:20])
    explainer = shap.TreeExplainer(model)
    values = np.asarray(explainer.shap_values(X, check_additivity=False))
    found = values.sum(axis=1) + explainer.expected_value
    adapter = adapt(model)
    raw = raw_scores(adapter.forest, route(adapter.forest, adapter.rows(X)))
    if adapter.library == "lightgbm" and adapter.forest.aggregation == "mean":
        raw = raw * adapter.forest.divisor  # LightGBM explains the sum
    return [(found.reshape(raw.shape), raw)]


def last_step(model: Any, X: Any) -> tuple[Any, Any]:
    """Return the model at the end of a pipeline or search, and the rows it is given."""
    model = getattr(model, "best_estimator_", model)
    return (model[-1], model[:-1].transform(X)) if hasattr(model, "steps") else (model, X)


def prediction(model: Any, case: Any, X: Any) -> Any:
    """Return probabilities, where the model has them, or predictions; classes of several targets side by side."""
    found = case.predictions(model, X)
    if "score_samples" in found:
        return -found["score_samples"]
    answer = found.get("predict_proba", found["predict"])
    if isinstance(answer, list):
        width = max(block.shape[1] for block in answer)
        answer = np.stack([np.pad(block, ((0, 0), (0, width - block.shape[1]))) for block in answer], axis=1)
    return answer


def alike(found: Any, expected: Any) -> Prediction:
    """Give what another library predicts the form of the model's own prediction: one column per class, or labels."""
    found = np.asarray(found, np.float64)
    if expected.size == 2 * len(found) and found.size == len(found):
        found = np.column_stack([1 - found.ravel(), found.ravel()])
    if found.size > expected.size:
        found = found.argmax(axis=-1)
    return found.reshape(expected.shape), expected


def with_missing_values(name: str) -> bool:
    """Return whether a model was trained on missing values or on categories; skl2onnx hangs on some of these."""
    return bool(pd.isna(case(name).X).any(axis=None))


NOT_IN_GRAPH = {
    "tree classifier, several targets": "probabilities of targets with different numbers of classes are not stacked",
    "random forest classifier, several targets": "the same",
    "bagging classifier, few rows": "trees that saw different classes are not stacked",
    "gradient boosting *, on another model": "`init` must not be an estimator",
    "gradient boosting classifier, from zero": "`init` must not be 'zero'",
    "hist boosting *": "numbers of nodes have a type that onnx 1.23 refuses",
}
NOT_IN_TREELITE = {
    "tree *": "single trees are not read",
    "extra tree *": "single trees are not read",
    "bagging *": "`Bagging*` is not read",
    "adaboost *": "`AdaBoost*` is not read",
    "pipeline": "pass the last step",
    "search": "pass the last step of the best estimator",
    "gradient boosting classifier, exponential": "its probabilities are twice as steep",
    "gradient boosting *, on another model": "`init` must not be an estimator",
    "hist boosting classifier, categories": "it predicts from matrices of numbers",
    "lightgbm classifier, table": "it predicts from matrices of numbers",
    "lightgbm booster*, zero as missing": "`zero_as_missing` is ignored",
    "lightgbm classifier, own objective": "several classes need LightGBM's own objective",
    "xgboost_regressor_missing": "a number for `missing` is not in the Booster",
    "xgboost_booster_no_trees": "a model without trees predicts no base score",
    "xgboost_categories*": "tables with categories are not read",
}
NOT_IN_M2CGEN = {
    "xgboost_*": "m2cgen 0.10 knows no base score that XGBoost has estimated",
    "*booster, *": "boosters need a wrapper",
    "lightgbm ranker": "rankers are not read",
    "lightgbm classifier, cross entropy": "an objective it does not know",
    "lightgbm classifier, two classes as many": "an objective it does not know",
    "lightgbm classifier, own objective": "an objective it does not know",
    "lightgbm classifier, categories": "categorical splits are not read",
    "lightgbm classifier, table": "categorical splits are not read",
    "bagging *": "`Bagging*` is not read",
    "gradient boosting *": "`GradientBoosting*` is not read",
    "hist boosting *": "`HistGradientBoosting*` is not read",
    "adaboost *": "`AdaBoost*` is not read",
    "isolation forest*": "`IsolationForest` is not read",
    "*, missing values": "missing values go right in its code",
    "extra tree regressor": "trained on missing values, which go right in its code",
    "extra trees classifier": "trained on missing values, which go right in its code",
    "*, several targets": "several targets are not read",
}
NOT_IN_SHAP = {
    "bagging *": "`Bagging*` is not read",
    "adaboost *": "`AdaBoost*` is not read",
    "* classifier, several targets": "it explains the mean of the targets",
    "isolation forest*": "it explains the length of paths, not the score",
    "gradient boosting classifier, three classes": "`GradientBoostingClassifier` must have two classes",
    "gradient boosting classifier, from zero": "`GradientBoostingClassifier` must have two classes",
    "gradient boosting *, on another model": "`init` must not be an estimator",
    "gradient boosting classifier, exponential": "the expected value is that of another link",
    "hist boosting classifier, categories": "it reads matrices of numbers",
    "xgboost_booster_no_trees": "there is no tree to explain",
    "catboost embedding": "embeddings are not read",
    "catboost regressor, scale": "CatBoost refuses models with a scale",
    "catboost regressor, uncertainty": "CatBoost explains the first output",
    "catboost *, by leaf": "CatBoost's values of trees with branches of different lengths do not add up",
    "catboost regressor, by depth": "the same",
}
IN_OLD_VERSIONS = {
    "treelite": {
        "random forest classifier, missing values": "trees trained on missing values, before treelite 4.8",
        "extra trees classifier": "the same",
        "isolation forest*": "the length of paths, before treelite 4.8",
        "hist boosting regressor, poisson": "the link, before treelite 4.8",
        "xgboost_booster_absolute": "an objective unknown before treelite 4.8",
        "xgboost_booster_quantile*": "an objective unknown before treelite 4.8",
    },
    "skl2onnx": {"gradient boosting classifier, exponential": "a loss unknown before skl2onnx 1.20"},
    "shap": {
        "*, missing values": "trees trained on missing values, before SHAP 0.51",
        "extra tree regressor": "the same",
        "extra trees classifier": "the same",
        "lightgbm booster, from text": "a Booster without parameters, before SHAP 0.51",
    },
}
"""What the versions in tests/oldest.txt do not read, or read wrongly."""
NO_CATBOOST = ("sklearn", "xgboost", "lightgbm")
TOOLS = {
    "pickle, joblib, cloudpickle": Tool(pickled),
    "mlflow": Tool(
        by_mlflow,
        exceptions={
            "xgboost_regressor_missing": "the format of Boosters has no place for `missing`",
            "lightgbm ranker": "skops needs skops_trusted_types",
            "lightgbm *, own objective": "skops needs skops_trusted_types",
        },
    ),
    "treelite": Tool(
        by_treelite, 1e-6, ("sklearn", "xgboost", "lightgbm"), NOT_IN_TREELITE | IN_OLD_VERSIONS["treelite"]
    ),
    "m2cgen": Tool(by_m2cgen, 1e-12, NO_CATBOOST, NOT_IN_M2CGEN),
    "skl2onnx": Tool(by_skl2onnx, 1e-6, ("sklearn",), NOT_IN_GRAPH | IN_OLD_VERSIONS["skl2onnx"]),
    "shap": Tool(
        by_shap,
        1e-6,
        exceptions=NOT_IN_SHAP | IN_OLD_VERSIONS["shap"],
        once_pruned={"catboost *, by depth": "pruned trees have branches of different lengths: see by leaf"},
    ),
}
