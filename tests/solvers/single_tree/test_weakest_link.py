"""WeakestLink against scikit-learn's own cost-complexity pruning and against every pruning there is."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tests.strategies import all_prunings, generators, random_forest

import secateur as sc
from secateur import kernels

NATS_PER_BIT = np.log(2)

SETTINGS = [
    (DecisionTreeClassifier(criterion="gini", random_state=0), load_breast_cancer, "brier", 1.0),
    (DecisionTreeClassifier(criterion="gini", max_leaf_nodes=40, random_state=0), load_digits, "brier", 1.0),
    (DecisionTreeClassifier(criterion="entropy", random_state=0), load_wine, "log_loss", NATS_PER_BIT),
    (DecisionTreeClassifier(criterion="entropy", random_state=0), load_iris, "log_loss", NATS_PER_BIT),
    (DecisionTreeRegressor(min_samples_leaf=3, random_state=0), load_diabetes, "squared_error", 1.0),
]


def sklearn_path(tree, X, y, weight):
    """Return scikit-learn's distinct penalties; it lists equal ones once per branch."""
    alphas = tree.cost_complexity_pruning_path(X, y, sample_weight=weight).ccp_alphas
    alphas = np.maximum(alphas, 0.0)
    return alphas[np.concatenate([[True], np.diff(alphas) > 1e-10 * alphas.max()])]


@pytest.mark.parametrize(("tree", "load", "loss", "scale"), SETTINGS)
@pytest.mark.parametrize("weighted", [False, True])
def test_penalties_and_subtrees_are_scikit_learns(tree, load, loss, scale, weighted):
    X, y = load(return_X_y=True)
    weight = np.random.default_rng(0).integers(1, 4, len(y)).astype(float) if weighted else None
    tree = tree.fit(X, y, sample_weight=weight)
    path = sc.prune_path(tree, X, y, cost="leaves", loss=loss, sample_weight=weight)
    ours = path.table["penalty"] / scale
    distinct = np.concatenate([[True], np.diff(ours) > 1e-10 * ours.max()])
    expected = sklearn_path(tree, X, y, weight)
    np.testing.assert_allclose(ours[distinct], expected, rtol=1e-7, atol=1e-12)
    for k in np.linspace(0, len(expected) - 2, 6).astype(int):
        alpha = (expected[k] + expected[k + 1]) / 2
        refit = type(tree)(**{**tree.get_params(), "ccp_alpha": alpha}).fit(X, y, sample_weight=weight)
        point = int(np.searchsorted(ours, alpha)) - 1
        pruned, refitted = path[point].forest, sc.as_forest(refit)  # both in preorder, however they were grown
        assert np.array_equal(pruned.feature, refitted.feature)
        assert np.array_equal(pruned.weight, refitted.weight)
        assert np.array_equal(pruned.value, refitted.value)


def test_a_forest_is_pruned_tree_by_tree_at_a_common_penalty():
    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(5, bootstrap=False, max_features=2, random_state=0).fit(X, y)
    path = sc.prune_path(forest, X, y, cost="leaves", solver="weakest_link")
    for alpha in (0.003, 0.02, 0.2):
        point = int(np.searchsorted(path.table["penalty"], alpha)) - 1
        for tree, pruned in zip(forest.estimators_, path[point].to_model().estimators_, strict=True):
            alone = sc.prune_path(tree, X, y, cost="leaves")
            expected = alone[int(np.searchsorted(alone.table["penalty"], alpha)) - 1].to_model()
            assert np.array_equal(pruned.tree_.threshold, expected.tree_.threshold)


def smallest_optimum(forest, tree, risk, as_leaf, as_split, penalty):
    """Return the least objective over all prunings of a tree, and the fewest nodes that reach it."""
    best = (np.inf, 0)
    for kept in all_prunings(forest, tree):
        splits = [v for v in kept if forest.is_split[v] and v + 1 in kept]
        leaves = [v for v in kept if v not in splits]
        objective = sum(risk[v] + penalty * as_leaf[v] for v in leaves) + penalty * sum(as_split[v] for v in splits)
        best = min(best, (round(objective, 9), len(kept)))
    return best


@given(generators, st.sampled_from(["nodes", "leaves", "prices"]), st.booleans())
def test_every_point_is_the_smallest_optimum_over_all_prunings(rng, prices, ties):
    forest = random_forest(rng, n_trees=1, max_splits=7)
    n = forest.n_nodes
    risk = rng.integers(0, 6, n).astype(float) if ties else rng.random(n)
    as_leaf, as_split = np.ones(n), np.full(n, 1.0 if prices == "nodes" else 0.0)
    if prices == "prices":
        as_leaf, as_split = np.zeros(n), rng.integers(1, 4, n).astype(float)
    critical = kernels.weakest_link(forest.parent, forest.right, risk, as_leaf, as_split)
    breakpoints = np.unique(critical[np.isfinite(critical)])
    between = (breakpoints[1:] + breakpoints[:-1]) / 2
    for penalty in [*breakpoints, *between, *(breakpoints[:1] - 1), *(breakpoints[-1:] + 1)]:
        cut = critical <= penalty
        kept = [v for v in range(n) if forest.parent[v] == -1 or not cut[forest.parent[v]]]
        leaves = [v for v in kept if not forest.is_split[v] or cut[v]]
        splits = [v for v in kept if v not in leaves]
        objective = sum(risk[v] + penalty * as_leaf[v] for v in leaves) + penalty * sum(as_split[v] for v in splits)
        best, size = smallest_optimum(forest, 0, risk, as_leaf, as_split, penalty)
        assert objective == pytest.approx(best, abs=1e-8)
        if not ties or penalty not in breakpoints:
            assert len(kept) == size


@given(generators)
def test_with_weights_and_ties_every_point_is_the_smallest_optimum_in_exact_arithmetic(rng):
    n_rows = 30
    X = rng.integers(0, 4, (n_rows, 3)).astype(float)
    y, weight = rng.integers(0, 2, n_rows), rng.integers(0, 4, n_rows)
    weight[0] += 1
    tree = DecisionTreeClassifier(max_leaf_nodes=8, random_state=0).fit(X, y)
    path = sc.prune_path(tree, X, y, loss="zero_one", cost="leaves", sample_weight=weight)
    forest, total = path.forest, int(weight.sum())
    at = tree.decision_path(X).toarray().astype(bool)[:, _native_order(tree)]
    errors = [int(weight[at[:, v] & (y != forest.value[v].argmax())].sum()) for v in range(forest.n_nodes)]
    prunings = []
    for kept in all_prunings(forest, 0):
        leaves = [v for v in kept if not forest.is_split[v] or v + 1 not in kept]
        prunings.append((sum(errors[v] for v in leaves), len(leaves)))
    for penalty in path.table["penalty"][1:]:
        exact = Fraction(float(penalty) * total).limit_denominator(1000)
        best = min((e + exact * leaves, leaves) for e, leaves in prunings)
        point = int(np.searchsorted(path.table["penalty"], penalty + 1e-12)) - 1
        assert path.table["n_leaves"][point] == best[1]
        assert round(path.table["risk"][point] * total) + exact * best[1] == best[0]


def _native_order(tree):
    """Return scikit-learn's node numbers in preorder; trees limited in leaves are grown best first."""
    left, right = tree.tree_.children_left, tree.tree_.children_right
    order, waiting = [], [0]
    while waiting:
        v = waiting.pop()
        order.append(v)
        if left[v] != -1:
            waiting += [right[v], left[v]]
    return order


@given(generators)
def test_critical_penalties_of_a_forest_are_those_of_its_trees(rng):
    forest = random_forest(rng, n_trees=3, max_splits=8)
    risk, one, zero = rng.random(forest.n_nodes), np.ones(forest.n_nodes), np.zeros(forest.n_nodes)
    together = kernels.weakest_link(forest.parent, forest.right, risk, one, zero)
    for a, b in zip(forest.tree_start[:-1], forest.tree_start[1:], strict=True):
        parent = np.where(forest.parent[a:b] == -1, -1, forest.parent[a:b] - a).astype(np.int32)
        right = np.where(forest.right[a:b] == -1, -1, forest.right[a:b] - a).astype(np.int32)
        alone = kernels.weakest_link(parent, right, risk[a:b], one[a:b], zero[a:b])
        assert np.array_equal(alone, together[a:b])


def test_splits_that_do_harm_are_cut_at_negative_penalties_first():
    X, y = load_breast_cancer(return_X_y=True)
    tree = DecisionTreeClassifier(random_state=0).fit(X[::2], y[::2])
    path = sc.prune_path(tree, X[1::2], y[1::2], loss="zero_one")
    assert path.table["penalty"][0] < 0
    assert (np.diff(path.table["penalty"]) >= 0).all()
    lowest = np.flatnonzero(path.table["risk"] <= path.table["risk"].min() + 1e-12)[-1]
    assert path.table["penalty"][lowest] <= 0 < path.table["penalty"][lowest + 1]


def test_under_the_depth_cost_a_split_no_row_comes_to_is_cut_at_penalty_0():
    tree = DecisionTreeRegressor(random_state=0).fit([[0.0], [1.0], [2.0]], [0.0, 4.0, 5.0])
    assert tree.tree_.children_left.tolist() == [1, -1, 3, -1, -1]
    path = sc.prune_path(tree, [[0.0]], [0.0], cost="depth")
    assert path.table["n_nodes"].tolist() == [5, 3, 1]
    assert path.table["penalty"] == pytest.approx([0, 0, 9])  # the root as a leaf says 3 and saves the row one step


def test_a_chain_as_deep_as_it_is_long_is_no_trouble():
    n_splits = 50_000
    n = 2 * n_splits + 1
    right = np.full(n, -1, np.int32)
    parent = np.full(n, -1, np.int32)
    right[0 : n - 1 : 2] = np.arange(2, n, 2)  # each split has a leaf on the left and the rest on the right
    parent[1::2] = np.arange(0, n - 1, 2)
    parent[2::2] = np.arange(0, n - 1, 2)
    risk = np.where(right == -1, 0.0, np.linspace(1, 0.5, n))
    critical = kernels.weakest_link(parent, right, risk, np.ones(n), np.zeros(n))
    assert critical[0] == pytest.approx(1 / n_splits)
    assert (critical[right != -1] <= critical[0]).all()


def test_boosted_trees_are_pruned_by_how_far_they_move():
    from sklearn.ensemble import GradientBoostingRegressor

    X, y = load_diabetes(return_X_y=True)
    model = GradientBoostingRegressor(n_estimators=1, learning_rate=1.0, max_depth=6, random_state=0).fit(X, y)
    path = sc.prune_path(model, X, y, cost="leaves")
    residual = y - y.mean()
    tree = DecisionTreeRegressor(max_depth=6, random_state=0).fit(X, residual)
    expected = sc.prune_path(tree, X, residual, cost="leaves")
    np.testing.assert_allclose(path.table["penalty"], expected.table["penalty"], rtol=1e-6, atol=1e-9)
