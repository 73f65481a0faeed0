"""Compute feature-cost paths of a model from a file in a new process; print seconds, memory and results.

`python -m benchmarks.probe_feature_cost FILE`: FILE holds a model, X, y, a list of solvers and how many times they take
turns, written by joblib. Prints JSON: the edges of the problem, and for each solver the median seconds of a path once
rows are routed, the seconds of routing, the bytes by which the peak was above what was resident after loading (null
where there is no Linux), and the columns penalty, risk and cost of the path.
"""

import json
import sys
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import joblib
import numpy as np
from sklearn.ensemble import RandomForestClassifier

from benchmarks.probe import resident, status
from benchmarks.results import Row
from secateur import kernels
from secateur.costs import FeatureCost
from secateur.data.rows import read_sample
from secateur.libraries import adapt
from secateur.losses import ZeroOne
from secateur.problem import Problem
from secateur.solvers import Solver

_LINUX = sys.platform == "linux"
_SOON = 0.5
"""Seconds below which a run is too short to be measured once."""
_MORE = 4


def main(file: str) -> None:
    """Load the model, compute the paths and print."""
    model, X, y, solvers, repeats = joblib.load(file)
    warm_up(solvers)
    rounds = [[turn(model, X, y, solver) for solver in solvers] for _ in range(repeats)]
    found = [
        {**turns[0][0], "seconds": median(run["seconds"] for runs in turns for run in runs)}
        for turns in zip(*rounds, strict=True)
    ]
    print(json.dumps({"edges": count_edges(read_problem(model, X, y)), "solvers": found}))


def warm_up(solvers: list[Solver]) -> None:
    """Run every solver once, so that compiled kernels do not count as memory of the path."""
    rows, labels = np.eye(8), np.arange(8) % 2
    tiny = RandomForestClassifier(2, max_depth=2, random_state=0).fit(rows, labels)
    for solver in solvers:
        measure(tiny, rows, labels, solver)


def turn(model: Any, X: Any, y: Any, solver: Solver) -> list[Row]:
    """Return the measurements of one run, or of several if a run is short."""
    first = measure(model, X, y, solver)
    more = _MORE if first["seconds"] < _SOON else 0
    return [first, *(measure(model, X, y, solver) for _ in range(more))]


def measure(model: Any, X: Any, y: Any, solver: Solver) -> Row:
    """Return time, memory and results of one path."""
    before = 0
    if _LINUX:
        before = resident()
        Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    start = perf_counter()
    problem = read_problem(model, X, y)
    routed = perf_counter()
    path = solver.path(problem)
    end = perf_counter()
    return {
        "seconds": end - routed,
        "seconds_routing": routed - start,
        "bytes": status("VmHWM") - before if _LINUX else None,
        **{name: path.table[name].tolist() for name in ("penalty", "risk", "cost")},
    }


def read_problem(model: Any, X: Any, y: Any) -> Problem:
    adapter = adapt(model)
    return Problem(adapter.forest, read_sample(adapter, X, y), ZeroOne(), FeatureCost())


def count_edges(problem: Problem) -> int:
    """Return the number of distinct features on the path of each row in each tree, summed over rows and trees."""
    forest, (resources, prices) = problem.forest, problem.price_table
    split = np.flatnonzero(forest.is_split)
    place = np.full(forest.n_nodes, -1, np.int32)
    place[split] = np.arange(len(split))
    rows = (problem.sample.leaves, forest.tree_start, forest.parent, forest.feature)
    one_each = np.ones((1, prices.shape[1]), np.int64)
    return int(kernels.price_needs(*rows, place, resources, one_each, len(split)).sum())


if __name__ == "__main__":
    main(*sys.argv[1:])
