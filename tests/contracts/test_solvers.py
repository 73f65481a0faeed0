"""What every solver must satisfy, on every kind of model; being in the table enrols a class."""

import dataclasses
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from tests.cases import FOR_SOLVERS, adapter_of, case

import secateur as sc
from secateur.costs import COSTS, NodeCost
from secateur.decision import check_keep
from secateur.io import adapt
from secateur.losses import LOSSES
from secateur.path import NestedMasks, Path
from secateur.problem import Problem
from secateur.routing import route
from secateur.sample import read_sample
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
solvers = pytest.mark.parametrize("solver", [solver() for solver in SOLVERS.values()] + VARIANTS, ids=repr)
cases = pytest.mark.parametrize("name", FOR_SOLVERS)


def some_points(path):
    return np.unique(np.linspace(0, len(path) - 1, 5).astype(int))


def same_column(a, b):
    return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


def rows_for(solver, c):
    """Return the training rows, or others for a solver that learns nothing from those."""
    return c.X_new[-len(c.X) :] if solver.needs_unseen_rows else c.X


@lru_cache(maxsize=256)  # as many as the tests of one model need, which come one after the other
def found_path(solver, name, cost):
    """Return the path of a solver on a model, or why there is none."""
    c = case(name)
    try:
        return sc.prune_path(
            adapter_of(name), rows_for(solver, c), c.y, solver=solver, sample_weight=c.sample_weight, cost=cost
        )
    except ValueError as error:
        if "cannot prune this" not in str(error):
            raise
        return str(error)


def make_path(solver, name, cost=None):
    """Return the path of a solver on a model, or skip the test if the solver says why it cannot."""
    own = (solver.default_cost() or NodeCost()).name
    path = found_path(solver, name, None if cost == own else cost)
    return path if isinstance(path, Path) else pytest.skip(path)


@solvers
def test_a_solver_is_frozen_and_named_after_its_place_in_the_table(solver):
    assert SOLVERS[solver.name] is type(solver)
    assert type(solver).__dataclass_params__.frozen
    again = type(solver)(**dataclasses.asdict(solver))
    assert (again, hash(again)) == (solver, hash(solver))


@solvers
@cases
def test_the_path_runs_from_the_unpruned_model_to_the_smallest(solver, name):
    path = make_path(solver, name)
    assert path.masks.keep(0).all()
    assert (np.diff(path.table["cost"]) <= 1e-9).all()
    if not isinstance(solver, sc.solvers.CostDescent):  # its points are in the order of what they cost
        assert (np.diff(path.table["n_nodes"]) <= 0).all()
    penalty = path.table["penalty"]  # NaN where the method has none
    if isinstance(path.masks, NestedMasks) and not np.isnan(penalty).all():
        assert (np.diff(penalty) >= 0).all()
    assert len({len(column) for column in path.table.values()}) == 1


@solvers
@cases
def test_every_number_in_the_table_is_that_of_the_pruned_forest(solver, name):
    path = make_path(solver, name)
    for point in some_points(path):
        check_keep(path.forest, path.masks.keep(point))
        pruned, row = path[int(point)].forest, path[int(point)].row
        assert row["n_nodes"] == pruned.n_nodes
        assert row["n_leaves"] == pruned.n_leaves
        assert row["n_trees"] == pruned.n_trees
        assert row["depth"] == pruned.max_depth
        assert row["n_features"] == len(pruned.features_used)


@solvers
@cases
@pytest.mark.parametrize("cost", list(COSTS))
def test_cost_and_risk_are_those_of_the_pruned_forest_as_a_problem_of_its_own(solver, name, cost):
    c = case(name)
    path = make_path(solver, name, cost=cost)
    rows = path.source.rows(rows_for(solver, c))
    sample = read_sample(path.source, rows_for(solver, c), c.y, c.sample_weight)
    for point in some_points(path):
        pruned = path[int(point)].forest
        loss = LOSSES[path.facts["loss"]]()
        alone = Problem(pruned, replace(sample, leaves=route(pruned, rows)), loss, COSTS[cost]())
        assert path.table["cost"][point] == pytest.approx(alone.unpruned_cost)
        if solver.judges_ensemble:
            losses = loss.rows(pruned, alone.sample.scores(pruned), sample.y)
            assert path.table["risk"][point] == pytest.approx(np.average(losses, weights=sample.weight))
        elif pruned.trees_predict_target and pruned.n_trees == path.forest.n_trees:
            assert path.table["risk"][point] == pytest.approx(alone.risk[~pruned.is_split].sum() / pruned.n_trees)


@solvers
@cases
def test_the_native_model_of_a_point_has_the_loss_the_path_reports(solver, name):
    c = case(name)
    path = make_path(solver, name).evaluate(c.X_new[: len(c.X)], c.y)
    loss = LOSSES[path.facts["loss"]]()
    for point in some_points(path):
        native = adapt(path[int(point)].to_model())
        sample = read_sample(native, c.X_new[: len(c.X)], c.y)
        y = sample.y if native.supervised else read_sample(path.source, c.X_new[: len(c.X)], c.y).y
        losses = loss.rows(native.forest, sample.scores(native.forest), y)
        assert path.table["loss"][point] == pytest.approx(losses.mean(), rel=1e-12, abs=1e-15)
    assert path.table["changed"][0] == 0.0


@solvers
def test_a_saved_path_is_the_same_path(solver, tmp_path):
    c = case("random forest classifier")
    path = make_path(solver, "random forest classifier").evaluate(c.X_new[:50], c.y[:50])
    file = path.save(tmp_path / "path.npz")
    for again in (Path.load(file), Path.load(file, c.model)):
        assert list(again.table) == list(path.table)
        assert all(same_column(again.table[k], path.table[k]) for k in path.table)
        assert (again.solver, again.facts) == (path.solver, path.facts)
        assert all(np.array_equal(again.masks.keep(i), path.masks.keep(i)) for i in range(len(path)))
    assert isinstance(Path.load(file)[1].to_model(), sc.Forest)
    native = Path.load(file, c.model)[1].to_model()
    assert np.array_equal(native.predict(c.X), path[1].to_model().predict(c.X))


@solvers
def test_the_same_problem_gives_the_same_path(solver):
    name = "random forest classifier, several targets"
    first, second = make_path(solver, name), found_path.__wrapped__(solver, name, None)
    assert first is not second
    assert all(same_column(first.table[k], second.table[k]) for k in first.table)


@solvers
def test_a_solver_that_cannot_says_why_before_it_starts(solver):
    c = case("gradient boosting classifier")
    adapter = adapt(c.model)
    problem = Problem(adapter.forest, read_sample(adapter, c.X, c.y), LOSSES["log_loss"](), COSTS["nodes"]())
    reason = solver.unsupported(problem)
    if reason is not None:
        assert reason.endswith(".")
        with pytest.raises(ValueError, match="cannot prune this: "):
            sc.prune_path(c.model, c.X, c.y, solver=solver, cost="nodes")
