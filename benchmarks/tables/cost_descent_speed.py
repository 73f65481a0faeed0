"""Time Speed of CostDescent against the exact path of MinCut of MinCut on the same forest and rows."""

from time import process_time
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier

import secateur as sc
from benchmarks.discovery import Table, data_sets
from benchmarks.load import DataNotFoundError, load
from benchmarks.results import Result, Row, Target
from secateur.costs import FeatureCost
from secateur.data.rows import read_sample
from secateur.libraries import adapt
from secateur.losses import ZeroOne
from secateur.problem import Problem
from secateur.solvers import CostDescent, MinCut

_SIZES = [("pendigits", 40), ("letter", 40), ("letter", 100)]
_REPEATS = 3
_NOTES = [
    "Random forests with default settings, trained and pruned on three quarters of the rows; every feature costs 1. "
    "Processor seconds of solver.path(problem), after routing and compilation; methods alternate, and medians are "
    "reported.",
    "cut: MinCut(), every optimal pruning. anneal: CostDescent(elimination=False), 16 penalties, each with three "
    "annealing stages and the exact objective. both: CostDescent(), which adds the elimination of features. ratio, "
    "ratio_both: seconds / seconds of cut.",
    "mb: memory that does not depend on the path, by formula: 4 bytes for each distinct feature on the path of a "
    "row in a tree (edges), 2 for each row and feature.",
]


def run(quick: bool) -> Result:
    rows: list[Row] = []
    skipped: list[str] = []
    for name, n_trees in [("breast_cancer", 3)] if quick else _SIZES:
        try:
            data = load(data_sets()[name])
        except DataNotFoundError as error:
            skipped.append(str(error))
            continue
        order = np.random.default_rng(0).permutation(len(data.y))[: 3 * len(data.y) // 4]
        rows.append({"data": name, "trees": n_trees, **measure(data.X[order], data.y[order], n_trees, quick)})
    slowest = max((row["ratio"] for row in rows if row["data"] == "letter"), default=None)
    wanted = Target("letter: annealed path of 16 penalties over the path of MinCut", slowest, at_most=4)
    return Result(rows, 1 if quick else _REPEATS, _NOTES, [wanted], skipped=skipped)


def measure(X: Any, y: Any, n_trees: int, quick: bool) -> Row:
    """Return medians and ratios for one forest."""
    adapter = adapt(RandomForestClassifier(n_trees, random_state=0, n_jobs=-1).fit(X, y))
    sample = read_sample(adapter, X, y)
    solvers: dict[str, sc.solvers.Solver] = {
        "cut": MinCut(),
        "anneal": CostDescent(elimination=False),
        "both": CostDescent(),
    }
    seconds: dict[str, list[float]] = {name: [] for name in solvers}
    points = {}
    for turn in range(1 if quick else _REPEATS + 1):
        for name, solver in solvers.items():
            problem = Problem(adapter.forest, sample, ZeroOne(), FeatureCost())
            start = process_time()
            points[name] = len(solver.path(problem))
            if turn or quick:
                seconds[name].append(process_time() - start)
    medians = {name: float(np.median(times)) for name, times in seconds.items()}
    edges = count_edges(problem)
    return {
        "rows": len(X),
        "features": X.shape[1],
        "nodes": adapter.forest.n_nodes,
        "edges": edges,
        **medians,
        "ratio": medians["anneal"] / medians["cut"],
        "ratio_both": medians["both"] / medians["cut"],
        **{f"points_{name}": n for name, n in points.items()},
        "mb": (4 * edges + 2 * len(X) * X.shape[1]) / 1e6,
    }


def count_edges(problem: Problem) -> int:
    """Return the number of distinct features on the path of each row in each tree, summed over rows and trees."""
    from secateur import kernels

    forest, price_table = problem.forest, problem.price_table
    _, listed = kernels.list_rows(
        problem.sample.leaves,
        forest.tree_start,
        forest.parent,
        forest.feature,
        price_table.resources,
        price_table.prices.shape[1],
    )
    return len(listed)


TABLE = Table("cost_descent_speed", "Speed of CostDescent against the exact path of MinCut", run)
