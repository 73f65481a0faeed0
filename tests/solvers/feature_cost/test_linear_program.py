"""Feature cost by linear programs: against all prunings, the minimum cut, and the paper's own example."""

import itertools
import logging
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_classification
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from tests.feature_problems import first_tree_of_figure_1, optimum
from tests.strategies import all_prunings, examples, generators, random_forest, random_rows, walk

import secateur as sc
from secateur.costs import FeatureCost, NodeCost
from secateur.data.rows import LocalRows, read_sample
from secateur.forest.routing import route
from secateur.libraries import adapt
from secateur.losses import ZeroOne
from secateur.path.rules import certificate
from secateur.problem import Problem
from secateur.solvers import MinCut
from secateur.solvers.feature_cost import _decomposition as shared_prices
from secateur.solvers.feature_cost._base import node_labels
from secateur.solvers.feature_cost._decomposition import cheapest, decompose, lower_bound, merged, rounded, split_prices
from secateur.solvers.feature_cost._integer_programs import PROGRAMS, ancestry, ip1
from secateur.solvers.feature_cost.linear_program import LinearProgram

METHODS = ["simplex", "dantzig_wolfe"]
CANCER = load_breast_cancer(return_X_y=True)


def random_problem(rng, n_trees=2, max_splits=3, n_rows=7):
    """Return a small question, with groups, row weights and prices of single rows now and then."""
    forest = random_forest(rng, n_trees, max_splits, link="probability", n_classes=(2,), n_outputs=2)
    X = random_rows(rng, n_rows, forest.n_features)
    members = list(range(int(rng.integers(1, forest.n_features + 1))))
    groups = {"lab": (float(rng.integers(0, 4)), members)} if rng.random() < 0.5 else None
    prices = rng.integers(0, 4, (n_rows, forest.n_features)).astype(float)
    cost = FeatureCost(groups=groups, row_prices=prices) if rng.random() < 0.5 else FeatureCost(prices[0], groups)
    weight = rng.uniform(0.1, 3, n_rows) if rng.random() < 0.5 else np.ones(n_rows)
    sample = LocalRows(route(forest, X), rng.integers(0, 2, (n_rows, 1)), weight)
    return Problem(forest, sample, ZeroOne(), cost), X


def price_of(cost, i, met):
    """Return what a set of features costs for row i."""
    own = cost.prices if cost.row_prices is None else cost.row_prices[i]
    shared = sum(price for price, members in (cost.groups or {}).values() if met & set(members))
    return sum(own[k] for k in met) + shared


def value_of(problem, X, kept, labels, apart=False):
    """Return risk and cost of a pruning, read off the definition; `apart` makes each tree pay for itself."""
    forest, weight = problem.forest, problem.sample.weight
    risk = cost = 0.0
    for i, x in enumerate(X):
        met = []
        for tree in range(forest.n_trees):
            v, features = walk(forest, tree, x), set()
            while v not in kept:
                v = int(forest.parent[v])
            risk += weight[i] * (labels[v] != problem.sample.y[i, 0]) / forest.n_trees
            while forest.parent[v] != -1:
                v = int(forest.parent[v])
                features.add(int(forest.feature[v]))
            met.append(features)
        cost += weight[i] * sum(price_of(problem.cost, i, part) for part in (met if apart else [set().union(*met)]))
    return risk / weight.sum(), cost / weight.sum()


def values_of_all(problem, X, labels, apart=False):
    """Return risk and cost of every pruning that keeps all roots."""
    trees = [list(all_prunings(problem.forest, tree)) for tree in range(problem.forest.n_trees)]
    every = [set().union(*parts) for parts in itertools.product(*trees)]
    return np.array([value_of(problem, X, kept, labels, apart) for kept in every])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("errors", ["holdout", "train"])
@examples(40)
@given(rng=generators)
def test_every_point_is_the_best_of_all_prunings_and_bounded_from_below(method, errors, rng):
    problem, X = random_problem(rng)
    labels = node_labels(problem, errors)
    path = LinearProgram(method, errors=errors, penalties=4, smallest=0.05).path(problem)
    values = values_of_all(problem, X, labels)
    for point in range(len(path)):
        kept = set(np.flatnonzero(path.masks.keep(point)).tolist())
        row = {name: column[point] for name, column in path.table.items()}
        assert (row["risk"], row["cost"]) == pytest.approx(value_of(problem, X, kept, labels))
        best = (values @ (1.0, row["penalty"])).min()
        assert row["bound"] <= best + 1e-15
        assert row["objective"] - best <= row["gap"] + 1e-15
        if point > 0:
            assert row["objective"] == pytest.approx(best, abs=1e-9 if method == "simplex" else 1e-6)
            assert row["gap"] <= 1e-6


@examples(60)
@given(rng=generators, share=st.sampled_from([0.0, 0.2, 0.5, 0.8, 1.0]))
def test_a_budget_point_is_the_best_of_all_prunings_within_the_budget(rng, share):
    problem, X = random_problem(rng)
    labels = node_labels(problem, "holdout")
    values = values_of_all(problem, X, labels)
    budget = share * float(rng.choice(values[:, 1]))
    path = LinearProgram(penalties=3, smallest=0.1, max_cost=budget).path(problem)
    best = values[values[:, 1] <= budget * (1 + 1e-9), 0].min()
    (point,) = np.flatnonzero(path.table["budget"] == budget)
    kept = set(np.flatnonzero(path.masks.keep(point)).tolist())
    assert value_of(problem, X, kept, labels) == pytest.approx((best, path.table["cost"][point]), abs=1e-12)
    assert path.table["cost"][point] <= budget * (1 + 1e-9)
    assert best - 1e-5 <= path.table["bound"][point] <= best + 1e-12
    # The certificate of the whole path is never better than the truth, whatever the budget asked for.
    for asked in (0.5 * budget, budget, 1.5 * budget):
        proof = certificate(path.table, point, asked)
        within = values[values[:, 1] <= asked * (1 + 1e-9), 0]
        assert proof["least_risk"] <= within.min() + 1e-12


def test_a_budget_inside_a_jump_is_met_better_than_by_any_penalty():
    X, y = load_wine(return_X_y=True)
    forest = RandomForestClassifier(10, random_state=0).fit(X[::2], y[::2])
    rows = {"cost": FeatureCost(np.ones(13)), "loss": "zero_one"}
    by_cut = sc.prune_path(forest, X[1::2], y[1::2], solver="min_cut", **rows)
    budget = 0.5 * float(by_cut.table["cost"][0])
    point = by_cut.select(max_cost=budget, rule="lowest")
    path = sc.prune_path(forest, X[1::2], y[1::2], solver=LinearProgram(penalties=2, max_cost=budget), **rows)
    (exact,) = np.flatnonzero(path.table["budget"] == budget)
    least = certificate(by_cut.table, point.point, budget)["least_risk"]
    assert least < path.table["risk"][exact] < point.row["risk"]
    assert path.table["gap"][exact] <= 1e-5
    assert path.select(max_cost=budget, rule="lowest").point == exact


def test_without_time_the_bound_still_holds():
    X, y = CANCER
    forest = RandomForestClassifier(10, random_state=0).fit(X[::2], y[::2])
    rows = {"cost": FeatureCost(np.ones(30)), "loss": "zero_one"}
    tables = [
        sc.prune_path(
            forest, X[1::2], y[1::2], solver=LinearProgram(penalties=2, max_cost=5.0, time_limit=limit), **rows
        ).table
        for limit in (0.0, 60.0)
    ]
    short, long = ({name: table[name][table["budget"] == 5.0][0] for name in ("risk", "bound")} for table in tables)
    assert short["bound"] <= long["bound"] + 1e-5
    assert long["bound"] <= long["risk"] <= short["risk"]


@pytest.mark.parametrize("settings", [{"max_cost": -1.0}, {"max_cost": (2.0, -1.0)}, {"time_limit": -1.0}])
def test_invalid_budgets_are_refused(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        LinearProgram(**settings)


def test_a_budget_is_that_of_the_ensemble():
    with pytest.raises(ValueError, match="formulation='ip2' is not supported"):
        LinearProgram(formulation="ip2", max_cost=1.0)
    assert LinearProgram().with_budget(max_cost=3.0).max_cost == 3.0
    assert LinearProgram(max_cost=1.0).with_budget(max_cost=3.0).max_cost == 1.0
    assert LinearProgram(formulation="ip2").with_budget(max_cost=3.0).max_cost is None


@examples(40)
@given(rng=generators)
def test_every_formulation_but_ip1_has_whole_optima_at_any_penalty(rng):
    problem, X = random_problem(rng)
    labels = node_labels(problem, "holdout")
    penalty = float(rng.uniform(0, 0.5))
    together, apart = (values_of_all(problem, X, labels, each) for each in (False, True))
    for name, values, weight in [("ip0", together, 0.0), ("ip2", apart, penalty), ("ip3", together, penalty)]:
        question = decompose(problem, "holdout", None, per_tree=name == "ip2")
        program = PROGRAMS[name](question)
        x, objective = optimum(program, program.objective(penalty))
        np.testing.assert_allclose(x, x.round(), atol=1e-7)
        assert objective * question.unit == pytest.approx((values @ (1.0, weight)).min(), abs=1e-9)


@examples(40)
@given(rng=generators)
def test_the_whole_solutions_of_ip1_are_those_of_ip3(rng):
    problem, _ = random_problem(rng)
    question = decompose(problem, "holdout", None)
    program, n_nodes = ip1(question), problem.forest.n_nodes
    for _ in range(10):
        split = rng.random(n_nodes) < 0.6
        split &= problem.forest.is_split
        for v in range(n_nodes):
            split[v] &= problem.forest.parent[v] == -1 or split[problem.forest.parent[v]]
        z = question.keep(split) & ~split
        least = np.zeros(len(question.price))  # what the rows of (IP1) demand of w for these z
        for row in program.matrix[np.flatnonzero(program.lower == 0)].toarray():
            item = np.flatnonzero(row[n_nodes:])[0]
            least[item] = max(least[item], -row[:n_nodes] @ z)
        np.testing.assert_array_equal(least, question.bought(split))


def forest_problem(data, n_trees=5, **cost):
    X, y = data
    adapter = adapt(RandomForestClassifier(n_trees, random_state=0).fit(X[::2], y[::2]))
    prices = np.random.default_rng(0).integers(0, 5, X.shape[1]).astype(float)
    return Problem(adapter.forest, read_sample(adapter, X[::2], y[::2]), ZeroOne(), FeatureCost(prices, **cost))


def some_penalties(path):
    """Return penalties at which the optimum changes, and some between."""
    chosen = path.table["penalty"][np.unique(np.linspace(1, len(path) - 1, 5).astype(int))]
    return tuple(float(factor * penalty) for penalty in chosen[chosen > 0] for factor in (1.0, 1.01))


@pytest.mark.parametrize("data", [load_iris, load_wine, load_breast_cancer])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("errors", ["holdout", "train"])
def test_the_objective_is_that_of_the_minimum_cut(data, method, errors):
    problem = forest_problem(data(return_X_y=True), groups={"lab": (2.0, [0, 2])})
    cut = MinCut(errors=errors).path(problem)
    path = LinearProgram(method, errors=errors, penalties=some_penalties(cut)).path(problem)
    assert path.table["bound"][0] == pytest.approx(cut.table["bound"][0], abs=1e-12)
    for point in range(1, len(path)):
        truth = (cut.table["risk"] + path.table["penalty"][point] * cut.table["cost"]).min()
        assert path.table["objective"][point] == pytest.approx(truth, abs=1e-9)
        assert path.table["bound"][point] <= truth * (1 + 1e-15)
        assert path.table["gap"][point] < (1e-9 if method == "simplex" else 1e-6)
    assert method != "simplex" or (path.table["integral"] == 1).all()
    assert (np.diff(path.table["cost"]) <= 1e-12).all()


@pytest.mark.parametrize("method", METHODS)
def test_row_prices_and_weights_of_rows_and_classes_are_those_of_the_minimum_cut(method):
    X, y = CANCER
    model = RandomForestClassifier(4, max_depth=5, random_state=0).fit(X[::2], y[::2])
    rng = np.random.default_rng(0)
    cost = FeatureCost(row_prices=rng.integers(0, 4, (len(X[1::2]), 30)), groups={"lab": (1.5, [20, 21, 22])})
    options = {"cost": cost, "sample_weight": rng.integers(0, 4, len(X[1::2])).astype(float)}
    cut = sc.prune_path(model, X[1::2], y[1::2], solver=MinCut(class_weight=(1.0, 2.5)), **options)
    solver = LinearProgram(method, penalties=some_penalties(cut), class_weight=(1.0, 2.5))
    path = sc.prune_path(model, X[1::2], y[1::2], solver=solver, **options)
    assert cut.info.exact
    for point in range(1, len(path)):
        truth = (cut.table["risk"] + path.table["penalty"][point] * cut.table["cost"]).min()
        assert path.table["objective"][point] == pytest.approx(truth, abs=1e-9)
    assert path.table["risk"][0] == pytest.approx(cut.table["risk"][0])


def test_ip2_is_the_minimum_cut_of_each_tree_for_itself():
    problem = forest_problem(load_wine(return_X_y=True))
    cut = MinCut(scope="individual").path(problem)
    penalties = tuple((cut.table["penalty"][1:-1] + cut.table["penalty"][2:]) / 2)  # where there is one optimum
    path = LinearProgram(formulation="ip2", penalties=penalties).path(problem)
    np.testing.assert_allclose(np.sort(path.table["penalty"][1:]), penalties)
    for point in range(1, len(path)):
        there = np.flatnonzero(cut.table["penalty"] <= path.table["penalty"][point])[-1]
        np.testing.assert_array_equal(path.masks.keep(point), cut.masks.keep(there))
    assert np.isnan(path.table["bound"][1:]).all()
    alone = forest_problem(load_wine(return_X_y=True), n_trees=1)
    one, same = (LinearProgram(formulation=name, penalties=6).path(alone) for name in ("ip2", "ip3"))
    np.testing.assert_allclose(one.table["objective"], same.table["objective"], atol=1e-12)
    np.testing.assert_allclose(one.table["bound"], same.table["bound"], atol=1e-12)


def test_ip0_is_one_point_with_the_least_errors():
    X, y = CANCER
    model = RandomForestClassifier(5, random_state=0).fit(X[::2], y[::2])
    path = sc.prune_path(model, X[1::2], y[1::2], solver=LinearProgram(formulation="ip0"))
    cut = sc.prune_path(model, X[1::2], y[1::2], solver="min_cut")
    assert len(path) == 2
    assert path.table["penalty"].tolist() == [0, 0]
    assert path.table["risk"][1] == pytest.approx(cut.table["risk"].min(), abs=1e-12)
    assert path.table["risk"][1] < path.table["risk"][0]
    assert path.table["gap"][1] < 1e-12


def test_counted_penalties_begin_where_nothing_is_bought():
    problem = forest_problem(CANCER)
    largest = MinCut().path(problem).table["penalty"][-1]
    for method in METHODS:
        path = LinearProgram(method, penalties=5, smallest=0.01).path(problem)
        np.testing.assert_allclose(np.sort(path.table["penalty"][1:]), largest * np.geomspace(0.01, 1, 5), rtol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_where_nothing_has_a_price_splits_stay_unless_they_do_harm(method):
    X, y = CANCER
    model = RandomForestClassifier(3, random_state=0).fit(X[::2], y[::2])
    path = sc.prune_path(
        model, X[1::2], y[1::2], solver=LinearProgram(method, penalties=2), cost=FeatureCost(np.zeros(30))
    )
    cut = sc.prune_path(model, X[1::2], y[1::2], solver="min_cut", cost=FeatureCost(np.zeros(30)))
    assert path.table["n_nodes"][1:].tolist() == [cut.table["n_nodes"][-1]] * 2
    np.testing.assert_allclose(path.table["gap"][1:], 0, atol=1e-12)


@pytest.mark.parametrize("max_iterations", [1, 2, 4])
@pytest.mark.parametrize("seed", range(4))
def test_a_gap_that_is_left_open_is_never_below_the_true_one(max_iterations, seed):
    X, y = make_classification(80, 8, n_informative=5, n_classes=3, flip_y=0.3, random_state=seed)
    adapter = adapt(RandomForestClassifier(8, random_state=seed).fit(X[::2], y[::2]))
    problem = Problem(adapter.forest, read_sample(adapter, X, y), ZeroOne(), FeatureCost())
    cut = MinCut().path(problem)
    solver = LinearProgram("dantzig_wolfe", penalties=some_penalties(cut), max_iterations=max_iterations)
    path = solver.path(problem)
    assert (path.table["iterations"] <= max_iterations).all()
    for point in range(1, len(path)):
        truth = (cut.table["risk"] + path.table["penalty"][point] * cut.table["cost"]).min()
        assert path.table["bound"][point] <= truth * (1 + 1e-15)
        assert path.table["gap"][point] >= (path.table["objective"][point] - truth) * (1 - 1e-12)
    assert max_iterations > 1 or (path.table["gap"] > 1e-3).any()


def test_the_gap_of_every_iteration_is_logged(caplog):
    problem = forest_problem(load_iris(return_X_y=True))
    with caplog.at_level(logging.DEBUG, "secateur.solvers.feature_cost._column_generation"):
        path = LinearProgram("dantzig_wolfe", penalties=(0.01,)).path(problem)
    gaps = [record.args[-1] for record in caplog.records]
    assert len(gaps) == path.table["iterations"][1]
    assert (np.diff(gaps) <= 0).all()
    assert gaps[-1] < 1e-6


@examples(50)
@given(rng=generators)
def test_a_tree_alone_is_pruned_to_the_cheapest_at_any_prices(rng):
    problem, _ = random_problem(rng, n_trees=3, max_splits=4)
    forest, question = problem.forest, decompose(problem, "holdout", None)
    prices = rng.choice([0.0, 0.5, 2.0, np.inf], len(question.item))
    worth, split = cheapest(question, prices)
    of_split = np.bincount(question.node, prices, forest.n_nodes)
    for tree in range(forest.n_trees):
        totals = []
        for kept in all_prunings(forest, tree):
            inner = [v for v in kept if forest.is_split[v] and v + 1 in kept]
            totals.append(sum(question.errors[v] for v in kept if v not in inner) + of_split[inner].sum())
        assert worth[tree] == pytest.approx(min(totals))
        here = slice(forest.tree_start[tree], forest.tree_start[tree + 1])
        marked = question.errors[here][(question.keep(split) & ~split)[here]].sum() + of_split[here][split[here]].sum()
        assert marked == pytest.approx(min(totals))


def test_trees_pruned_side_by_side_are_those_pruned_one_after_the_other(monkeypatch):
    question = decompose(forest_problem(CANCER, n_trees=7), "holdout", None)
    prices = split_prices(question, 0.01, np.random.default_rng(0).random(len(question.item)))
    worth, split = cheapest(question, prices)
    monkeypatch.setattr(shared_prices, "_MIN_NEEDS_FOR_THREADS", 0)
    monkeypatch.setattr(shared_prices, "cpu_count", lambda: 3)
    again, same = cheapest(question, prices)
    np.testing.assert_array_equal(worth, again)
    np.testing.assert_array_equal(split, same)


@examples(50)
@given(rng=generators)
def test_merged_items_and_any_shares_change_no_price_and_prove_no_more_than_is_true(rng):
    problem, X = random_problem(rng)
    question = decompose(problem, "holdout", None)
    fewer = merged(question)
    assert len(fewer.price) <= len(question.price)
    best = (values_of_all(problem, X, node_labels(problem, "holdout")) @ (1.0, 0.2)).min()
    for one in (question, fewer):
        split = cheapest(one, rng.exponential(size=len(one.item)))[1]
        assert one.value(split) == pytest.approx(question.value(split))
        prices = split_prices(one, 0.2, rng.normal(size=len(one.item)))
        np.testing.assert_allclose(np.bincount(one.item, prices, len(one.price)), 0.2 * one.price)
        assert lower_bound(one, cheapest(one, prices)[0]) * one.unit <= best + 1e-15


@examples(50)
@given(rng=generators)
def test_some_rounding_of_a_mixture_is_no_worse_than_the_mixture(rng):
    problem, _ = random_problem(rng)
    question = decompose(problem, "holdout", None)
    splits = np.array([cheapest(question, rng.exponential(size=len(question.item)))[1] for _ in range(4)])
    share = rng.dirichlet(np.ones(4))
    stays = share @ splits
    needed = np.zeros(len(question.price))
    np.maximum.at(needed, question.item, stays[question.node])
    above = np.where(problem.forest.parent == -1, 1.0, stays[problem.forest.parent])
    mixed = question.errors @ (above - stays) + 0.3 * question.price @ needed
    split = rounded(question, stays, 0.3)
    assert not (split & ~question.keep(split)).any()
    assert question.objective(split, 0.3) <= mixed + 1e-6


def test_the_nodes_above_are_those_of_the_parents():
    forest = forest_problem(load_iris(return_X_y=True)).forest
    above = ancestry(forest).toarray()
    for v in range(forest.n_nodes):
        expected = above[forest.parent[v]].copy() if forest.parent[v] != -1 else np.zeros(forest.n_nodes)
        expected[v] = 1
        np.testing.assert_array_equal(above[v], expected)


def test_without_highspy_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "highspy", None)
    for method in METHODS:
        with pytest.raises(ImportError, match=r"pip install 'secateur\[lp\]'"):
            LinearProgram(method).path(first_tree_of_figure_1())


@pytest.mark.parametrize(
    ("model", "cost", "loss", "reason"),
    [
        (RandomForestRegressor(2), FeatureCost(), None, "predicts numbers"),
        (RandomForestClassifier(2), NodeCost(), None, "a sum over nodes"),
        (RandomForestClassifier(2), FeatureCost(), "brier", "zero_one"),
    ],
)
def test_unsupported_models_costs_and_losses_are_refused(model, cost, loss, reason):
    X, y = CANCER
    with pytest.raises(ValueError, match=reason):
        sc.prune_path(model.fit(X, y), X, y, solver=LinearProgram(), cost=cost, loss=loss)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"method": "barrier"}, "unknown; known are"),
        ({"formulation": "ip4"}, "unknown; known are"),
        ({"errors": "none"}, "unknown; known are"),
        ({"method": "dantzig_wolfe", "formulation": "ip2"}, "Use formulation='ip3' or method='simplex'"),
        ({"penalties": 0}, "penalties=0"),
        ({"smallest": 2.0}, "smallest"),
        ({"tolerance": 0.0}, "tolerance"),
        ({"max_iterations": 0}, "max_iterations"),
    ],
)
def test_invalid_settings_are_refused(wrong, reason):
    with pytest.raises(ValueError, match=reason):
        LinearProgram(**wrong)
