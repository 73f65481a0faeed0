"""Means of trees with valid leaves: updates against brute force, valid predictions everywhere, the native models."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from scipy.optimize import minimize
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, make_multilabel_classification
from sklearn.ensemble import BaggingClassifier, ExtraTreesClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.tree import DecisionTreeClassifier
from tests.strategies import all_prunings, generators, random_forest, random_rows

import secateur as sc
from secateur.costs import NodeCost
from secateur.data.rows import LocalRows
from secateur.forest.routing import route
from secateur.kernels.ensemble.projection import project_on_simplex
from secateur.losses import default_loss
from secateur.problem import Problem
from secateur.solvers import BlockDescent
from secateur.solvers.ensemble.additive_model import additive
from secateur.solvers.ensemble.mean_of_trees import MeanDescent

IRIS = load_iris(return_X_y=True)
CANCER = load_breast_cancer(return_X_y=True)
FORESTS = {
    "random forest": RandomForestClassifier(12, random_state=0),
    "extra trees": ExtraTreesClassifier(12, random_state=0),
    "bagging": BaggingClassifier(DecisionTreeClassifier(), 12, random_state=0),
}


def random_descent(rng, n_classes=(3,), n_rows=20, ridge=2.0, values="refit"):
    """Return a descent over a few small random trees."""
    link = "probability" if n_classes else "identity"
    n_outputs = sum(n_classes) or 1
    forest = random_forest(
        rng, n_trees=3, max_splits=3, link=link, n_classes=n_classes, n_outputs=n_outputs, aggregation="mean"
    )
    X = random_rows(rng, n_rows, forest.n_features)
    y = np.column_stack([rng.integers(0, k, n_rows) for k in n_classes]) if n_classes else rng.normal(size=(n_rows, 1))
    weight = rng.integers(1, 4, n_rows).astype(float)
    problem = Problem(forest, LocalRows(route(forest, X), y, weight), default_loss(forest), NodeCost())
    return MeanDescent(additive(problem), problem, BlockDescent(penalties=5).settings(values, ridge))


def objective(descent, penalty, trees):
    """Return the objective of trees given as {tree: (kept nodes, {leaf: value})}, read off its definition."""
    forest, ensemble, center = descent.ensemble.forest, descent.ensemble, descent.range.center
    score, deviation, price = np.zeros(ensemble.target.shape), 0.0, 0.0
    for tree, (kept, values) in trees.items():
        for i, leaf in enumerate(ensemble.leaves[tree]):
            node = int(leaf) + forest.root[tree]
            while node not in values:
                node = forest.parent[node]
            score[i] += values[node] / len(trees)
        deviation += sum(float(((value - center) ** 2).sum()) for value in values.values())
        price += len(kept)
    if not trees:
        score += center
    loss = ensemble.weight @ ((ensemble.target - score) ** 2).sum(axis=1)
    return float(loss + penalty * price + (descent.ridge * deviation / len(trees) ** 2 if trees else 0.0))


def trees_in_use(descent):
    """Return the state as {tree: (kept nodes, {leaf: value})}."""
    forest, state = descent.ensemble.forest, descent.state
    found = {}
    for tree in np.flatnonzero(descent.used()).tolist():
        nodes = np.arange(forest.tree_start[tree], forest.tree_start[tree + 1])
        leaves = {int(u): state.value[u].copy() for u in nodes[state.status[nodes] == 2]}
        found[tree] = ({int(u) for u in nodes[state.status[nodes] > 0]}, leaves)
    return found


def best_values(descent, others, tree, leaves, penalty):
    """Return the best objective over the values of the leaves of one tree, by a general solver."""
    n_outputs, block = len(descent.range.center), descent.range.block
    shape = (len(leaves), n_outputs)

    def value(z):
        values = dict(zip(leaves, z.reshape(shape), strict=True))
        kept = set(leaves) | {u for leaf in leaves for u in ancestors(descent.ensemble.forest, leaf)}
        return objective(descent, penalty, {**others, tree: (kept, values)})

    constraints = [
        {"type": "eq", "fun": lambda z, i=i, a=a, b=b: z.reshape(shape)[i, a:b].sum() - 1}
        for i in range(len(leaves))
        for a, b in pairwise(block)
    ]
    start = np.tile(descent.range.center, len(leaves))
    limits = list(zip(np.tile(descent.range.low, len(leaves)), np.tile(descent.range.high, len(leaves)), strict=True))
    options = {"maxiter": 500, "ftol": 1e-13}
    return minimize(value, start, bounds=limits, constraints=constraints, method="SLSQP", options=options).fun


def ancestors(forest, node):
    while forest.parent[node] != -1:
        node = forest.parent[node]
        yield int(node)


@pytest.mark.parametrize("n_classes", [(2,), (3,), (2, 2), ()])
@given(rng=generators)
def test_an_update_finds_the_best_subtree_with_valid_values(rng, n_classes):
    descent = random_descent(rng, n_classes, values="refit" if n_classes else "bounded")
    penalty = descent.scale * float(rng.choice([0.3, 0.1, 0.02]))
    one = np.zeros(3, bool)
    for tree in (0, 1, 2, 0):  # the last tree is in use already, unless it did not pay off
        before = trees_in_use(descent)
        one[:] = False
        one[tree] = True
        descent.sweep(penalty, one, 0, False)
        others = {other: kept for other, kept in before.items() if other != tree}
        candidates = [objective(descent, penalty, others), objective(descent, penalty, before)]
        forest = descent.ensemble.forest
        for kept in all_prunings(forest, tree):
            leaves = [u for u in kept if forest.right[u] == -1 or u + 1 not in kept]
            candidates.append(best_values(descent, others, tree, sorted(leaves), penalty))
        found = objective(descent, penalty, trees_in_use(descent))
        assert found == pytest.approx(min(candidates), rel=1e-5, abs=1e-7)
        assert found == pytest.approx(descent.objective(penalty), rel=1e-9)


@given(rng=generators)
def test_the_projection_is_the_nearest_point_of_the_simplex(rng):
    z = rng.normal(size=int(rng.integers(1, 7))) * float(rng.choice([0.01, 1.0, 100.0]))
    total = float(rng.random()) + 0.01
    found = z.copy()
    project_on_simplex(found, 0, len(z), total)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(total)
    # At the nearest point all positive entries have moved by the same step, and zero entries by no less.
    step = z - found
    assert np.ptp(step[found > 0]) <= 1e-9 * max(1.0, np.abs(z).max())
    assert (step[found == 0] <= step[found > 0].max() + 1e-9 * max(1.0, np.abs(z).max())).all()


@given(rng=generators)
def test_the_objective_never_rises(rng):
    descent = random_descent(rng, n_rows=40)
    penalty = descent.scale * 0.01
    before = descent.objective(penalty)
    for _ in range(6):
        _, gain = descent.sweep(penalty, np.ones(3, bool), 0, False)
        after = descent.objective(penalty)
        assert after == pytest.approx(before - gain, abs=1e-12)
        before = after


@pytest.mark.parametrize("name", FORESTS)
@pytest.mark.parametrize("data", [IRIS, CANCER], ids=["iris", "cancer"])
def test_probabilities_are_valid_at_every_point_and_natively(name, data):
    X, y = data
    model = FORESTS[name].fit(X[::2], y[::2])
    path = sc.prune_path(model, X[1::2], y[1::2], solver=BlockDescent(values="both", penalties=12))
    assert len(path) > 10
    for point in (1, len(path) // 3, len(path) // 2, len(path) - 1):
        small = path[point].to_model()
        p = small.predict_proba(X)
        assert (p >= 0).all()
        assert (np.abs(p.sum(axis=1) - 1) <= 4 * np.spacing(1.0)).all()
        np.testing.assert_array_equal(p, path[point].predict_proba(X))
        for tree in small.estimators_:
            assert (tree.predict_proba(X) >= 0).all()


def test_metrics_of_probabilities_accept_a_pruned_forest():
    X, y = CANCER
    model = RandomForestClassifier(20, random_state=0).fit(X[::2], y[::2])
    small = sc.prune(model, X[1::2], y[1::2], solver=BlockDescent(penalties=12), max_nodes=60)
    p = small.predict_proba(X)[:, 1]
    assert np.isfinite(log_loss(y, p))
    assert 0 <= brier_score_loss(y, p) < 0.2
    calibration_curve(y, p)
    assert np.isfinite(small.predict_log_proba(X)).all()


def test_several_targets_have_probabilities_each():
    X, y = make_multilabel_classification(150, 6, n_classes=2, random_state=0)
    model = RandomForestClassifier(8, random_state=0).fit(X[::2], y[::2])
    path = sc.prune_path(model, X[1::2], y[1::2], solver=BlockDescent(penalties=8))
    for p in path[len(path) // 2].to_model().predict_proba(X):
        assert (p >= 0).all()
        np.testing.assert_allclose(p.sum(axis=1), 1, rtol=0, atol=1e-15)


def test_free_sums_leave_the_range_and_bounded_means_do_not():
    X, y = load_diabetes(return_X_y=True)
    y = (y - y.min()) ** 2
    model = RandomForestRegressor(20, random_state=0).fit(X[::2], y[::2])
    options = {"penalties": 15, "ridge": 0.0}
    free, bounded = (
        sc.prune_path(model, X[1::2], y[1::2], solver=BlockDescent(values=values, **options))
        for values in ("free", "bounded")
    )
    assert min(point.predict(X).min() for point in free) < 0
    assert min(point.predict(X).min() for point in bounded) >= 0
    assert max(point.predict(X).max() for point in bounded) <= y.max() * (1 + 1e-12)


def test_free_values_of_a_classifier_are_a_sum():
    X, y = CANCER
    model = RandomForestClassifier(20, random_state=0).fit(X[::2], y[::2])
    path = sc.prune_path(model, X[1::2], y[1::2], solver=BlockDescent(values="free", ridge=1.0, penalties=12))
    assert min(point.predict_proba(X).min() for point in path) < 0


def test_the_path_runs_down_and_up_and_a_budget_is_met():
    X, y = CANCER
    model = RandomForestClassifier(20, random_state=0).fit(X[::2], y[::2])
    path = sc.prune_path(model, X[1::2], y[1::2], solver=BlockDescent(penalties=12))
    assert set(path.table["rising"]) == {0.0, 1.0}
    assert path.info.runs == ("ridge", "kept", "rising")
    for budget in (1, 12, 75):
        path = sc.prune_path(model, X[1::2], y[1::2], solver=BlockDescent(penalties=12, max_nodes=budget))
        sizes = path.table["n_nodes"][1:]
        assert sizes[sizes <= budget].max() >= 0.85 * budget
        assert (path[len(path) - 1].predict_proba(X) >= 0).all()


def test_a_tree_budget_is_met():
    X, y = IRIS
    model = RandomForestClassifier(20, random_state=0).fit(X[::2], y[::2])
    path = sc.prune_path(model, X[1::2], y[1::2], solver=BlockDescent(penalties=12, max_trees=3))
    assert path.table["n_trees"][1:].max() <= 3
