"""Refused meta-estimators: the message has code that prunes the trees inside, and the code runs."""

import re

import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_diabetes, load_wine
from sklearn.ensemble import (
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.preprocessing import StandardScaler

import secateur as sc
from secateur.errors import UnsupportedModelError
from secateur.libraries.sklearn.recipes import RECIPES

CLASSIFIER, REGRESSOR = RandomForestClassifier(8, random_state=0), RandomForestRegressor(8, random_state=0)
MODELS = {
    "VotingClassifier": VotingClassifier([("a", CLASSIFIER), ("b", CLASSIFIER)], voting="soft"),
    "VotingRegressor": VotingRegressor([("a", REGRESSOR), ("b", REGRESSOR)]),
    "StackingClassifier": StackingClassifier([("a", CLASSIFIER)], final_estimator=CLASSIFIER),
    "StackingRegressor": StackingRegressor([("a", REGRESSOR)], final_estimator=REGRESSOR),
    "CalibratedClassifierCV": CalibratedClassifierCV(CLASSIFIER),
    "OneVsRestClassifier": OneVsRestClassifier(CLASSIFIER),
    "MultiOutputClassifier": MultiOutputClassifier(CLASSIFIER),
    "MultiOutputRegressor": MultiOutputRegressor(REGRESSOR),
    "TransformedTargetRegressor": TransformedTargetRegressor(REGRESSOR, transformer=StandardScaler()),
    "TunedThresholdClassifierCV": TunedThresholdClassifierCV(CLASSIFIER),
    "FixedThresholdClassifier": FixedThresholdClassifier(CLASSIFIER),
    "FrozenEstimator": FrozenEstimator(CLASSIFIER),
    "PrunedClassifier": sc.PrunedClassifier(CLASSIFIER, max_nodes=60),
    "PrunedRegressor": sc.PrunedRegressor(REGRESSOR, max_nodes=60),
}


def rows_of(name):
    """Return rows and targets of the kind that the estimator needs."""
    X, y = load_diabetes(return_X_y=True) if "Regress" in name else load_wine(return_X_y=True)
    if "Threshold" in name:
        y = (y > 0).astype(int)
    elif name in ("VotingClassifier", "StackingClassifier", "OneVsRestClassifier", "CalibratedClassifierCV"):
        y = load_wine().target_names[y]
    return X, y.repeat(2).reshape(-1, 2) if name.startswith("MultiOutput") else y


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(RECIPES))
def test_the_recipe_in_the_refusal_prunes_the_trees_inside(name):
    X, y = rows_of(name)
    fitted_model = CLASSIFIER if "Class" in name or name == "FrozenEstimator" else REGRESSOR
    inside = type(fitted_model)(8, random_state=0).fit(X[::2], y[::2])
    model = FrozenEstimator(inside) if name == "FrozenEstimator" else MODELS[name].fit(X[::2], y[::2])
    X, y = X[1::2], y[1::2]
    with pytest.raises(
        UnsupportedModelError, match=f"Got {name}, which is no tree model.*Prune these instead"
    ) as found:
        sc.prune(model, X, y)
    assert RECIPES[name] in str(found.value)
    code = RECIPES[name].partition(", where")[0]
    stacked = name.startswith("Stacking")
    names = {"secateur": sc, "model": model, "X": X, "y": y, "fitted": [("a", inside)] if stacked else inside}
    names |= {kind.__name__: kind for kind in (StackingClassifier, StackingRegressor, CalibratedClassifierCV)}
    names |= {"FrozenEstimator": FrozenEstimator}
    if re.match(r"model\.\w+ = ", code):
        exec(code, names)
        model.predict(X)
    else:
        assert eval(code, names).predict(X).shape[0] == len(y)


def test_a_model_file_is_opened(tmp_path):
    pytest.importorskip("skops")
    X, y = load_wine(return_X_y=True)
    model = RandomForestClassifier(5, random_state=0).fit(X[::2], y[::2])
    expected = sc.prune(model, X[1::2], y[1::2], max_nodes=30).predict_proba(X)
    from secateur.files.models import save_model

    for suffix, options in ((".skops", {}), (".joblib", {"trust": True})):
        file = save_model(model, tmp_path / f"model{suffix}")
        for name in (file, str(file)):
            small = sc.prune(name, X[1::2], y[1::2], max_nodes=30, **options)
            assert (small.predict_proba(X) == expected).all()
    assert len(sc.prune_path(tmp_path / "model.skops", X[1::2], y[1::2])) > 2
    with pytest.raises(ValueError, match="pass trust=True"):
        sc.prune(tmp_path / "model.joblib", X, y)
    with pytest.raises(FileNotFoundError, match="There is no file"):
        sc.prune(str(tmp_path / "missing.skops"), X, y)
