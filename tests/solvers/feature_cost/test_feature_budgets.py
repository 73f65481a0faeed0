"""Budgets for features: ties, rounding, certificates, weights, and what is refused."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from tests.feature_problems import random_problem, value_of
from tests.strategies import all_prunings, generators

import secateur as sc
from secateur.costs import FeatureCost, NodeCost
from secateur.losses import ZeroOne
from secateur.problem import Problem
from secateur.solvers import MinCut
from secateur.solvers.feature_cost._base import node_labels
from secateur.solvers.feature_cost._integers import to_integers

CANCER = load_breast_cancer(return_X_y=True)


def test_prices_that_differ_by_rounding_do_not_break_ties():
    X, y = CANCER
    model = RandomForestClassifier(10, random_state=0).fit(X, y)
    exact, rounded = (
        sc.prune_path(model, X, y, solver="min_cut", cost=FeatureCost(np.where(np.arange(30) % 2, 0.3, price)))
        for price in (0.3, 0.1 + 0.2)
    )
    np.testing.assert_array_equal(exact.table["n_nodes"], rounded.table["n_nodes"])
    assert exact.info.exact
    assert rounded.info.exact


@given(rng=generators)
def test_prices_too_fine_for_the_arithmetic_are_rounded_and_the_bound_holds(rng):
    problem, X = random_problem(rng, n_rows=6)
    forest = problem.forest
    prices = rng.uniform(1e-9, 1, forest.n_features) * 10.0 ** rng.integers(-6, 7, forest.n_features)
    weight = rng.uniform(1e-6, 1, 6)
    problem = Problem(forest, replace(problem.sample, weight=weight), ZeroOne(), FeatureCost(prices))
    path = MinCut().path(problem)
    labels = node_labels(problem, "holdout")
    every = [
        set().union(*parts) for parts in itertools.product(*(all_prunings(forest, t) for t in range(forest.n_trees)))
    ]
    values = np.array([value_of(problem, X, kept, labels) for kept in every])
    for point in range(len(path)):
        objectives = values @ (1.0, path.table["penalty"][point])
        assert path.table["bound"][point] <= objectives.min() * (1 + 1e-12)
        assert path.table["objective"][point] <= objectives.min() * (1 + 1e-4) + 1e-12 or not path.info.exact


def test_a_problem_beyond_the_arithmetic_says_that_it_was_rounded():
    X, y = CANCER
    model = RandomForestClassifier(5, random_state=0).fit(X, y)
    weight = np.random.default_rng(0).uniform(size=len(y))
    prices = np.random.default_rng(1).uniform(size=30) * 1e9
    path = sc.prune_path(model, X, y, solver="min_cut", cost=FeatureCost(prices), sample_weight=weight)
    assert not path.info.exact
    gap = path.table["objective"] - path.table["bound"]
    assert (gap >= 0).all()
    wrong = np.mean([np.average(tree.predict(X).astype(int) != y, weights=weight) for tree in model.estimators_])
    assert path.table["risk"][0] == pytest.approx(wrong, rel=1e-13)
    assert gap[1:].max() < 1e-3


@given(values=st.lists(st.floats(0, 1e6), min_size=1, max_size=8))
@example(values=[5e-324])
def test_whole_numbers_are_never_above_the_numbers_they_stand_for(values):
    values = np.array(values)
    whole, unit = to_integers(values, 2**30)
    assert (whole * unit <= values * (1 + 1e-11)).all()
    assert (np.abs(whole * unit - values) <= 2 * values.max() / 2**30).all()


def test_decimal_prices_are_whole_in_their_smallest_unit():
    whole, unit = to_integers(np.array([0.1, 0.1 + 0.2, 1.25, 0.0]), 2**30)
    assert (whole.tolist(), unit) == ([2, 6, 25, 0], 0.05)


def test_a_budget_between_two_points_has_a_certified_gap():
    X, y = CANCER
    model = RandomForestClassifier(20, random_state=0).fit(X, y)
    path = sc.prune_path(model, X, y, solver="min_cut")
    cost, risk = path.table["cost"], path.table["risk"]
    jump = int(path.table["jump"][2:].argmax()) + 2
    budget = (cost[jump] + cost[jump - 1]) / 2
    chosen = path.select(max_cost=budget)
    proof = chosen.summary()["optimality"]
    assert chosen.point == jump
    assert proof["max_cost"] == budget
    assert proof["least_risk"] == pytest.approx((risk[jump] + risk[jump - 1]) / 2)  # of the hull, half-way
    assert proof["gap"] == pytest.approx(risk[jump] - proof["least_risk"])
    at_point = path.select(max_cost=cost[jump]).summary()["optimality"]
    assert at_point["gap"] == pytest.approx(0.0, abs=1e-12)


@given(rng=generators, share=st.floats(0, 1))
def test_no_pruning_within_a_budget_is_better_than_the_certificate(rng, share):
    problem, X = random_problem(rng)
    forest, labels = problem.forest, node_labels(problem, "holdout")
    path = MinCut().path(problem)
    every = [
        set().union(*parts) for parts in itertools.product(*(all_prunings(forest, t) for t in range(forest.n_trees)))
    ]
    values = np.array([value_of(problem, X, kept, labels) for kept in every])
    budget = share * path.table["cost"][0] + (1 - share) * path.table["cost"][-1]
    chosen = path.select(max_cost=budget)
    proof = chosen.summary()["optimality"]
    best = values[values[:, 1] <= budget + 1e-9, 0].min()
    assert proof["least_risk"] <= best + 1e-12
    assert proof["gap"] >= chosen.row["risk"] - best - 1e-12


def test_a_path_of_both_scopes_has_the_points_of_either():
    X, y = CANCER
    model = RandomForestClassifier(10, random_state=0).fit(X, y)
    both, together, alone = (
        sc.prune_path(model, X, y, solver=MinCut(scope=scope)) for scope in ("both", "ensemble", "individual")
    )
    assert len(both) == len(together) + len(alone) - 1
    apart = both.table["origin"] == "individual"
    for column in ("cost", "risk", "penalty", "n_nodes"):
        np.testing.assert_allclose(np.sort(both.table[column][apart]), np.sort(alone.table[column][1:]))
        np.testing.assert_allclose(np.sort(both.table[column][~apart]), np.sort(together.table[column]))


def test_feature_cost_is_pruned_by_cut_and_descent_by_default():
    X, y = CANCER
    model = RandomForestClassifier(10, random_state=0).fit(X[::2], y[::2])
    small = sc.prune(model, X[1::2], y[1::2], cost=FeatureCost(np.ones(30)), max_cost=6)
    assert type(small) is RandomForestClassifier
    path = sc.prune_path(model, X[1::2], y[1::2], cost="features")
    assert path.solver == "Several(solvers=(MinCut(scope='both'), CostDescent()))"
    assert {"ensemble", "individual", "anneal", "eliminate"} <= set(path.table["origin"])
    assert FeatureCost().mean_price(small, X[1::2]) <= 6.6  # the budget holds on the rows pruned by; these are all


def test_sample_and_class_weights_are_those_of_repeated_rows():
    X, y = CANCER
    model = RandomForestClassifier(5, random_state=0).fit(X, y)
    times = np.random.default_rng(0).integers(1, 4, len(y))
    weighted = sc.prune_path(model, X, y, solver="min_cut", sample_weight=times.astype(float))
    repeated = sc.prune_path(model, np.repeat(X, times, axis=0), np.repeat(y, times), solver="min_cut")
    for column in ("penalty", "n_nodes", "cost", "risk"):
        np.testing.assert_allclose(weighted.table[column], repeated.table[column], rtol=1e-12)
    heavy = sc.prune_path(model, X, y, solver=MinCut(class_weight=(1.0, 3.0)))
    labels = model.predict(X)
    assert heavy.table["risk"][-1] != pytest.approx(np.mean(labels != y))
    roots = np.array([tree.tree_.value[0, 0].argmax() for tree in model.estimators_])
    expected = np.mean([np.where(y == 1, 3.0, 1.0) @ (y != root) for root in roots]) / len(y)
    assert heavy.table["risk"][-1] == pytest.approx(expected)
    balanced = sc.prune_path(model, X, y, solver=MinCut(class_weight="balanced"))
    by_hand = sc.prune_path(model, X, y, solver=MinCut(class_weight=tuple(len(y) / (2 * np.bincount(y)))))
    np.testing.assert_allclose(balanced.table["risk"], by_hand.table["risk"])


def test_a_weight_that_all_rows_share_changes_nothing():
    X, y = CANCER
    model = RandomForestClassifier(3, max_depth=4, random_state=0).fit(X, y)
    plain = sc.prune_path(model, X, y, solver="min_cut")
    heavy = sc.prune_path(model, X, y, solver="min_cut", sample_weight=np.full(len(y), 2.5))
    for column in ("penalty", "n_nodes", "cost", "risk", "bound"):
        np.testing.assert_allclose(heavy.table[column], plain.table[column], rtol=1e-12)


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        ((RandomForestRegressor(2), FeatureCost(), None), "predicts numbers"),
        ((RandomForestClassifier(2), NodeCost(), None), "a sum over nodes"),
        ((RandomForestClassifier(2), FeatureCost(), "brier"), "zero_one"),
    ],
)
def test_unsupported_models_costs_and_losses_are_refused(problem, reason):
    X, y = CANCER
    model, cost, loss = problem
    with pytest.raises(ValueError, match=reason):
        sc.prune_path(model.fit(X, y), X, y, solver="min_cut", cost=cost, loss=loss)
    with pytest.raises(ValueError, match="Use min_cut"):
        sc.prune_path(RandomForestClassifier(2).fit(X, y), X, y, solver="weakest_link", cost=FeatureCost())


def test_a_budget_below_the_cheapest_point_names_it():
    X, y = CANCER
    model = RandomForestClassifier(3, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"max_cost=-1.*nearest"):
        sc.prune_path(model, X, y, solver="min_cut").select(max_cost=-1)


@pytest.mark.parametrize("wrong", [{"scope": "all"}, {"errors": "none"}])
def test_unknown_settings_are_named(wrong):
    with pytest.raises(ValueError, match="unknown; known are"):
        MinCut(**wrong)


@pytest.mark.parametrize("weight", [(1.0,), (1.0, -1.0), (0.0, 0.0), (1.0, np.nan)])
def test_class_weights_must_fit_the_classes(weight):
    X, y = CANCER
    with pytest.raises(ValueError, match="class_weight"):
        sc.prune_path(RandomForestClassifier(2).fit(X, y), X, y, solver=MinCut(class_weight=weight))
