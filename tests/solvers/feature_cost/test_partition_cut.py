"""Feature cost in parts: bounds and gaps against the exact cut of all rows, whatever the parts."""

import itertools
import pickle
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from tests.feature_problems import all_prunings_of_all, random_problem, value_of
from tests.strategies import examples, generators, random_tree

import secateur as sc
from secateur import kernels
from secateur.costs import FeatureCost, NodeCost
from secateur.data.rows import Parts, in_parts, read_sample
from secateur.forest.subforest import check_keep
from secateur.libraries import adapt
from secateur.losses import ZeroOne
from secateur.problem import Problem
from secateur.solvers import MinCut
from secateur.solvers.feature_cost import _partition_closure as part_closure
from secateur.solvers.feature_cost import min_cut
from secateur.solvers.feature_cost._consensus import SplitCopies
from secateur.solvers.feature_cost._partition_integers import Quantizer, count_in_parts, fit_quantizer
from secateur.solvers.feature_cost.partition_cut import PartitionCut


@dataclass(frozen=True, eq=False)
class RemoteParts(Parts):
    """Parts that cannot be brought together, and to which questions are sent as bytes."""

    fits_in_memory = False

    def collect(self):
        raise AssertionError("rows that are too far were brought here")

    def total(self, forest, query):
        return super().total(forest, pickle.loads(pickle.dumps(query)))

    def each(self, forest, query):
        return super().each(forest, pickle.loads(pickle.dumps(query)))


def skewed(rng, sample, n_parts):
    """Return the rows dealt out at random, most of them to the first part, some parts perhaps without any."""
    part = np.minimum(rng.geometric(0.4, len(sample)) - 1, n_parts - 1)
    return tuple(replace(sample.take(np.flatnonzero(part == k)), row_index=None) for k in range(n_parts))


def remote(problem, parts):
    return replace(problem, row_source=RemoteParts(tuple(parts)))


def exact(problem, penalties, **choices):
    """Return the least objective at each penalty, from the whole path of the exact cut of all rows together."""
    table = MinCut(**choices).path(problem).table
    return (table["risk"] + np.asarray(penalties)[:, None] * table["cost"]).min(axis=1)


def check_certificate(path, best):
    """Raise unless no bound is above the best objective there is, and no objective below it."""
    table = path.table
    assert (table["bound"] <= best + 1e-12).all()
    assert (table["objective"] >= best - 1e-12).all()
    assert (table["bound"] <= table["objective"]).all()
    np.testing.assert_array_equal(table["gap"], table["objective"] - table["bound"])
    np.testing.assert_array_equal(table["objective"], table["risk"] + table["penalty"] * table["cost"])
    assert path.masks.keep(0).all()
    for point in range(len(path)):
        check_keep(path.forest, path.masks.keep(point))


@examples(150)
@given(rng=generators, n_parts=st.sampled_from([1, 2, 7]), passes=st.sampled_from([1, 3, 30]))
def test_no_bound_is_above_the_exact_cut_whatever_the_parts(rng, n_parts, passes):
    problem, _ = random_problem(rng, n_trees=3, n_rows=int(rng.integers(1, 25)))
    errors = str(rng.choice(["holdout", "train"]))
    parts = skewed(rng, problem.sample, n_parts)
    solver = PartitionCut(penalties=5, passes=passes, errors=errors, tolerance=0.0)
    path = solver.path(remote(problem, parts))
    best = exact(problem, path.table["penalty"], errors=errors)
    check_certificate(path, best)
    assert path.info.exact
    assert path.table["passes"].max() <= passes
    if n_parts == 1:
        np.testing.assert_allclose(path.table["objective"][1:], best[1:], rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(path.table["gap"][1:], 0, atol=1e-12)
    shuffled = solver.path(remote(problem, [parts[k] for k in rng.permutation(n_parts)]))
    for column in path.table:
        np.testing.assert_array_equal(path.table[column], shuffled.table[column])
    np.testing.assert_array_equal(path.masks.removed_at, shuffled.masks.removed_at)


@examples(60)
@given(rng=generators, n_parts=st.sampled_from([2, 7]))
def test_bounds_hold_of_all_prunings_when_weights_and_prices_are_no_multiples_of_anything(rng, n_parts):
    problem, X = random_problem(rng)
    sample = replace(problem.sample, weight=rng.uniform(0, 1, len(X)) ** 3)
    cost = replace(problem.cost, prices=rng.uniform(0, 2, problem.forest.n_features))
    problem = replace(problem, row_source=sample, cost=cost)
    path = PartitionCut(penalties=5, tolerance=1e-6).path(remote(problem, skewed(rng, sample, n_parts)))
    assert not path.info.exact
    labels = problem.forest.value.argmax(axis=1)
    every = np.array([value_of(problem, X, kept, labels) for kept in all_prunings_of_all(problem.forest)])
    best = (every[:, 0] + path.table["penalty"][:, None] * every[:, 1]).min(axis=1)
    check_certificate(path, best)
    np.testing.assert_allclose(path.table["objective"][1:], best[1:], rtol=0.05, atol=1e-6)
    for point in range(len(path)):
        kept = set(np.flatnonzero(path.masks.keep(point)).tolist())
        risk, price = value_of(problem, X, kept, labels)
        assert path.table["risk"][point] == pytest.approx(risk)
        assert path.table["cost"][point] == pytest.approx(price)


def forest_problem(load, n_trees=20, seed=0, **cost):
    """Return rows a forest has not seen."""
    X, y = load(return_X_y=True)
    adapter = adapt(RandomForestClassifier(n_trees, random_state=seed).fit(X[::2], y[::2]))
    return Problem(adapter.forest, read_sample(adapter, X[1::2], y[1::2]), ZeroOne(), FeatureCost(**cost))


@pytest.mark.parametrize("n_parts", [2, 4, 9])
@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer, load_digits])
def test_real_forests_are_certified_to_half_a_percent(load, n_parts):
    problem = forest_problem(load)
    path = PartitionCut(penalties=8).path(remote(problem, in_parts(problem.sample, n_parts).parts))
    best = exact(problem, path.table["penalty"])
    check_certificate(path, best)
    assert (path.table["gap"][1:] <= 0.005 * path.table["objective"][1:]).all()
    assert path.table["n_leaves"][-1] == path.table["n_trees"][-1]  # the largest penalty leaves nothing


def test_more_passes_prove_more():
    problem = forest_problem(load_breast_cancer)
    penalties = (0.02, 0.005)
    gaps = [PartitionCut(penalties, passes=n, tolerance=1e-5, parts=8).path(problem).table["gap"] for n in (1, 5, 40)]
    assert gaps[0][1:].max() > 1e-4
    assert gaps[1][1:].sum() < gaps[0][1:].sum()
    assert gaps[2][1:].sum() < 0.2 * gaps[0][1:].sum()


def test_rows_in_memory_are_cut_into_parts():
    problem = forest_problem(load_wine)
    whole = PartitionCut(penalties=4, parts=3).path(problem)
    apart = PartitionCut(penalties=4).path(replace(problem, row_source=in_parts(problem.sample, 3)))
    np.testing.assert_array_equal(whole.masks.removed_at, apart.masks.removed_at)
    np.testing.assert_array_equal(whole.table["bound"], apart.table["bound"])
    many = PartitionCut(penalties=4, parts=200).path(problem)  # more parts than rows
    check_certificate(many, exact(problem, many.table["penalty"]))


def test_groups_weights_and_class_weights_are_those_of_the_exact_cut():
    problem = forest_problem(
        load_breast_cancer, prices=np.arange(30) % 4 / 2, groups={"size": (5.0, [0, 2, 3]), "shape": (1.5, [5, 6])}
    )
    weight = np.random.default_rng(0).integers(0, 4, len(problem.sample)) / 4
    problem = replace(problem, row_source=replace(problem.sample, weight=weight))
    for class_weight, errors in (("balanced", "holdout"), ((1.0, 3.0), "train"), (None, "holdout")):
        solver = PartitionCut(penalties=5, class_weight=class_weight, errors=errors)
        path = solver.path(remote(problem, in_parts(problem.sample, 4).parts))
        best = exact(problem, path.table["penalty"], class_weight=class_weight, errors=errors)
        check_certificate(path, best)
        assert (path.table["gap"][1:] <= 0.01 * path.table["objective"][1:]).all()


def test_prices_by_row_are_taken_for_rows_that_know_their_number_and_refused_for_others():
    problem = forest_problem(load_wine)
    prices = np.random.default_rng(0).integers(0, 3, (len(problem.sample), 13)).astype(float)
    problem = replace(problem, cost=FeatureCost(row_prices=prices))
    assert PartitionCut().unsupported(problem) is None
    path = PartitionCut(penalties=5).path(problem)
    check_certificate(path, exact(problem, path.table["penalty"]))
    for solver in (PartitionCut(), MinCut(), MinCut(scope="individual")):
        assert "row_prices" in solver.unsupported(remote(problem, in_parts(problem.sample, 2).parts))


def test_cached_closures_do_not_change_the_path(monkeypatch):
    problem = forest_problem(load_wine)
    kept = PartitionCut(penalties=4).path(problem)
    assert not part_closure._CACHE  # and nothing is kept when it is done
    posed = []
    monkeypatch.setattr(part_closure, "_MAX_CACHED_EDGES", 0)
    build_closure = part_closure.build_closure
    monkeypatch.setattr(part_closure, "build_closure", lambda *given: posed.append(1) or build_closure(*given))
    anew = PartitionCut(penalties=4).path(problem)
    assert len(posed) == 4 * (2 + anew.table["passes"].sum())
    for column in kept.table:
        np.testing.assert_array_equal(kept.table[column], anew.table[column])


@given(rng=generators, n_parts=st.integers(1, 9))
def test_moved_profits_sum_to_zero(rng, n_parts):
    n = 12
    held = [np.flatnonzero(rng.random(n) < 0.7).astype(np.int32) for _ in range(n_parts)]
    copies = SplitCopies(list(range(n_parts)), held, n)
    for _ in range(4):
        inside = rng.random(len(copies.split)) < 0.5
        assert copies.n_inside(inside).tolist() == [int(inside[copies.split == h].sum()) for h in range(n)]
        copies.move(inside, float(10 ** rng.uniform(0, 15)))
        total = np.zeros(n, np.int64)
        np.add.at(total, copies.split, copies.moved)
        assert not total.any()
    assert np.array_equal(np.concatenate(list(copies.by_part().values())), copies.moved)


@given(rng=generators, n_parts=st.integers(2, 9))
def test_a_first_step_is_polyaks(rng, n_parts):
    n, excess = 12, 1e12
    held = [np.flatnonzero(rng.random(n) < 0.7).astype(np.int32) for _ in range(n_parts)]
    copies = SplitCopies(list(range(n_parts)), held, n)
    inside = rng.random(len(copies.split)) < 0.5
    slope = inside - (copies.n_inside(inside) / np.maximum(copies.count, 1))[copies.split]
    moved = copies.move(inside, excess)
    assert moved == slope.any()
    if moved:
        np.testing.assert_allclose(copies.moved, excess * slope / (slope @ slope), atol=n_parts)


def test_moved_profits_never_overflow():
    copies = SplitCopies([0, 1], [np.array([0], np.int32)] * 2, 1)
    assert not copies.move(np.array([True, False]), 2.0**61)
    assert not copies.moved.any()


def closures(parent):
    sets = itertools.product([False, True], repeat=len(parent))
    return [np.array(s, bool) for s in sets if all(s[p] or not s[h] for h, p in enumerate(parent) if p != -1)]


@given(rng=generators)
def test_the_best_closure_is_the_smallest_of_the_best(rng):
    right = np.array(random_tree(rng, int(rng.integers(0, 7))), np.int32)
    split = np.flatnonzero(right != -1)
    number = np.full(len(right), -1)
    number[split] = np.arange(len(split))
    above = kernels.tree_parent(right)[split]
    parent = np.where(above == -1, -1, number[above]).astype(np.int32)
    n, m = len(split), int(rng.integers(1, 6))
    needs = [np.flatnonzero(rng.random(m) < 0.4).astype(np.int32) for _ in range(n)]
    start = np.concatenate([[0], np.cumsum([len(one) for one in needs])]).astype(np.int64)
    need = np.concatenate([*needs, np.empty(0, np.int32)])
    profit, price = rng.integers(-4, 8, n), rng.integers(0, 5, m)

    def cost(s):
        return price[np.unique(np.concatenate([*(needs[h] for h in np.flatnonzero(s)), np.empty(0, int)])).astype(int)]

    every = closures(parent)
    worth = np.array([profit[s].sum() - cost(s).sum() for s in every])
    found, inside = kernels.best_closure(parent, profit, price, start, need)
    assert found == worth.max()
    best = np.array([every[k] for k in np.flatnonzero(worth == worth.max())])
    np.testing.assert_array_equal(inside, best.all(axis=0))
    values = kernels.no_more_than_parent(rng.integers(0, 4, n).astype(float), parent)
    level = values.astype(np.uint8)
    paid = kernels.cost_of_levels(level, price.astype(float), start, need, 3)
    assert paid.tolist() == [cost(level > k).sum() for k in range(3)]
    assert all(any(np.array_equal(level > k, s) for s in every) for k in range(3))


def test_parts_count_the_same_whole_numbers_as_all_rows_together():
    problem = forest_problem(load_wine)
    rng = np.random.default_rng(0)
    for weight in (np.ones(89), rng.integers(1, 5, 89) * 0.1, rng.uniform(size=89)):
        problem = replace(problem, row_source=replace(problem.sample, weight=weight))
        together = count_in_parts(problem, problem.sample, "holdout", None)
        apart = count_in_parts(problem, in_parts(problem.sample, 7), "holdout", None)
        np.testing.assert_array_equal(together.errors, apart.errors)
        np.testing.assert_array_equal(together.splits.split_index, apart.splits.split_index)
        np.testing.assert_allclose(together.wrong, apart.wrong)
        whole = together.errors * together.error_counter.quantizer.unit
        assert (whole <= together.wrong * (1 + 1e-12)).all()


def test_many_different_weights_are_rounded_down(monkeypatch):
    monkeypatch.setattr("secateur.solvers.feature_cost._partition_integers._MAX_DISTINCT_WEIGHTS", 3)
    problem = forest_problem(load_wine)
    weight = np.random.default_rng(0).integers(1, 9, 89).astype(float)
    problem = replace(problem, row_source=replace(problem.sample, weight=weight))
    path = PartitionCut(penalties=4).path(problem)
    assert not path.info.exact
    check_certificate(path, exact(problem, path.table["penalty"]))
    assert (path.table["gap"][1:] <= 0.01 * path.table["objective"][1:]).all()
    assert fit_quantizer(np.array([0.1, 0.3]), complete=True) == (Quantizer(0.1, down=False), True)


class TestMinCutOnRowsTooManyToBring:
    def test_all_trees_together_are_cut_in_parts(self):
        problem = forest_problem(load_wine)
        path = MinCut(errors="train").path(remote(problem, in_parts(problem.sample, 3).parts))
        check_certificate(path, exact(problem, path.table["penalty"], errors="train"))
        assert path.solver == "PartitionCut(errors='train')"
        assert "jump" in path.table

    @given(rng=generators)
    def test_trees_that_pay_for_themselves_are_those_of_all_rows_together(self, rng):
        problem, _ = random_problem(rng, n_trees=3, n_rows=20)
        path = MinCut(scope="individual").path(remote(problem, skewed(rng, problem.sample, 4)))
        whole = MinCut(scope="individual").path(problem)
        np.testing.assert_array_equal(path.masks.removed_at, whole.masks.removed_at)
        np.testing.assert_allclose(path.table["penalty"], whole.table["penalty"])
        np.testing.assert_allclose(path.table["objective"], whole.table["objective"])

    def test_rows_that_fit_but_need_too_much_stay_where_they_are(self, monkeypatch):
        problem = forest_problem(load_wine)
        parts = replace(problem, row_source=in_parts(problem.sample, 3))
        assert parts.row_source.fits_in_memory
        assert MinCut().path(parts).solver == "MinCut()"
        split, leaves = problem.forest, problem.sample.leaves + problem.forest.root[:, None]
        needed: list[set[int]] = []
        for node in range(split.n_nodes):
            above = split.parent[node]
            needed.append(set() if above == -1 else needed[above] | {int(split.feature[above])})
        n_needs = sum(len(needed[leaf]) for leaf in leaves.ravel())
        monkeypatch.setattr(min_cut, "_MAX_NEEDS", n_needs)
        assert MinCut().path(parts).solver == "MinCut()"
        monkeypatch.setattr(min_cut, "_MAX_NEEDS", n_needs - 1)
        assert MinCut().path(parts).solver == "PartitionCut()"

    def test_both_are_one_path(self):
        problem = forest_problem(load_wine)
        path = MinCut(scope="both").path(remote(problem, in_parts(problem.sample, 3).parts))
        assert set(path.table["origin"]) == {"ensemble", "individual"}
        assert path.masks.keep(0).all()


@pytest.mark.parametrize(
    ("model", "cost", "reason"),
    [
        (RandomForestRegressor(2), FeatureCost(), "predicts numbers"),
        (RandomForestClassifier(2), NodeCost(), "a sum over nodes"),
    ],
)
def test_unsupported_models_costs_and_losses_are_refused(model, cost, reason):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=reason):
        sc.prune_path(model.fit(X, y), X, y, solver=PartitionCut(), cost=cost)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"errors": "none"}, "unknown; known are"),
        ({"passes": 0}, "passes=0, but it must be at least 1"),
        ({"parts": 0}, "parts=0, but it must be at least 1"),
        ({"tolerance": 1.0}, "below 1"),
        ({"tolerance": float("nan")}, "below 1"),
        ({"penalties": 0}, "penalties=0"),
    ],
)
def test_invalid_settings_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        PartitionCut(**wrong)
