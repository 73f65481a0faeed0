"""Numbers so large, so small or so alike that arithmetic ends: a right answer, or words that say why not."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from tests.feature_problems import random_problem
from tests.strategies import random_forest, random_rows, stumps

import secateur as sc


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    return X, X[:, 0] + rng.normal(size=60)


@pytest.fixture(scope="module")
def model(rows):
    return RandomForestRegressor(3, max_depth=3, random_state=0).fit(*rows)


def test_a_target_whose_squares_overflow_is_refused(rows, model):
    X, y = rows
    with pytest.raises(ValueError, match=r"absolute values must be at most 1e\+60"):
        sc.prune_path(model, X, y * 1e300)


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_a_model_whose_values_have_no_squares_is_refused(scale, rows, model):
    X, y = rows
    forest = sc.as_forest(model)
    with pytest.raises(ValueError, match=r"The largest value in the model.s trees is .*e.30.; solvers square"):
        sc.prune_path(replace(forest, value=forest.value * scale), X, y)


def test_a_model_that_says_nan_is_refused(rows, model):
    forest = sc.as_forest(model)
    value = forest.value.copy()
    value[-1] = np.nan
    with pytest.raises(ValueError, match="The largest value in the model's trees is nan"):
        sc.prune_path(replace(forest, value=value), *rows)


@pytest.mark.parametrize("weight", [1e300, 1e-300])
def test_weights_whose_squares_are_no_numbers_are_refused(weight, rows, model):
    with pytest.raises(ValueError, match="Divide all weights by their mean"):
        sc.prune_path(model, *rows, sample_weight=np.full(60, weight))


@pytest.mark.parametrize("price", [1e300, 1e-300])
def test_prices_that_leave_no_room_for_penalties_are_refused(price, rows, model):
    with pytest.raises(ValueError, match=r"The largest price is 1e.300.*Give all prices in another unit"):
        sc.prune_path(model, *rows, solver="cost_descent", cost=sc.costs.FeatureCost([price, 0, 0]))


def test_a_constant_target_of_zero_is_pruned_by_feature_cost(rows, model):
    path = sc.prune_path(model, rows[0], np.zeros(60), solver="cost_descent")
    assert path.table["n_nodes"][-1] <= 3
    assert path.table["risk"][-1] < 1e-30


@pytest.mark.parametrize("solver", ["tree_lasso", "best_subset", "fewer_trees"])
def test_a_method_that_compares_all_pairs_of_trees_refuses_a_hundred_thousand(solver, rows):
    with pytest.raises(ValueError, match=r"takes 80 GB for 100000 trees; the limit is 20000 trees\. Use"):
        sc.prune_path(stumps(100_000, n_features=3, n_classes=0), *rows, solver=solver)


def test_constant_trees_do_not_reduce_the_loss():
    rng = np.random.default_rng(68)  # one of few seeds for which the rounded means of all trees differ from them
    random_problem(rng)
    forest = random_forest(rng, n_trees=5, max_splits=3, aggregation="mean")
    X, y = random_rows(rng, 20, forest.n_features), rng.normal(size=20)
    path = sc.prune_path(forest, X, y, solver="best_subset")
    assert np.allclose(path.table["bound"][1:], np.var(y))
    assert np.allclose(path.table["risk"][1:], np.var(y))
