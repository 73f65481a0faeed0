"""Smoothed leaf values against their definitions, computed from the training rows."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier

import secateur as sc


def shrunk(tree, node_value, v, m, parent):
    """Return the value of a node by hierarchical shrinkage, from its definition."""
    if parent[v] < 0:
        return node_value[v]
    rows = tree.weighted_n_node_samples[parent[v]]
    return shrunk(tree, node_value, parent[v], m, parent) + (node_value[v] - node_value[parent[v]]) / (1 + m / rows)


def parents(tree):
    parent = np.full(tree.node_count, -1)
    for side in (tree.children_left, tree.children_right):
        parent[side[side >= 0]] = np.flatnonzero(side >= 0)
    return parent


@pytest.mark.parametrize("m", [0.0, 1.0, 30.0])
def test_leaves_are_fitted_with_m_rows_of_the_prior(m):
    X, y = load_iris(return_X_y=True)
    X, weight = X[:, :2], np.random.default_rng(0).integers(1, 4, len(y))
    tree = DecisionTreeClassifier(max_depth=5, random_state=0).fit(X, y, weight)
    leaf = tree.apply(X)
    counts = np.array([np.bincount(y[leaf == v], weight[leaf == v], 3) for v in leaf])
    rows, prior = counts.sum(axis=1, keepdims=True), np.bincount(y, weight) / weight.sum()
    smoothed = {method: sc.smooth(tree, method=method, m=m) for method in ("m_estimate", "laplace", "hierarchical")}
    np.testing.assert_allclose(smoothed["m_estimate"].predict_proba(X), (counts + m * prior) / (rows + m), rtol=1e-12)
    np.testing.assert_allclose(smoothed["laplace"].predict_proba(X), (counts + m / 3) / (rows + m), rtol=1e-12)
    native = tree.tree_
    expected = [shrunk(native, native.value[:, 0], v, m, parents(native)) for v in leaf]
    np.testing.assert_allclose(smoothed["hierarchical"].predict_proba(X), expected, rtol=1e-12)


def test_trees_of_a_forest_are_shrunk_by_the_rows_of_their_bags():
    X, y = load_diabetes(return_X_y=True)
    forest = RandomForestRegressor(5, min_samples_leaf=3, random_state=0).fit(X, y)
    expected = np.zeros(len(y))
    for tree in forest.estimators_:
        native = tree.tree_
        expected += [shrunk(native, native.value[:, 0, 0], v, 7.0, parents(native)) for v in tree.apply(X)]
    smoothed = sc.smooth(forest, m=7.0)
    assert type(smoothed) is RandomForestRegressor
    np.testing.assert_allclose(smoothed.predict(X), expected / 5, rtol=1e-12)
    assert [tree.tree_.node_count for tree in smoothed] == [tree.tree_.node_count for tree in forest]


@pytest.mark.parametrize("loss", ["log_loss", "brier"])
def test_the_weight_with_the_lowest_loss_is_chosen(loss):
    X, y = load_breast_cancer(return_X_y=True)
    tree = DecisionTreeClassifier(random_state=0).fit(X[:250], y[:250])
    validation = (X[250:400], y[250:400])
    chosen = sc.smooth(tree, X[:250], y[:250], validation=validation, loss=loss, method="laplace")
    measure = log_loss if loss == "log_loss" else brier_score_loss

    def measured(model):
        return measure(validation[1], model.predict_proba(validation[0])[:, 1])

    candidates = [sc.smooth(tree, m=m, method="laplace") for m in (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500)]
    assert measured(chosen) == pytest.approx(min(map(measured, candidates)), rel=1e-6)
    assert measured(chosen) < measured(tree)


def test_pure_leaves_no_longer_tie():
    X, y = load_breast_cancer(return_X_y=True)
    tree = DecisionTreeClassifier(random_state=0).fit(X[:300], y[:300])
    smoothed = sc.smooth(tree, X[:300], y[:300])
    before, after = (roc_auc_score(y[300:], model.predict_proba(X[300:])[:, 1]) for model in (tree, smoothed))
    assert after > before


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(5, random_state=0),
        ExtraTreeClassifier(random_state=0),
        RandomForestClassifier(3, class_weight="balanced", criterion="entropy", random_state=0),
    ],
)
def test_predictions_stay_probabilities(model):
    X, y = load_iris(return_X_y=True)
    for targets in (y, np.stack([y, y > 0], axis=1)):
        smoothed = sc.smooth(model.fit(X, targets), m=5.0)
        probabilities = smoothed.predict_proba(X)
        for block in probabilities if isinstance(probabilities, list) else [probabilities]:
            assert (block >= 0).all()
            np.testing.assert_allclose(block.sum(axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize("method", ["hierarchical", "m_estimate"])
def test_monotonic_constraints_are_kept(method):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(200, 3))
    y = X[:, 0] + np.sin(9 * X[:, 1]) + rng.normal(size=200)
    forest = ExtraTreesRegressor(10, monotonic_cst=[1, 0, 0], random_state=0).fit(X, y)
    for m in (1.0, 20.0):
        assert sc.check_monotonic(sc.smooth(forest, m=m, method=method)).holds
    # Without moving values, small leaves would be shrunk below larger ones.
    unordered = ExtraTreesRegressor(10, random_state=0).fit(X, y)
    assert not sc.check_monotonic(sc.smooth(unordered, m=20.0)).features


def test_training_rows_are_evaluated_by_clones():
    X, y = load_diabetes(return_X_y=True)
    tree = DecisionTreeRegressor(random_state=0).fit(X[:300], y[:300])
    # On its training rows the tree has no error, and smoothing could only be worse.
    smoothed = sc.smooth(tree, X[:300], y[:300])
    before, after = (np.mean((model.predict(X[300:]) - y[300:]) ** 2) for model in (tree, smoothed))
    assert after < before


def test_models_and_arguments_that_do_not_fit_are_refused():
    X, y = load_iris(return_X_y=True)
    tree = DecisionTreeClassifier().fit(X, y)
    with pytest.raises(ValueError, match=r"contribution to the target.*Pass a single tree or a forest"):
        sc.smooth(GradientBoostingClassifier(n_estimators=2).fit(X, y), m=1.0)
    with pytest.raises(ValueError, match="contribution to the target"):
        sc.smooth(HistGradientBoostingRegressor(max_iter=2).fit(X, y), X, y)
    with pytest.raises(ValueError, match="this model is a regressor"):
        sc.smooth(DecisionTreeRegressor().fit(X, y), m=1.0, method="laplace")
    with pytest.raises(ValueError, match="Pass X and y, or m"):
        sc.smooth(tree)
    for wrong in ({"m": -1.0}, {"m": np.inf}, {"m": 1.0, "method": "platt"}):
        with pytest.raises(ValueError, match=r"no number of rows|is unknown"):
            sc.smooth(tree, **wrong)
