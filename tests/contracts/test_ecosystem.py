"""Test that other libraries predict from a pruned model what it predicts itself."""

import ctypes
import shutil
import subprocess
from functools import lru_cache

import m2cgen
import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier, is_regressor
from sklearn.calibration import calibration_curve
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.metrics import brier_score_loss, log_loss, mean_absolute_error, r2_score, roc_auc_score
from tests.cases import ALL_RECIPES, adapter_of, case
from tests.contracts.ecosystem import TOOLS, matches, with_missing_values
from tests.in_one_test import for_each

import secateur as sc

pytestmark = pytest.mark.contracts
NAMES = [name for name in ALL_RECIPES if not name.startswith("spark")]


@lru_cache(maxsize=1)
def pruned(name):
    """Return the middle of the path of the default solver, whose values are refitted where the library allows it."""
    c = case(name)
    path = sc.prune_path(adapter_of(name), c.X, c.y, sample_weight=c.sample_weight)
    return path[len(path) // 2]


@pytest.mark.filterwarnings("ignore::secateur.errors.UnknownObjectiveWarning")
@pytest.mark.parametrize("name", NAMES)
@for_each("library", TOOLS)
def test_another_library_predicts_as_the_pruned_model_does_or_reads_neither_model(library, name):
    tool, c = TOOLS[library], case(name)
    if adapter_of(name).library not in tool.libraries or (library == "skl2onnx" and with_missing_values(name)):
        return
    small = pruned(name).to_model()
    if matches(name, tool.exceptions):
        assert tool.fails(c.model, c) or not tool.fails(small, c), "only the pruned model is not read"
    elif not matches(name, tool.once_pruned):
        tool.check(small, c)


@for_each("library", TOOLS)
def test_every_exception_is_about_a_model(library):
    for pattern in {**TOOLS[library].exceptions, **TOOLS[library].once_pruned}:
        assert any(matches(name, [pattern]) for name in NAMES), pattern


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_the_c_code_of_m2cgen_predicts_as_the_pruned_model_does(tmp_path):
    small, X = pruned("random forest regressor").to_model(), case("random forest regressor").X
    (tmp_path / "model.c").write_text(m2cgen.export_to_c(small))
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "model.c", "-o", "model.so"], cwd=tmp_path, check=True)
    score = ctypes.CDLL(str(tmp_path / "model.so")).score
    score.restype = ctypes.c_double
    rows = np.ascontiguousarray(X, np.float32).astype(np.float64)
    found = [score(row.ctypes.data_as(ctypes.POINTER(ctypes.c_double))) for row in rows]
    np.testing.assert_allclose(found, small.predict(X), rtol=1e-13)


class Ours(BaseEstimator):
    """A pruned model as an estimator of scikit-learn, which predicts with our arrays."""

    def __init__(self, pruned):
        self.pruned = pruned

    def __sklearn_is_fitted__(self):
        return True

    def fit(self, X, y):
        return self

    def predict(self, X):
        return self.pruned.predict(X)


class OurRegressor(RegressorMixin, Ours):
    pass


class OurClassifier(ClassifierMixin, Ours):
    @property
    def classes_(self):
        return self.pruned.original.model.classes_

    def predict_proba(self, X):
        return self.pruned.predict_proba(X)


def is_measured(name):
    """Return whether metrics of one target apply to the unpruned model: numbers, or one distribution over classes."""
    c = case(name)
    answer = c.predictions(c.model, c.X)
    if not hasattr(c.model, "get_params") or "ranker" in name or answer["predict"].ndim > 1:
        return False
    if is_regressor(c.model):
        return True
    proba = answer.get("predict_proba")
    return isinstance(proba, np.ndarray) and proba.min() >= 0 and np.allclose(proba.sum(axis=1), 1)


@pytest.mark.filterwarnings("ignore::secateur.errors.UnknownObjectiveWarning")
@pytest.mark.parametrize("name", NAMES)
def test_functions_of_scikit_learn_find_the_same_for_the_pruned_model_and_for_our_arrays(name):
    if not is_measured(name):
        return
    c, small = case(name), pruned(name).to_model()
    models = [small, (OurClassifier if is_classifier(small) else OurRegressor)(pruned(name))]
    measured = [(classification if is_classifier(small) else regression)(model, c) for model in models]
    importance = [permutation_importance(m, c.X, c.y, n_repeats=1, random_state=0).importances for m in models]
    for found, expected in [*zip(*measured, strict=True), importance]:
        assert np.array_equal(found, expected)
    if isinstance(c.X, np.ndarray):  # the means of columns of arrays in another order differ in the last digit
        drawn = [partial_dependence(m, c.X, [0], method="brute", grid_resolution=4).average for m in models]
        np.testing.assert_allclose(*drawn, rtol=1e-6 if adapter_of(name).library == "xgboost" else 1e-13)


def regression(model, c):
    prediction = model.predict(c.X)
    return [r2_score(c.y, prediction), mean_absolute_error(c.y, prediction)]


def classification(model, c):
    """Return metrics of probabilities; all but the area under the curve refuse what is no distribution."""
    y, proba = np.searchsorted(model.classes_, c.y), model.predict_proba(c.X)
    if proba.shape[1] > 2:
        return [log_loss(y, proba), roc_auc_score(y, proba, multi_class="ovr")]
    one = proba[:, 1]
    return [log_loss(y, proba), roc_auc_score(y, one), brier_score_loss(y, one), *calibration_curve(y, one)]
