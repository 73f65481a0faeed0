"""Feature cost tree by tree: bounds and gaps against all prunings and the exact cut."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from tests.strategies import all_prunings, examples, generators, random_forest, random_rows, random_tree

import secateur as sc
from secateur.costs import FeatureCost, NodeCost
from secateur.data.rows import LocalRows, read_sample
from secateur.forest.routing import route
from secateur.forest.subforest import check_keep
from secateur.kernels.feature_cost.primal_dual import (
    Shares,
    best_level,
    best_subtrees,
    gain_of,
    project_simplex,
    share_prices,
)
from secateur.kernels.forest.preorder import tree_parent
from secateur.libraries import adapt
from secateur.losses import ZeroOne
from secateur.problem import Problem
from secateur.solvers import MinCut
from secateur.solvers.feature_cost.primal_dual import PrimalDual


def random_problem(rng, n_rows=8, prices=None, weight=None):
    """Return a small question: two trees, features that may be free, perhaps a group, perhaps weights."""
    forest = random_forest(rng, n_trees=2, max_splits=3, link="probability", n_classes=(2,), n_outputs=2)
    X = random_rows(rng, n_rows, forest.n_features)
    groups = {"lab": (float(rng.integers(0, 4)), [0])} if rng.random() < 0.5 else None
    prices = rng.integers(0, 4, forest.n_features).astype(float) if prices is None else prices(forest.n_features)
    weight = rng.integers(1, 4, n_rows).astype(float) if weight is None else weight
    sample = LocalRows(route(forest, X), rng.integers(0, 2, (n_rows, 1)), weight)
    return Problem(forest, sample, ZeroOne(), FeatureCost(prices, groups))


def values_of_all(problem):
    """Return risk and cost of every pruning, (n_prunings, 2), each read off the definition."""
    forest, sample = problem.forest, problem.sample
    labels = forest.value.argmax(axis=1)
    groups = list((problem.cost.groups or {}).values())
    values = []
    for parts in itertools.product(*(all_prunings(forest, tree) for tree in range(forest.n_trees))):
        kept, risk, cost = set().union(*parts), 0.0, 0.0
        for i, weight in enumerate(sample.weight):
            met = set()
            for tree in range(forest.n_trees):
                v = int(forest.tree_start[tree] + sample.leaves[tree, i])
                while v not in kept:
                    v = int(forest.parent[v])
                risk += weight * (labels[v] != sample.y[i, 0]) / forest.n_trees
                while forest.parent[v] != -1:
                    v = int(forest.parent[v])
                    met.add(int(forest.feature[v]))
            price = sum(problem.cost.prices[k] for k in met)
            cost += weight * (price + sum(price for price, members in groups if met & set(members)))
        values.append((risk, cost))
    return np.array(values) / sample.weight.sum()


def check_certificate(path, best):
    """Raise unless no bound is above the best objective there is, and no gap below the true one."""
    table = path.table
    assert (table["bound"] <= best + 1e-13).all()  # what the best is told to be is rounded, too
    assert (table["objective"] >= best - 1e-13).all()
    assert (table["gap"] >= table["objective"] - best - 1e-13).all()
    np.testing.assert_array_equal(table["objective"], table["risk"] + table["penalty"] * table["cost"])
    for point in range(len(path)):
        check_keep(path.forest, path.masks.keep(point))


@examples(150)
@given(rng=generators, steps=st.sampled_from([1, 3, 1000]))
def test_bounds_hold_for_all_prunings_and_gaps_close(rng, steps):
    problem = random_problem(rng)
    path = PrimalDual(penalties=6, max_iterations=steps, tolerance=1e-7).path(problem)
    best = (values_of_all(problem) @ np.array([np.ones(len(path)), path.table["penalty"]])).min(axis=0)
    check_certificate(path, best)
    if steps == 1000:
        assert (path.table["objective"][1:] - best[1:]).max() <= 1e-6
        assert path.table["gap"][1:].max() <= 1e-6


@given(rng=generators)
def test_bounds_hold_where_prices_and_weights_must_be_rounded(rng):
    def prices(n):
        return rng.uniform(1e-9, 1, n) * 10.0 ** rng.integers(-6, 7, n)

    problem = random_problem(rng, 6, prices, rng.uniform(1e-6, 1, 6))
    path = PrimalDual(penalties=5).path(problem)
    best = (values_of_all(problem) @ np.array([np.ones(len(path)), path.table["penalty"]])).min(axis=0)
    assert (path.table["bound"] <= best * (1 + 1e-12)).all()
    assert (path.table["objective"] >= best * (1 - 1e-12)).all()
    assert (path.table["gap"] >= path.table["objective"] - best * (1 + 1e-12)).all()


def forest_problem(load, n_trees=10, seen=True):
    X, y = load(return_X_y=True)
    fit, judge = (slice(None), slice(None)) if seen else (slice(0, None, 2), slice(1, None, 2))
    adapter = adapt(RandomForestClassifier(n_trees, random_state=0).fit(X[fit], y[fit]))
    prices = np.random.default_rng(0).integers(1, 5, X.shape[1]).astype(float)
    return Problem(adapter.forest, read_sample(adapter, X[judge], y[judge]), ZeroOne(), FeatureCost(prices))


def exact(problem, penalty, **settings):
    """Return the least objective at penalties, by the exact cut."""
    table = MinCut(**settings).path(problem).table
    return (table["risk"][:, None] + penalty * table["cost"][:, None]).min(axis=0)


real = pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])


@real
@pytest.mark.parametrize("seen", [True, False])
@pytest.mark.parametrize("errors", ["holdout", "train"])
def test_gaps_on_real_forests_are_below_one_per_cent_and_never_below_the_true_ones(load, seen, errors):
    problem = forest_problem(load, seen=seen)
    path = PrimalDual(errors=errors).path(problem)
    best = exact(problem, path.table["penalty"], errors=errors)
    check_certificate(path, best)
    assert (path.table["gap"][1:] <= 0.01 * path.table["objective"][1:]).all()
    assert len(np.unique(path.table["n_nodes"])) > 4
    assert path.table["n_nodes"][-1] == problem.forest.n_trees  # the largest penalty leaves the roots


@real
def test_a_tighter_tolerance_finds_the_optimum(load):
    problem = forest_problem(load)
    path = PrimalDual(tolerance=1e-6, penalties=8).path(problem)
    best = exact(problem, path.table["penalty"])
    np.testing.assert_allclose(path.table["objective"][1:], best[1:], rtol=1e-6)
    np.testing.assert_allclose(path.table["bound"][1:], best[1:], rtol=1.1e-6)


@real
def test_the_gap_after_one_step_is_valid(load):
    problem = forest_problem(load)
    path = PrimalDual(max_iterations=1).path(problem)
    best = exact(problem, path.table["penalty"])
    check_certificate(path, best)
    assert path.table["gap"].max() > 0.01
    assert path.table["steps"].max() == 1


@real
def test_trees_that_pay_for_themselves_are_those_of_the_individual_cut(load):
    problem = forest_problem(load)
    cut = MinCut(scope="individual").path(problem)
    places = cut.table["penalty"][1:]
    between = np.append((places[1:] + places[:-1]) / 2, 2 * places[-1])
    path = PrimalDual(penalties=tuple(between.tolist()), caching="tree").path(problem)
    for point in range(1, len(path)):
        np.testing.assert_array_equal(path.masks.keep(point), cut.masks.keep(point))
    for column in ("risk", "cost"):
        np.testing.assert_allclose(path.table[column], cut.table[column])
    assert np.isnan(path.table["bound"]).all()
    assert path.table["steps"].max() == 1  # nothing to agree on
    together = exact(problem, path.table["penalty"])
    assert (path.table["objective"] > together + 1e-6).any()  # and it is another question


def test_shares_of_one_penalty_are_a_start_for_the_next():
    problem = forest_problem(load_breast_cancer)
    path = PrimalDual(tolerance=1e-5).path(problem)
    alone = [PrimalDual(penalties=(float(p),), tolerance=1e-5).path(problem) for p in path.table["penalty"][1:]]
    assert path.table["steps"].sum() < sum(one.table["steps"][1] for one in alone)


def test_errors_may_count_by_class():
    problem = forest_problem(load_breast_cancer)
    for class_weight in ("balanced", (1.0, 3.0)):
        path = PrimalDual(class_weight=class_weight, penalties=5).path(problem)
        best = exact(problem, path.table["penalty"], class_weight=class_weight)
        check_certificate(path, best)
        assert (path.table["gap"][1:] <= 0.01 * path.table["objective"][1:]).all()


def test_the_penalties_asked_for_are_those_of_the_path():
    problem = forest_problem(load_iris)
    path = PrimalDual(penalties=(0.001, 0.1, 0.01)).path(problem)
    assert path.table["penalty"].tolist() == [0.0, 0.001, 0.01, 0.1]
    assert path.masks.keep(0).all()


def test_features_that_cost_nothing_are_kept():
    problem = forest_problem(load_iris)
    free = replace(problem, cost=FeatureCost(np.zeros(4)))
    table = PrimalDual(penalties=3).path(free).table
    np.testing.assert_allclose(table["objective"][1:], exact(free, table["penalty"])[1:])
    np.testing.assert_allclose(table["gap"][1:], 0, atol=1e-12)
    some = replace(problem, cost=FeatureCost([0.0, 0.0, 1.0, 1.0]))
    table = PrimalDual(penalties=3).path(some).table
    assert table["cost"][-1] == 0
    assert table["n_nodes"][-1] > some.forest.n_trees


@given(
    x=st.lists(st.floats(0, 1e3), min_size=1, max_size=8),
    share=st.floats(0.001, 1),
)
def test_projected_shares_are_the_nearest(x, share):
    before = np.array(x) + 1e-6
    total = share * before.sum()
    after = before.copy()
    project_simplex(after, total)
    assert after.sum() == pytest.approx(total)
    assert (after >= 0).all()
    fall = before - after  # the same for all entries that are left, and enough to sink the others
    assert np.ptp(fall[after > 0]) <= 1e-9 * before.max()
    assert (before[after == 0] <= fall[after > 0].max() + 1e-9 * before.max()).all()


def random_shares(rng):
    right = np.array(random_tree(rng, int(rng.integers(1, 7))), np.int32)
    split = np.flatnonzero(right != -1)
    number = np.full(len(right), -1)
    number[split] = np.arange(len(split))
    above = tree_parent(right)[split]
    parent = np.where(above == -1, -1, number[above]).astype(np.int32)
    n, m = len(split), int(rng.integers(1, 5))
    node = np.concatenate([rng.permutation(n)[: rng.integers(1, n + 1)] for _ in range(m)]).astype(np.int32)
    bounds = np.sort(rng.integers(0, len(node) + 1, m - 1))
    start = np.concatenate([[0], bounds, [len(node)]])
    return Shares(parent, rng.normal(size=n), rng.uniform(size=m), start, node, np.zeros(len(node)))


def closed_sets(parent):
    """Return every set of nodes that has the parents of its nodes."""
    sets = itertools.product([False, True], repeat=len(parent))
    return [np.array(s) for s in sets if all(s[p] or not s[h] for h, p in enumerate(parent) if p != -1)]


@given(rng=generators)
def test_best_subtrees_gain_the_most_of_all_closed_sets(rng):
    shares = random_shares(rng)
    profit = rng.integers(-3, 4, len(shares.parent)).astype(float)
    inside = np.zeros(len(profit), bool)
    total = best_subtrees(shares.parent, profit, inside)
    every = closed_sets(shares.parent)
    gains = np.array([profit[s].sum() for s in every])
    assert total == gains.max() == profit[inside].sum()
    best = np.array([every[k] for k in np.flatnonzero(gains == gains.max())])
    np.testing.assert_array_equal(inside, best.all(axis=0))


@given(rng=generators, steps=st.sampled_from([1, 2, 5, 5000]))
def test_no_closed_set_gains_more_than_the_shares_say(rng, steps):
    shares = random_shares(rng)
    most = max(gain_of(shares, s) for s in closed_sets(shares.parent))
    inside, bound, _ = share_prices(shares, most + 1.0, 1e-6, steps)
    assert most <= bound
    assert gain_of(shares, inside) <= most
    for price, (a, b) in zip(shares.price, itertools.pairwise(shares.start), strict=True):
        assert (shares.share[a:b] >= 0).all()
        assert b == a or shares.share[a:b].sum() == pytest.approx(price, rel=1e-14)
    if steps == 5000:
        assert gain_of(shares, inside) >= most - 2e-6
        assert bound <= most + 2e-6


@given(rng=generators)
def test_the_best_level_of_an_average_gains_no_less_than_the_average(rng):
    shares = random_shares(rng)
    every = closed_sets(shares.parent)
    weights = rng.dirichlet(np.ones(3))
    average = weights @ np.array([every[k] for k in rng.integers(0, len(every), 3)])
    level = best_level(shares, average)
    assert any(np.array_equal(level, s) for s in every)
    items = [shares.node[a:b] for a, b in itertools.pairwise(shares.start)]
    bought = [average[nodes].max(initial=0.0) for nodes in items]
    assert gain_of(shares, level) >= shares.profit @ average - shares.price @ bought - 1e-12
    paid = sum(price for price, nodes in zip(shares.price, items, strict=True) if level[nodes].any())
    assert gain_of(shares, level) == pytest.approx(shares.profit[level].sum() - paid)


@pytest.mark.parametrize(
    ("model", "cost", "loss", "reason"),
    [
        (RandomForestRegressor(2), FeatureCost(), None, "predicts numbers"),
        (RandomForestClassifier(2), NodeCost(), None, "a sum over nodes"),
        (RandomForestClassifier(2), FeatureCost(), "brier", "zero_one"),
    ],
)
def test_unsupported_models_costs_and_losses_are_refused(model, cost, loss, reason):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=reason):
        sc.prune_path(model.fit(X, y), X, y, solver=PrimalDual(), cost=cost, loss=loss)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"caching": "row"}, "unknown; known are 'ensemble', 'tree'"),
        ({"errors": "none"}, "unknown; known are"),
        ({"max_iterations": 0}, "at least 1"),
        ({"tolerance": 1.0}, "below 1"),
        ({"tolerance": float("nan")}, "below 1"),
        ({"penalties": 0}, "penalties=0"),
    ],
)
def test_invalid_settings_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        PrimalDual(**wrong)
