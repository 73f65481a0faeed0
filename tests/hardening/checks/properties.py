"""For random models of every library and every solver: the path starts with the model itself, cost and nodes decrease,
every number in it is that of the pruned model, whose predictions equal ours, no bound exceeds the optimum, and pruning
twice changes nothing.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import chain, combinations
from typing import Any

import numpy as np
from tests.cases.case import Case
from tests.feature_problems import all_prunings_of_all, random_problem, value_of
from tests.hardening import recomputed
from tests.hardening.checks import Figures
from tests.hardening.random_models import MAKERS, random_case
from tests.hardening.solving import all_solvers, found_path, is_clear
from tests.strategies import random_forest, random_rows, walk

import secateur as sc
from secateur.data.rows import read_sample
from secateur.forest import Forest
from secateur.path import Path
from secateur.solvers import Solver

LONG = 8
"""Number of random models of each library and task."""
BY_COST = {"cost_descent"}
"""Solvers that order points by feature cost, not by nodes."""


def run(scale: int) -> Figures:
    """Try every solver on `scale` random models of each library and task, and bounds on ten times as many forests."""
    solvers, figures = all_solvers(scale), Figures([])
    counts = {repr(solver): Counter() for solver in solvers}
    for library in MAKERS:
        native_runs = library != "pyspark" or scale > 1  # starting Spark takes longer than all other checks
        for task in ("numbers", "classes"):
            for seed in range(scale):
                case = random_case(library, task, np.random.default_rng(seed))
                for solver in solvers:
                    found = _survived(_try(solver, library, case, counts[repr(solver)], native_runs=native_runs))
                    figures.bad += [f"{text}, {library} {task}, seed {seed}, {solver!r}" for text in found]
    for seed in range(10 * scale):
        figures.bad += [f"{text}, seed {seed}" for text in _bounds(seed, counts)]
    names = ("paths", "refused", "points", "bounds", "twice: the same", "twice: smaller", *MAKERS)
    figures.rows += [{"solver": name, **{key: count[key] for key in names}} for name, count in counts.items()]
    figures.notes += _NOTES
    return figures


_NOTES = [
    "A path is counted under the library of its model; *secateur* is a Forest of random arrays. *refused*: models "
    "that a solver cannot prune; the error says what to do instead.",
    "*points*: prunings of which everything was recomputed row by row. *bounds*: lower bounds compared with the best "
    "of all prunings of a tiny forest.",
    "*twice*: the model is pruned twice with the same limit of nodes on the same rows. Solvers that keep the values "
    "of nodes change nothing the second time. Those that learn new values (their rows have `twice: smaller`) may then "
    "find a smaller model, never a larger one. MaxHeap uses new values to learn what to keep, even where it restores "
    "the old ones.",
    "Probabilities of Spark's boosted trees agree with ours to one unit in the last place, because Java's exponential "
    "differs from the C library's.",
    "CostDescent orders its points by feature cost, so the number of nodes may increase along the path.",
]


def _survived(found: Iterator[str]) -> Iterator[str]:
    """Yield what was found, and the error that was raised, if any."""
    try:
        yield from found
    except Exception as error:  # a failure of one solver must not hide those of others
        yield f"{type(error).__name__}: {error}"


def _try(solver: Solver, library: str, case: Case, count: Counter[str], *, native_runs: bool) -> Iterator[str]:
    """Yield what is wrong with a solver's path of a model."""
    path = found_path(solver, case.model, case.X, case.y, sample_weight=case.sample_weight)
    if isinstance(path, str):
        count["refused"] += 1
        if not is_clear(path) or "cannot prune this" not in path:
            yield f"an unclear refusal: {path}"
        return
    count.update(["paths", library])
    yield from _falls(solver, path)
    for point in np.unique(np.linspace(0, len(path) - 1, 4).astype(int)).tolist():
        count["points"] += 1
        yield from _point(case, path, point, native_runs)
    yield from _twice(solver, case, path, count)


def _falls(solver: Solver, path: Path) -> Iterator[str]:
    """Yield what is wrong with the order of points."""
    if not path.masks.keep(0).all() or not np.array_equal(path[0].forest.value, path.forest.value):
        yield "the first point is not the unpruned model"
    if (np.diff(path.table["cost"]) > 1e-9).any():
        yield "the cost rises along the path"
    if solver.name not in BY_COST and (np.diff(path.table["n_nodes"]) > 0).any():
        yield "the nodes rise along the path"
    usual = ("n_nodes", "n_leaves", "n_trees", "n_features", "depth", "cost", "risk")
    if not all(np.isfinite(path.table[name]).all() for name in usual):
        yield "a number in the table is not finite"


def _point(case: Case, path: Path, point: int, native_runs: bool) -> Iterator[str]:
    """Yield what is wrong with the numbers and predictions of a point."""
    pruned, adapter = path[point], path.source
    rows = adapter.rows(case.X)
    sample = read_sample(adapter, case.X, case.y, case.sample_weight)
    recomputed.is_pruning(path, point)
    for name, number in recomputed.sizes(pruned.forest).items():
        if path.table[name][point] != number:
            yield f"{name} is {number}, and not {path.table[name][point]}, at point {point}"
    expected = {"cost": recomputed.cost(path.info.cost, pruned.forest, rows, sample.weight)}
    expected["risk"] = recomputed.risk(path, point, rows, sample.y, sample.weight)
    native = pruned.to_model()
    native_predictions = case.predictions(native, case.X) if native_runs else {}
    predicted = recomputed.as_array(native_predictions, path.forest)
    if path.info.judges == "ensemble" and predicted is not None:
        losses = recomputed.loss(path.info.loss, path.forest, predicted, sample.y)
        expected["risk"] = float(np.average(losses, weights=sample.weight))
    single = 1e-5 if path.forest.sum_dtype == "float32" else 0.0  # the native model predicts float32
    for name, number in expected.items():
        if number is not None and not np.isclose(path.table[name][point], number, rtol=1e-9 + single, atol=1e-12):
            yield f"{name} is {number:.17g}, and not {path.table[name][point]:.17g}, at point {point}"
    for method, answer in (case.predictions(native, case.X_new) if native_runs else {}).items():
        if not case.same(getattr(pruned, method)(case.X_new), answer):
            yield f"the native model predicts otherwise by {method} at point {point}"
    if point == 0 and native_runs:
        for method, answer in case.predictions(case.model, case.X).items():
            if not case.same(native_predictions[method], answer):
                yield f"the first point is not the model by {method}"


def _twice(solver: Solver, case: Case, path: Path, count: Counter[str]) -> Iterator[str]:
    """Yield what is wrong when a pruned model is pruned to the same limit again."""
    limit = int(np.sort(path.table["n_nodes"])[len(path) // 2])
    once = path.select(max_nodes=limit)
    again = found_path(solver, once.to_model(), case.X, case.y, sample_weight=case.sample_weight)
    if isinstance(again, str):
        yield f"its own result cannot be pruned again: {again}"
        return
    twice = again.select(max_nodes=limit)
    leaf = ~once.forest.is_split
    same_shape = np.array_equal(twice.forest.right, once.forest.right)
    if same_shape and (solver.changes or np.array_equal(twice.forest.value[leaf], once.forest.value[leaf])):
        count["twice: the same"] += 1
    elif twice.forest.n_nodes <= once.forest.n_nodes and (solver.changes or solver.name == "max_heap"):
        count["twice: smaller"] += 1
    else:
        yield f"pruning twice to {limit} nodes gives {twice.forest.n_nodes}, once {once.forest.n_nodes}"


def _bounds(seed: int, counts: dict[str, Counter[str]]) -> Iterator[str]:
    """Yield bounds above the optimum and objectives below it, on forests with few prunings."""
    rng = np.random.default_rng(seed)
    problem, X = random_problem(rng)
    labels = problem.forest.value.argmax(axis=1)
    values = [value_of(problem, X, kept, labels) for kept in all_prunings_of_all(problem.forest)]
    kinds = (sc.solvers.MinCut, sc.solvers.LinearProgram, sc.solvers.PrimalDual, sc.solvers.PartitionCut)
    for solver in [kind() for kind in kinds]:
        path = solver.path(problem)
        for penalty, bound, objective in zip(*(path.table[k] for k in ("penalty", "bound", "objective")), strict=True):
            truth = min(risk + penalty * cost for risk, cost in values)
            counts[repr(solver)]["bounds"] += 1
            yield from _compared(solver, bound, objective, truth)
    forest = random_forest(rng, n_trees=5, max_splits=3, aggregation="mean")
    X, y = random_rows(rng, 20, forest.n_features), rng.normal(size=20)
    path = sc.prune_path(forest, X, y, solver=sc.solvers.BestSubset())
    for point in range(1, len(path)):
        truth = _best_subset(forest, X, y, path.table["budget"][point])
        counts["BestSubset()"]["bounds"] += 1
        yield from _compared(path.solver, *(path.table[name][point] for name in ("bound", "objective")), truth)


def _compared(solver: Any, bound: float, objective: float, truth: float) -> Iterator[str]:
    """Yield a message unless the optimum is between bound and objective, up to rounding."""
    if bound > truth * (1 + 1e-9) + 1e-12 or objective < truth * (1 - 1e-9) - 1e-12:
        yield f"{solver} has bound {bound:.17g} and objective {objective:.17g} where {truth:.17g} is true"


def _best_subset(forest: Forest, X: Any, y: Any, budget: float) -> float:
    """Return the least squared error of weighted trees that fit a budget of nodes, of all subsets of trees."""
    contribution = np.array([[forest.value[walk(forest, tree, x), 0] for tree in range(forest.n_trees)] for x in X])
    contribution = (contribution - contribution.mean(axis=0)) / forest.divisor
    y = y - y.mean()
    size, ridge = np.diff(forest.tree_start), 1e-6 * (contribution**2).mean(axis=0).mean()
    best = float((y**2).mean())
    for chosen in chain.from_iterable(combinations(range(len(size)), k) for k in range(1, len(size) + 1)):
        if size[list(chosen)].sum() <= budget:
            some = contribution[:, list(chosen)]
            beta = np.linalg.solve(some.T @ some / len(y) + ridge * np.eye(len(chosen)), some.T @ y / len(y))
            best = min(best, float(((y - some @ beta) ** 2).mean() + ridge * beta @ beta))
    return best
