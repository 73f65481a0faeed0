"""Paths keep the range and the order of a model's predictions, whatever a solver fits."""

from dataclasses import replace

import catboost
import numpy as np
import pytest
from scipy.optimize import lsq_linear
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.metrics import brier_score_loss, log_loss
from tests.in_one_test import for_each

import secateur as sc
from secateur.costs import NodeCost
from secateur.data.rows import read_sample
from secateur.forest.promises import PredictionRange, keeps_range, range_of
from secateur.forest.subforest import kept_decision, subforest
from secateur.kernels import order_values
from secateur.libraries import adapt
from secateur.losses import default_loss
from secateur.problem import Problem
from secateur.solvers import BestSubset, BlockDescent, CostDescent, RuleLasso, TreeLasso, WeakestLink
from secateur.solvers.ensemble.mean_values import MeanValues
from secateur.solvers.ensemble.nearest_values import NearestValues

CANCER, DIABETES = load_breast_cancer(return_X_y=True), load_diabetes(return_X_y=True)
SOLVERS = [
    BlockDescent(penalties=12),
    BlockDescent(granularity="layer", penalties=12),
    BlockDescent(polish="ridge", penalties=12),
    CostDescent(penalties=6),
    TreeLasso(penalties=12),
    BestSubset(time_limit=1.0),
    RuleLasso(penalties=6),
]
solvers = pytest.mark.parametrize("solver", SOLVERS, ids=repr)


@solvers
def test_probabilities_are_valid_and_metrics_accept_them(solver):
    X, y = CANCER
    model = RandomForestClassifier(10, max_depth=6, random_state=0).fit(X[::2], y[::2])
    path = sc.prune_path(model, X[1::2], y[1::2], solver=solver)
    for point in range(len(path)):
        small = path[point].to_model()
        p = small.predict_proba(X)
        assert p.min() >= 0
        np.testing.assert_array_almost_equal_nulp(p.sum(axis=1), np.ones(len(X)), 4)
        assert np.isfinite(log_loss(y, p))
        assert brier_score_loss(y, p[:, 1]) <= 1
        assert "as before" in path[point].summary()["promises"]["range"]


@pytest.mark.parametrize(
    "solver", [BlockDescent(values="free"), CostDescent(values="free"), TreeLasso(values="free")], ids=repr
)
def test_free_values_leave_the_range_and_the_summary_says_so(solver):
    X, y = CANCER
    model = ExtraTreesClassifier(10, max_depth=6, random_state=0).fit(X[::2], y[::2])
    path = sc.prune_path(model, X[1::2], y[1::2], solver=solver)
    texts = [path[k].summary()["promises"]["range"] for k in range(1, len(path))]
    invalid = [not 0 <= path[k].predict_proba(X).min() <= 1 for k in range(1, len(path))]
    assert any(invalid)
    assert all("below 0 or above 1" in text for text, bad in zip(texts, invalid, strict=True) if bad)


@solvers
def test_no_prediction_is_negative_where_no_leaf_was(solver):
    X, y = DIABETES
    y = np.maximum(y - 90, 0)
    model = RandomForestRegressor(10, max_depth=6, random_state=0).fit(X[::2], y[::2])
    path = sc.prune_path(model, X[1::2], y[1::2], solver=solver)
    natural = range_of(path.forest)
    assert natural == PredictionRange(False, 0.0, np.inf)
    # Rows outside of the data reach other combinations of leaves.
    rows = np.random.default_rng(0).uniform(-0.3, 0.3, (2000, X.shape[1]))
    for point in range(len(path)):
        assert keeps_range(natural, path[point].forest)
        assert path[point].predict(rows).min() >= -1e-9


def test_a_free_sum_within_the_range_stays_as_it_is():
    X, y = DIABETES
    model = RandomForestRegressor(10, max_depth=3, random_state=0).fit(X[::2], y[::2] + 1000)
    kept = sc.prune_path(model, X[1::2], y[1::2] + 1000, solver=BlockDescent(penalties=8))
    free = sc.prune_path(model, X[1::2], y[1::2] + 1000, solver=BlockDescent(penalties=8, values="free"))
    assert all(np.array_equal(a, b) for a, b in zip(kept.values, free.values, strict=True))


def test_a_model_with_invalid_leaves_promises_nothing():
    X, y = CANCER
    forest = sc.as_forest(RandomForestClassifier(5, random_state=0).fit(X, y))
    assert range_of(forest) == PredictionRange(True, 0.0, range_of(forest).high)
    value = forest.value.copy()
    value[np.flatnonzero(~forest.is_split)[0]] = [-0.5, 1.5]
    invalid = replace(forest, value=value)
    assert range_of(invalid) is None
    path = sc.prune_path(invalid, X, y, solver=BlockDescent(penalties=5))
    assert "are not class probabilities; they were not repaired" in path[1].summary()["promises"]["range"]
    assert range_of(replace(forest, tree_weight=np.arange(1.0, 6.0))) is None


@for_each("seed", range(5))
def test_values_are_put_in_order_and_ordered_values_stay(seed):
    rng = np.random.default_rng(seed)
    right = np.array([4, 3, -1, -1, 6, -1, -1], np.int32)
    start, sign = np.array([0, 7]), np.array([[1], [0], [0], [0], [-1], [0], [0]], np.int8)
    keep, weight = np.ones(7, bool), rng.integers(1, 9, 7).astype(float)
    value = rng.normal(size=(7, 1))
    before = value.copy()
    order_values(start, right, sign, keep, weight, value)
    low, high = value[[2, 3], 0], value[[5, 6], 0]
    assert low.max() <= high.min()
    assert high[0] >= high[1]
    again = value.copy()
    order_values(start, right, sign, keep, weight, again)
    np.testing.assert_array_equal(again[[2, 3, 5, 6]], value[[2, 3, 5, 6]])
    if before[[2, 3], 0].max() <= before[[5, 6], 0].min() and before[5, 0] >= before[6, 0]:
        np.testing.assert_array_equal(value[[2, 3, 5, 6]], before[[2, 3, 5, 6]])


def test_points_with_original_values_that_violate_a_constraint_are_left_out():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=300)
    options = {"iterations": 15, "depth": 4, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
    model = catboost.CatBoostRegressor(monotone_constraints=[1, 0, 0], **options).fit(X, y)
    forest = sc.as_forest(model)
    path = sc.prune_path(model, X, y, solver=WeakestLink())
    every = sc.prune_path(replace(forest, monotone=None), X, y, solver=WeakestLink())
    pruned = [replace(every[k].forest, monotone=forest.monotone) for k in range(len(every))]
    holds = np.array([sc.check_monotonic(one).holds for one in pruned])
    assert 0 < holds.sum() < len(holds)
    np.testing.assert_array_equal(path.table["n_nodes"], every.table["n_nodes"][holds])


@pytest.mark.parametrize("high", [np.inf, 1.0])
def test_values_moved_into_the_range_predict_nearly_the_same(high):
    X, y = DIABETES
    y = np.maximum(y - 90, 0) / (300 if high == 1.0 else 1)
    model = RandomForestRegressor(10, max_depth=6, random_state=0).fit(X[::2], y[::2])
    free = sc.prune_path(model, X[1::2], y[1::2], solver=BlockDescent(penalties=12, values="free"))
    forest, natural, adapter = free.forest, range_of(free.forest), adapt(model)
    assert natural.high == high
    problem = Problem(forest, read_sample(adapter, X[1::2], y[1::2]), default_loss(forest), NodeCost())
    moved, refitted, n_moved = NearestValues(problem, natural), MeanValues(problem), 0
    for point in range(1, len(free)):
        keep, given = free.masks.keep(point), free.values[point]
        before, after, other = (
            kept_decision(forest, keep, value) for value in (given, moved.values(keep, given), refitted.refit(keep))
        )
        if keeps_range(natural, subforest(forest, before)):
            continue
        n_moved += 1
        assert keeps_range(natural, subforest(forest, after))
        scores = [problem.sample.scores(forest, decision) for decision in (before, after, other)]
        assert ((scores[1] - scores[0]) ** 2).mean() < 0.5 * ((scores[2] - scores[0]) ** 2).mean()
    assert n_moved > 3


@for_each("seed", range(5))
def test_values_moved_into_the_range_are_the_best_within_their_bounds(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 3))
    y = np.maximum(X[:, 0] + X[:, 1] * X[:, 2], 0)
    model = RandomForestRegressor(3, max_depth=2, random_state=seed).fit(X, y)
    forest, weight = sc.as_forest(model), rng.integers(1, 4, 60).astype(float)
    problem = Problem(forest, read_sample(adapt(model), X, y, weight), default_loss(forest), NodeCost())
    given = forest.value + forest.unit * rng.normal(-1.0, size=forest.value.shape)
    natural = range_of(forest)
    found = NearestValues(problem, natural).values(np.ones(forest.n_nodes, bool), given)
    # The predictions of all leaves, as contributions above those of the lowest leaves, which are bounded by 0.
    leaves = np.flatnonzero(~forest.is_split)
    tree = np.searchsorted(forest.tree_start, leaves, side="right") - 1
    design = np.zeros((60, len(leaves)))
    for one in range(3):
        leaf = forest.tree_start[one] + problem.sample.leaves[one].astype(int)
        design[np.arange(60), np.searchsorted(leaves, leaf)] = 1
    given, found = (value[leaves, 0] / forest.unit / 3 for value in (given, found))
    lowest = np.array([given[tree == one].min() for one in range(3)])
    width = np.array([np.ptp(given[tree == one]) for one in range(3)])
    low = lowest - lowest.sum() * width / width.sum()
    root = np.sqrt(weight)[:, None]
    exact = lsq_linear(
        np.vstack([root * design, np.sqrt(5) * np.eye(len(leaves))]),
        np.concatenate([root[:, 0] * (design @ given), np.sqrt(5) * given]),
        (low[tree], np.inf),
    )

    def objective(value):
        return weight @ (design @ (value - given)) ** 2 + 5 * ((value - given) ** 2).sum()

    assert objective(exact.x) <= objective(found + low[tree]) * (1 + 1e-9)
    assert objective(found + low[tree]) <= 1.02 * objective(exact.x)
