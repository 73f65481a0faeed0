"""The rows drawn for each tree: as scikit-learn says, one tree after the other, and compared with the leaf counts."""

import tracemalloc

import numpy as np
import pytest
from sklearn.ensemble import (
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeRegressor

from secateur import kernels
from secateur.forest.routing import route
from secateur.libraries import adapt

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(900, 4)), RNG.normal(size=900)


@pytest.mark.parametrize(
    "model",
    [
        RandomForestRegressor(6, max_samples=0.5, random_state=0),
        ExtraTreesRegressor(6, random_state=0),
        BaggingRegressor(DecisionTreeRegressor(max_leaf_nodes=9), 6, max_features=0.5, random_state=0),
    ],
)
def test_draws_are_those_of_scikit_learn(model):
    adapter = adapt(model.fit(X, Y))
    expected = [np.bincount(rows, minlength=len(X)) for rows in model.estimators_samples_]
    assert np.array_equal(adapter.in_bag(len(X)), expected)
    assert adapter.draws(len(X) - 1) is None
    for rows, drawn in zip(adapter.draws(len(X)), expected, strict=True):
        assert np.array_equal(np.bincount(rows, minlength=len(X)), drawn)


@pytest.mark.parametrize(
    "model",
    [
        RandomForestRegressor(5, random_state=0),
        BaggingRegressor(DecisionTreeRegressor(max_leaf_nodes=9), 5, random_state=0),
        GradientBoostingRegressor(n_estimators=5, random_state=0),
        HistGradientBoostingRegressor(max_iter=5, random_state=0),
    ],
)
def test_a_single_tree_can_tell_that_rows_are_not_the_training_rows(model):
    adapter = adapt(model.fit(X, Y))
    leaves = route(adapter.forest, adapter.rows(X))
    assert adapter.grown_on(leaves)
    for tree in range(5):
        drawn = np.flatnonzero(adapter.in_bag(len(X))[tree])
        other = drawn[leaves[tree, drawn] != leaves[tree, drawn[0]]][0]
        moved = leaves.copy()
        moved[tree, drawn[0]] = leaves[tree, other]
        assert not adapter.grown_on(moved)


def test_the_check_takes_less_memory_than_a_byte_per_row_and_tree():
    rows, n_trees = RNG.normal(size=(20_000, 3)), 60
    for model in (
        RandomForestRegressor(n_trees, max_depth=3, random_state=0),
        GradientBoostingRegressor(n_estimators=n_trees, random_state=0),
    ):
        adapter = adapt(model.fit(rows, rows[:, 0]))
        leaves = route(adapter.forest, adapter.rows(rows))
        adapter.grown_on(leaves)
        tracemalloc.start()
        assert adapter.grown_on(leaves)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < len(rows) * n_trees


def test_rows_are_counted_at_the_leaves_they_reach():
    for n_rows, dtype in [(0, np.uint8), (1, np.uint8), (9, np.uint16), (1000, np.uint8)]:
        leaves = RNG.integers(0, 7, n_rows).astype(dtype)
        assert np.array_equal(kernels.count_rows(leaves, 9), [np.count_nonzero(leaves == v) for v in range(9)])
