"""Build models with contradicting splits and equal leaves, and rows at their thresholds, to test simplify."""

import copy

import numpy as np
from tests.cases import case

METHODS = ("predict", "predict_proba", "score_samples", "decision_function")
MODES = ("exact", "probabilities", "labels")


def predictions(model, X):
    """Return all the arrays a model predicts, by method."""
    found = {method: getattr(model, method)(X) for method in METHODS if hasattr(model, method)}
    return {
        method: prediction if isinstance(prediction, list) else [prediction] for method, prediction in found.items()
    }


def assert_same(model, other, X, tolerance=None):
    for method, expected in predictions(model, X).items():
        for a, b in zip(expected, predictions(other, X)[method], strict=True):
            if tolerance is None or a.dtype.kind not in "f":
                assert np.array_equal(a, b), method
            else:
                np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=method)


def edge_rows(name, forest):
    """Return rows that hit thresholds, and are infinite where the model allows it."""
    X = case(name).X_new
    if hasattr(X, "iloc"):
        return X
    rng = np.random.default_rng(6)
    X = X.copy()
    for v in rng.permutation(np.flatnonzero(forest.is_split & np.isfinite(forest.threshold)))[:200]:
        X[rng.integers(len(X)), forest.feature[v]] = forest.threshold[v]
    if name.startswith("hist"):
        X[rng.random(X.shape) < 0.05] = np.inf
        X[rng.random(X.shape) < 0.05] = -np.inf
    return X


def tangled(name):
    """Return a copy of the model with so few features, thresholds and values that splits contradict each other."""
    model = copy.deepcopy(case(name).model)
    rng = np.random.default_rng(7)
    inner = getattr(model, "best_estimator_", model)
    inner = inner.steps[-1][1] if hasattr(inner, "steps") else inner
    for predictor in np.ravel(getattr(inner, "_predictors", [])):
        nodes = predictor.nodes
        nodes["num_threshold"] = rng.choice([-1.0, 0.0, 0.5], len(nodes))
        nodes["value"] = rng.choice([-0.2, 0.1], len(nodes))
    for tree in [e.tree_ for e in np.ravel(getattr(inner, "estimators_", [inner])) if hasattr(e, "tree_")]:
        split = np.flatnonzero(tree.children_left != -1)
        tree.feature[split] = rng.integers(0, 2, len(split))
        tree.threshold[split] = rng.choice([-1.0, 0.0, 0.1, 0.5], len(split))
        tree.value[:] = tree.value.round(1) if tree.value.shape[2] > 1 else rng.choice([1.0, 2.0], tree.value.shape)
    return model
