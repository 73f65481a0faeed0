"""What every solver must satisfy, on every kind of model; being in the table enrols a class."""

import dataclasses
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from tests.cases import FOR_SOLVERS, adapter_of, case
from tests.contracts.refusals import reason_to_refuse

import secateur as sc
from secateur.costs import COSTS, NodeCost
from secateur.data.rows import read_sample
from secateur.forest.promises import range_of
from secateur.forest.routing import route
from secateur.forest.subforest import check_keep
from secateur.libraries import adapt
from secateur.losses import loss_named
from secateur.path import NestedMasks, Path
from secateur.problem import Problem
from secateur.solvers import SOLVERS

VARIANTS = [
    sc.solvers.ReducedError(raising=True),
    sc.solvers.MinimumError(m=3.0),
    sc.solvers.OptimalSize(max_leaves=4),
    sc.solvers.BlockDescent(granularity="layer", values="keep", penalties=8, smallest=1e-4, engine="gram"),
    sc.solvers.MinCut(scope="individual"),
    sc.solvers.LinearProgram(method="dantzig_wolfe", penalties=6),
    sc.solvers.PrimalDual(caching="tree", penalties=5),
    sc.solvers.MaxHeap(penalties=5, smallest=0.02, tolerance=1e-4, joint=True),
    sc.solvers.MaxHeap(penalties=4, smallest=0.02, tolerance=1e-4, subsamples=3, thresholds=2),
    sc.solvers.MaxHeap(penalties=4, smallest=0.02, tolerance=1e-4, values="mean"),
]
ALL_SOLVERS = [solver() for solver in SOLVERS.values()] + VARIANTS
FOREST = "random forest classifier"
"""A model that every solver prunes."""
BY_COST = [s for s in ALL_SOLVERS if s.name in ("weakest_link", "block_descent")]
"""Solvers that take any additive cost and minimise it; the others ignore the cost or take only feature costs."""
solvers = pytest.mark.parametrize("solver", ALL_SOLVERS, ids=repr)


def some_points(path):
    return np.unique(np.linspace(0, len(path) - 1, 5).astype(int))


def same_column(a, b):
    return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


def rows_for(solver, c):
    """Return the training rows, or others for a solver that learns nothing from those."""
    return c.X_new[-len(c.X) :] if solver.needs_unseen_rows else c.X


def solve(solver, name, cost=None):
    """Return the path of a solver on a model."""
    c = case(name)
    given = {"sample_weight": c.sample_weight, "cost": cost}
    return sc.prune_path(adapter_of(name), rows_for(solver, c), c.y, solver=solver, **given)


solved_once = lru_cache(maxsize=None)(solve)


@solvers
def test_a_solver_is_frozen_and_named_after_its_place_in_the_table(solver):
    assert SOLVERS[solver.name] is type(solver)
    assert type(solver).__dataclass_params__.frozen
    again = type(solver)(**dataclasses.asdict(solver))
    assert (again, hash(again)) == (solver, hash(solver))


@solvers
@pytest.mark.contracts
@pytest.mark.each_kind(FOR_SOLVERS)
def test_the_path_is_right_or_refused_with_the_right_reason(solver, name):
    reason = reason_to_refuse(solver, adapter_of(name))
    if reason:
        with pytest.raises(ValueError, match=f"cannot prune this: .*{reason}.*\\.$"):
            solve(solver, name)
        return
    path = solve(solver, name)
    check_order(solver, path)
    check_numbers(path)
    raises = getattr(solver, "raising", False)  # masks of raised nodes have no cost of their own
    costs = [(solver.default_cost() or NodeCost()).name, *([] if raises else COSTS)]
    check_cost_and_risk(solver, path, case(name), costs)
    check_native_loss(path, case(name))
    check_promises(path, case(name))


@pytest.mark.contracts
@pytest.mark.parametrize("cost", list(COSTS))
@pytest.mark.parametrize("model", [FOREST, "random forest regressor, several targets"])
@pytest.mark.parametrize("solver", [*BY_COST, sc.solvers.ReducedError(raising=True)], ids=repr)
def test_a_path_for_another_cost_is_right_too(solver, model, cost):
    if cost == "features" and solver in BY_COST:
        with pytest.raises(ValueError, match="cannot prune this: the cost features is shared between nodes"):
            solve(solver, model, cost)
        return
    path = solve(solver, model, cost)
    check_order(solver, path)
    check_cost_and_risk(solver, path, case(model), [cost])


def check_order(solver, path):
    """Assert that the path runs from the unpruned model to the smallest."""
    assert path.masks.keep(0).all()
    if "rising" not in path.info.runs or path.info.cost == "nodes":  # two runs may differ in depth at the same size
        assert (np.diff(path.table["cost"]) <= 1e-9).all()
    if not isinstance(solver, sc.solvers.CostDescent):  # its points are in the order of what they cost
        assert (np.diff(path.table["n_nodes"]) <= 0).all()
    penalty = path.table["penalty"]  # NaN where the method has none
    if isinstance(path.masks, NestedMasks) and not np.isnan(penalty).all():
        assert (np.diff(penalty) >= 0).all()
    assert len({len(column) for column in path.table.values()}) == 1


def check_numbers(path):
    """Assert that every count in the table is that of the pruned forest."""
    for point in some_points(path):
        check_keep(path.forest, path.masks.keep(point))
        pruned, row = path[int(point)].forest, path[int(point)].row
        assert row["n_nodes"] == pruned.n_nodes
        assert row["n_leaves"] == pruned.n_leaves
        assert row["n_trees"] == pruned.n_trees
        assert row["depth"] == pruned.max_depth
        assert row["n_features"] == len(pruned.features_used)


def check_cost_and_risk(solver, path, c, costs):
    """Assert that cost and risk are those of the pruned forest as a problem of its own.

    The first cost is the one of the table; the others are those of the same masks.
    """
    rows = path.source.rows(rows_for(solver, c))
    sample = read_sample(path.source, rows_for(solver, c), c.y, c.sample_weight)
    loss = loss_named(path.info.loss)
    columns = [path.table["cost"]]
    columns += [Problem(path.forest, sample, loss, COSTS[cost]()).costs(path.masks) for cost in costs[1:]]
    for point in some_points(path):
        pruned = path[int(point)].forest
        own_rows = replace(sample, leaves=route(pruned, rows))
        for cost, column in zip(costs, columns, strict=True):
            alone = Problem(pruned, own_rows, loss, COSTS[cost]())
            assert column[point] == pytest.approx(alone.unpruned_cost), cost
        if solver.uses_ensemble_loss:
            losses = loss.rows(pruned, own_rows.scores(pruned), sample.y)
            assert path.table["risk"][point] == pytest.approx(np.average(losses, weights=sample.weight))
        elif pruned.trees_predict_target and pruned.n_trees == path.forest.n_trees:
            assert path.table["risk"][point] == pytest.approx(alone.risk[~pruned.is_split].sum() / pruned.n_trees)


def check_native_loss(path, c):
    """Assert that the native model of a point has the loss the path reports."""
    X = c.X_new[: len(c.X)]
    path = path.evaluate(X, c.y)
    loss = loss_named(path.info.loss)
    for point in some_points(path):
        native = adapt(path[int(point)].to_model())
        sample = read_sample(native, X, c.y)
        y = sample.y if native.supervised else read_sample(path.source, X, c.y).y
        losses = loss.rows(native.forest, sample.scores(native.forest), y)
        assert path.table["loss"][point] == pytest.approx(losses.mean(), rel=1e-12, abs=1e-15)
    assert path.table["changed"][0] == 0.0


def check_coverage(path, c):
    """Assert that a model of a quantile stays one, within three standard errors of a difference of coverages."""
    name, _, level = (path.forest.objective or "").partition(":")
    for point in some_points(path) if name == "quantile" else []:
        distance = [abs(np.mean(c.y <= path[k].predict(c.X)) - float(level)) for k in (0, int(point))]
        error = np.sqrt(2 * float(level) * (1 - float(level)) / len(c.y))
        assert distance[1] <= distance[0] + 3 * error, (point, distance)


def check_promises(path, c):
    """Assert that native models of the path keep what the unpruned model promises: range, probabilities, order."""
    adapter, X = path.source, c.X_new[: len(c.X)]
    check_coverage(path, c)
    natural = range_of(adapter.forest)
    ordered = adapter.forest.monotone is not None and sc.check_monotonic(adapter.forest).holds
    for point in some_points(path) if natural or ordered else []:
        native = adapt(path[int(point)].to_model())
        assert not ordered or sc.check_monotonic(native.forest).holds
        if natural is None:
            continue
        raw = native.forest.response.mean(read_sample(native, X, c.y).scores(native.forest), adapter.forest.n_classes)
        for block in raw:
            assert block.min() >= 0
            assert block.max() <= natural.high
            if natural.simplex:
                np.testing.assert_array_almost_equal_nulp(block.sum(axis=1), np.ones(len(X)), 4)


@solvers
def test_a_saved_path_is_the_same_path(solver, tmp_path):
    c = case(FOREST)
    path = solved_once(solver, FOREST).evaluate(c.X_new[:50], c.y[:50])
    file = path.save(tmp_path / "path.npz")
    for again in (Path.load(file), Path.load(file, c.model)):
        assert list(again.table) == list(path.table)
        assert all(same_column(again.table[k], path.table[k]) for k in path.table)
        assert (again.solver, again.info) == (path.solver, path.info)
        assert all(np.array_equal(again.masks.keep(i), path.masks.keep(i)) for i in range(len(path)))
    assert isinstance(Path.load(file)[1].to_model(), sc.Forest)
    native = Path.load(file, c.model)[1].to_model()
    assert np.array_equal(native.predict(c.X), path[1].to_model().predict(c.X))


@solvers
def test_the_same_problem_gives_the_same_path(solver):
    first, second = solved_once(solver, FOREST), solve(solver, FOREST)
    assert first is not second
    assert all(same_column(first.table[k], second.table[k]) for k in first.table)
