"""Time ForestPrune's problem and its generalisation, at the sizes of table 1 of Liu and Mazumder 2023."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor

import secateur as sc
from benchmarks.discovery import Table
from benchmarks.measure import Job, take_turns
from benchmarks.results import Result, Row, Target
from secateur.costs import NodeCost
from secateur.data.rows import read_sample
from secateur.libraries import adapt
from secateur.losses import default_loss
from secateur.problem import Problem
from secateur.solvers import BlockDescent
from secateur.solvers.ensemble._descent import Descent
from secateur.solvers.ensemble.additive_model import additive

_ROOT = Path(__file__).resolve().parents[2]
_SIZES = [*((n_rows, (100, 500, 1000), 6) for n_rows in (1_145, 15_437, 50_164)), (8_192, (500,), 20)]
_MANY = 10_000_000
_SOLVERS = {
    "node, refit": BlockDescent(),
    "layer, keep": BlockDescent(granularity="layer", values="keep"),
}
_NOTES = [
    "Random forests on Friedman's first function with 20 features and noise of variance 1; a third of the features "
    "is drawn at each split. Smaller forests are the first trees of the largest one. The numbers of rows and of "
    "trees of depth 6 are those of table 1 of the ForestPrune paper. For 50164 rows and 1000 trees the paper "
    "reports 131 s for one penalty and 207 s for a path, on another machine and other data.",
    "node, refit: BlockDescent(). layer, keep: BlockDescent(granularity='layer', values='keep'), the paper's "
    "problem (1). All times are after routing.",
    "single: one descent from the empty ensemble, at the penalty whose point on the path is nearest to 1 % of the "
    "nodes; nodes_single is the number of nodes it keeps. path: solver.path(problem), 50 decreasing penalties with "
    "warm starts, from one that removes every split, and the table of the path with the loss of each point; "
    "descents: the same without the table. Paths of more than 10 million rows times trees are measured once.",
    "updates: the number of times the best subtree of a tree was computed; a sweep over all trees counts as many "
    "updates as there are trees. ns: nanoseconds of the descents per update and row.",
    "mb: the peak memory of prune_path in a separate process with compiled kernels, beyond model, X and y; it "
    "includes the neutral forest, routing, leaf indices and the path. mb_leaves: the leaf indices alone.",
]


def run(quick: bool) -> Result:
    sizes = [(60, (4,), 3)] if quick else _SIZES
    repeats = 1 if quick else 3
    rows: list[Row] = []
    warm_up()
    for n_rows, counts, depth in sizes:
        model, X, y = grow(n_rows, max(counts), depth)
        for n_trees in counts:
            some = first_trees(model, n_trees)
            rows += measure(some, X, y, {"rows": n_rows, "trees": n_trees, "depth": depth}, repeats)
    return Result(
        rows, repeats, _NOTES, targets([row for row in rows if (row["rows"], row["trees"]) == (50_164, 1000)])
    )


def warm_up() -> None:
    """Compile the kernels."""
    model, X, y = grow(50, 2, 2)
    for solver in _SOLVERS.values():
        sc.prune_path(model, X, y, solver=solver)


def grow(n_rows: int, n_trees: int, depth: int) -> tuple[Any, Any, Any]:
    X, y = make_friedman1(n_rows, 20, noise=1.0, random_state=0)
    forest = RandomForestRegressor(n_trees, max_depth=depth, max_features=1 / 3, n_jobs=-1, random_state=0)
    return forest.fit(X, y), X, y


def first_trees(model: Any, n_trees: int) -> Any:
    """Return the forest of the first trees."""
    few = copy(model).set_params(n_estimators=n_trees)
    few.estimators_ = model.estimators_[:n_trees]
    return few


def measure(model: Any, X: Any, y: Any, size: Row, repeats: int) -> Iterator[Row]:
    """Yield one row for each solver."""
    adapter = adapt(model)
    problem = Problem(adapter.forest, read_sample(adapter, X, y), default_loss(adapter.forest), NodeCost())
    if len(X) * len(model.estimators_) > _MANY:
        repeats = 1
    peaks = peak_megabytes(model, X, y)
    for name, solver in _SOLVERS.items():
        path, facts = measure_path(problem, solver, repeats)
        yield {
            **size,
            "nodes": adapter.forest.n_nodes,
            "solver": name,
            **measure_single(problem, solver, path),
            **facts,
            "mb": peaks.get(name),
            "mb_leaves": problem.sample.leaves.nbytes / 1e6,
        }


def measure_path(problem: Problem, solver: BlockDescent, repeats: int) -> tuple[sc.Path, Row]:
    """Return a path, its time, and the time of its descents."""
    paths: list[sc.Path] = []
    descents: list[Descent] = []

    def descend() -> None:
        descents.append(start(problem, solver))
        for _ in descents[-1].run():
            pass

    jobs = {"path": Job(lambda: paths.append(solver.path(replace(problem)))), "descents": Job(descend)}
    times = take_turns(jobs, repeats)
    updates = descents[-1].updates
    return paths[-1], {
        "seconds_path": times["path"],
        "seconds_descents": times["descents"],
        "updates_path": updates,
        "ns": 1e9 * times["descents"] / updates / len(problem.sample),
    }


def measure_single(problem: Problem, solver: BlockDescent, path: sc.Path) -> Row:
    """Return the time of one descent from the empty ensemble to about 1 % of the nodes."""
    size = path.table["n_nodes"]
    penalty = path.table["penalty"][1 + np.abs(np.log(size[1:] / (0.01 * size[0]))).argmin()]
    descents: list[Descent] = []

    def solve() -> None:
        descents.append(start(problem, solver))
        descents[-1].descend(penalty)

    time = take_turns({"single": Job(solve)}, repeats=3)["single"]
    kept = descents[-1].size(descents[-1].state)
    return {"seconds_single": time, "updates_single": descents[-1].updates, "nodes_single": kept}


def start(problem: Problem, solver: BlockDescent) -> Descent:
    """Return the descent of a solver before its first step."""
    fresh = replace(problem)  # a problem remembers its sums
    assert isinstance(solver.ridge, float)
    return Descent(additive(fresh), fresh, solver.settings(solver.values, solver.ridge))


def peak_megabytes(model: Any, X: Any, y: Any) -> dict[str, float]:
    """Return the memory of a path of each solver in a separate process, beyond the loaded data."""
    if sys.platform != "linux":
        return {}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.joblib"
        joblib.dump((model, X, y, list(_SOLVERS.values())), file)
        command = [sys.executable, "-m", "benchmarks.probe_path", str(file)]
        output = subprocess.run(command, cwd=_ROOT, check=True, capture_output=True, text=True).stdout
    return {name: int(peak) / 1e6 for name, peak in zip(_SOLVERS, output.split(), strict=True)}


def targets(rows: list[Row]) -> list[Target]:
    """Return the targets for the largest forest of the paper and the slower of both solvers."""
    most = {name: max((row[name] for row in rows), default=None) for name in ("seconds_single", "seconds_path", "mb")}
    return [
        Target("seconds of a single solve, 50164 rows and 1000 trees", most["seconds_single"], at_most=1),
        Target("seconds of a path, 50164 rows and 1000 trees", most["seconds_path"], at_most=10),
        Target("peak memory beyond model and X in MB, 50164 rows and 1000 trees", most["mb"], at_most=150),
    ]


TABLE = Table("block_descent_speed", "Time and memory of BlockDescent at the sizes of the ForestPrune paper", run)
