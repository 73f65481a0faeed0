"""Reproduce Dercksen 2017: BudgetPrune on Spark forests, with features paid once per tree or once per ensemble."""

import io
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.discovery import Table, data_sets
from benchmarks.load import Data, DataNotFoundError, load
from benchmarks.results import Result, Row, Target
from benchmarks.spark_session import frame_of

_DATA = ("iris", "glass", "vehicle")
_THESIS = {"iris": 0.97, "glass": 0.766, "vehicle": 0.712}
"""The accuracy of the unpruned forests in the thesis, its figure 5."""
_TREES, _DEPTH, _BINS, _SEEDS = 20, 5, 32, 5
_SHARES = np.linspace(0.0, 1.0, 21)
_SHOWN = (0.25, 0.5, 0.75, 0.9)
_PENALTIES = (0.01, 0.05)
_RULES = ("by_ensemble", "by_tree")
_LOST = 0.01
_AT = tuple(f"at_λ_{penalty:g}" for penalty in _PENALTIES)
_MEANS = ("unpruned", "kept_cost", "kept_accuracy", *_AT, "smallest", "in_trees")
_NOTES = [
    f"Spark's RandomForestClassifier, {_TREES} trees of depth {_DEPTH}, {_BINS} bins; features scaled to [-1, 1] by "
    f"the training rows; every feature costs 1; 70 % of the rows for training and pruning, 30 % for testing; mean "
    f"of {_SEEDS} splits.",
    "by_ensemble: MinCut; a feature is bought once per row, whichever trees use it: the exact path. by_tree: each "
    "tree pays for its own features, which is the objective of the thesis (PrimalDual with caching='tree'; this "
    "problem decomposes into trees and is solved exactly). Both count errors of training rows as in the thesis, and "
    "both are computed by spark.prune_path on a Spark DataFrame.",
    "Cost: distinct features of a row over all trees, as a fraction of that of the unpruned forest. The test "
    "accuracies at a fraction are those of the most expensive point of the path within it; nothing is selected on "
    "test rows. in_trees: the cost counted as in the thesis, separately for every tree, at the point within half of "
    "the cost.",
    "kept_cost: the lowest cost at which the accuracy on the training rows is at most one percentage point below "
    "that of the unpruned forest; kept_accuracy: the test accuracy of the same point. at λ: the cost at that "
    "penalty in formula (6) of the thesis. smallest: the lowest cost on the path above 0. thesis: the accuracy of the "
    "unpruned forest reported in the thesis, where the cost fell by about 1 % on the largest data set and by less "
    "on the others.",
]


def run(quick: bool) -> Result:
    found, skipped = [], []
    for name in ("iris",) if quick else _DATA:
        try:
            found.append(load(data_sets()[name]))
        except DataNotFoundError as error:
            skipped.append(str(error))
    measured = [row for data in found for seed in range(1 if quick else _SEEDS) for row in measure(data, seed, quick)]
    rows = [summarise(data.name, rule, measured) for data in found for rule in _RULES]
    return Result(
        rows,
        1 if quick else _SEEDS,
        _NOTES,
        targets(rows, len(found) == len(_DATA)),
        skipped=skipped,
        picture=draw(measured, [data.name for data in found]),
    )


def measure(data: Data, seed: int, quick: bool) -> list[Row]:
    """Return the curves of both rules on one split."""
    from pyspark.ml.classification import RandomForestClassifier

    from secateur.solvers import MinCut, PrimalDual
    from secateur.spark import evaluate, prune_path

    rng = np.random.default_rng(seed)
    order = rng.permutation(len(data.y))
    train, test = np.split(order, [round(0.7 * len(order))])
    X = scaled(data.X, train)
    rows, others = frame_of(X[train], data.y[train]).cache(), frame_of(X[test], data.y[test]).cache()
    forest = RandomForestClassifier(
        numTrees=4 if quick else _TREES, maxDepth=_DEPTH, maxBins=_BINS, impurity="gini", seed=seed
    ).fit(rows)
    measured = []
    solvers = {"by_ensemble": MinCut(errors="train"), "by_tree": PrimalDual(60, 1e-3, caching="tree", errors="train")}
    for rule, solver in solvers.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = prune_path(forest, rows, solver=solver)
            path, seen = evaluate(found, others), evaluate(found, rows).table["loss"]
        cost = path.table["cost"] / path.table["cost"][0]
        at = [int(np.flatnonzero(np.append(cost[:-1] <= share + 1e-12, True))[0]) for share in _SHARES]
        half = at[len(_SHARES) // 2]
        kept = np.flatnonzero(seen <= seen[0] + _LOST)
        cheapest = kept[cost[kept].argmin()]
        measured.append(
            {
                "data": data.name,
                "rule": rule,
                "unpruned": 1 - path.table["loss"][0],
                "accuracy": (1 - path.table["loss"][at]).tolist(),
                "reached": cost[at].tolist(),
                "kept_cost": float(cost[cheapest]),
                "kept_accuracy": float(1 - path.table["loss"][cheapest]),
                "smallest": float(cost[cost > 1e-12].min()),
                **{f"at_λ_{penalty:g}": float(cost[_point(path, penalty)]) for penalty in _PENALTIES},
                "in_trees": cost_in_trees(path, half, X[train]) / cost_in_trees(path, 0, X[train]),
            }
        )
    rows.unpersist()
    others.unpersist()
    return measured


def _point(path: Any, penalty: float) -> int:
    """Return the point that is best at a penalty."""
    return max(int(np.searchsorted(path.table["penalty"], penalty, side="right")) - 1, 0)


def scaled(X: NDArray[np.float64], rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the features scaled to [−1, 1] by the given rows."""
    low, high = X[rows].min(axis=0), X[rows].max(axis=0)
    return 2 * (X - low) / np.maximum(high - low, 1e-300) - 1


def cost_in_trees(path: Any, point: int, X: NDArray[np.float64]) -> float:
    """Return the number of features a row needs, counted separately for every tree."""
    from secateur.forest.routing import route

    forest = path[point].forest
    needed: list[set[int]] = []
    for node in range(forest.n_nodes):
        above = forest.parent[node]
        needed.append(set() if above == -1 else needed[above] | {int(forest.feature[above])})
    n_needed = np.array([len(features) for features in needed])
    leaves = route(forest, X).astype(np.intp) + forest.root[:, None]
    return float(n_needed[leaves].sum(axis=0).mean())


def summarise(data: str, rule: str, measured: list[Row]) -> Row:
    """Return the means over splits."""
    same = [row for row in measured if (row["data"], row["rule"]) == (data, rule)]
    accuracy = np.mean([row["accuracy"] for row in same], axis=0)
    shown = {f"{100 * share:g}_%": float(accuracy[round(20 * share)]) for share in _SHOWN}
    means = {name: float(np.mean([row[name] for row in same])) for name in _MEANS}
    return {"data": data, "rule": rule, "thesis": _THESIS[data], "unpruned": means.pop("unpruned"), **shown, **means}


def targets(rows: list[Row], whole: bool) -> list[Target]:
    """Return the target: the cost falls as λ grows, by ten times the 1 % of figure 6b of the thesis."""
    cost = [row[_AT[-1]] for row in rows if row["rule"] == "by_ensemble"]
    what = f"cost by ensemble at λ = {_PENALTIES[-1]:g}, largest over data"
    return [Target(what, max(cost) if whole else None, at_most=0.9)]


def draw(measured: list[Row], names: list[str]) -> bytes:
    """Return the curves as a picture."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * max(len(names), 1), 3.4))
    axes = figure.subplots(1, max(len(names), 1), squeeze=False)[0]
    for axis, name in zip(axes, names, strict=False):
        for rule, colour in zip(_RULES, ("tab:green", "tab:orange"), strict=True):
            curves = [row["accuracy"] for row in measured if (row["data"], row["rule"]) == (name, rule)]
            axis.plot(100 * _SHARES, np.mean(curves, axis=0), label=rule.replace("_", " "), color=colour)
        axis.axhline(_THESIS[name], color="grey", linestyle=":", label="unpruned, in the thesis")
        axis.set_title(name, fontsize=10)
        axis.set_xlabel("cost of features, % of the unpruned forest's")
    axes[0].set_ylabel("test accuracy")
    axes[0].legend(fontsize=8, frameon=False)
    figure.tight_layout()
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=100)
    return stream.getvalue()


TABLE = Table("spark_thesis", "Feature cost on Spark forests, as in Dercksen 2017", run)
