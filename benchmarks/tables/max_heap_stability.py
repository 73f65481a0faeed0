"""Reproduce figure 3 of Nie et al. 2017: the loss on pruning and test rows along both kinds of max-heap path."""

from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

import secateur as sc
from benchmarks.discovery import Table, data_sets
from benchmarks.load import DataNotFoundError, load
from benchmarks.results import Result, Row
from benchmarks.thirds import Thirds, split

Curve = dict[str, NDArray[Any]]
_KINDS = ("penalties", "stability")
_NOTES = [
    "Boston housing, two random splits into thirds as in [max_heap](max_heap.md); RMSE of the scaled price.",
    "penalties: the path of max_heap on the training rows, 40 penalties. stability: stability selection with 100 "
    "half-samples and 20 support thresholds; for each number of nodes, the best point on the pruning rows is drawn.",
    "chosen: the point with the lowest RMSE on the pruning rows, a ring in the picture. best_test: the lowest RMSE "
    "on the test rows along the curve, which cannot be selected without the test rows. According to the paper, "
    "chosen and best differ less with stability selection.",
]


def run(quick: bool) -> Result:
    plain, stable = sc.solvers.MaxHeap(), sc.solvers.MaxHeap(subsamples=100, thresholds=20)
    if quick:
        plain, stable = sc.solvers.MaxHeap(penalties=5), sc.solvers.MaxHeap(penalties=5, subsamples=2)
    skipped = []
    try:
        data = load(data_sets()["diabetes" if quick else "boston"])
    except DataNotFoundError as error:
        data = load(data_sets()["diabetes"])
        skipped.append(f"boston, with diabetes in its place: {error}")
    curves = []
    for thirds in (split(data, seed) for seed in (0, 1)):
        curves += [by_penalty(losses(thirds, plain)), by_nodes(losses(thirds, stable))]
    rows = [{"split": 1 + i // 2, "path": _KINDS[i % 2], **describe(curve)} for i, curve in enumerate(curves)]
    return Result(rows, 1, _NOTES, skipped=skipped, picture=draw(curves))


def losses(thirds: Thirds, solver: sc.solvers.Solver) -> Curve:
    """Return penalty, number of nodes and both RMSEs of every point but the unpruned tree."""
    path = sc.prune_path(thirds.tree, thirds.train.X, thirds.train.y, solver=solver)
    table = {"penalty": path.table["penalty"], "nodes": path.table["n_nodes"]}
    for name, part in (("prune", thirds.prune), ("test", thirds.test)):
        table[name] = np.sqrt(path.evaluate(part.X, part.y).table["loss"])
    return {name: column[1:] for name, column in table.items()}


def by_penalty(curve: Curve) -> Curve:
    """Return the points by increasing penalty; `x` is its fraction of the largest."""
    order = curve["penalty"].argsort()
    return {**take(curve, order), "x": curve["penalty"][order] / curve["penalty"].max()}


def by_nodes(curve: Curve) -> Curve:
    """Return for each number of nodes, `x`, the point that is best on the pruning rows."""
    order = np.lexsort((curve["prune"], curve["nodes"]))
    _, first = np.unique(curve["nodes"][order], return_index=True)
    return {**take(curve, order[first]), "x": curve["nodes"][order[first]]}


def take(curve: Curve, points: NDArray[np.intp]) -> Curve:
    return {name: column[points] for name, column in curve.items()}


def describe(curve: Curve) -> Row:
    """Return the point selected on the pruning rows, and its difference from the best point."""
    chosen = curve["prune"].argmin()
    return {
        "nodes": int(curve["nodes"][chosen]),
        "prune": float(curve["prune"][chosen]),
        "test": float(curve["test"][chosen]),
        "best_test": float(curve["test"].min()),
        "test_/_best": float(curve["test"][chosen] / curve["test"].min()),
    }


def draw(curves: list[Curve]) -> bytes:
    """Return the four panels, one row of them per split, as a PNG file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 7), layout="constrained")
    panels = figure.subplots(2, 2, sharey="row").ravel()
    for i, (panel, curve) in enumerate(zip(panels, curves, strict=True)):
        draw_panel(panel, curve, dots=i % 2 == 1)
        panel.set_title(f"({'abcd'[i]}) split {1 + i // 2}, {('all penalties', 'stability selection')[i % 2]}")
        panel.set_xlabel(("penalty / largest penalty", "number of nodes")[i % 2])
        panel.set_xscale("log")
        panel.set_ylabel("" if i % 2 else "RMSE")
    panels[0].legend()
    file = BytesIO()
    figure.savefig(file, format="png", dpi=110)
    return file.getvalue()


def draw_panel(panel: Any, curve: Curve, dots: bool) -> None:
    """Draw both losses, with a ring at the point chosen on the pruning rows."""
    chosen = curve["prune"].argmin()
    for name, colour in (("prune", "tab:blue"), ("test", "tab:orange")):
        label = {"prune": "pruning rows", "test": "test rows"}[name]
        panel.plot(curve["x"], curve[name], "." if dots else ".-", color=colour, label=label)
    for name, label in (("prune", "chosen on the pruning rows"), ("test", None)):
        place = curve["x"][chosen], curve[name][chosen]
        panel.plot(*place, "o", color="black", markersize=10, markerfacecolor="none", label=label)
    panel.grid(alpha=0.3)


TABLE = Table("max_heap_stability", "Loss along max-heap paths with and without stability selection", run)
