"""Reproduce figures 2 and 4 (bottom row) of Liu and Mazumder 2023: depths of pruned trees, and error at equal size."""

import warnings
from dataclasses import replace
from io import BytesIO
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestRegressor

import secateur as sc
from benchmarks.discovery import Table, data_sets
from benchmarks.ensemble_contest import INCREASES
from benchmarks.ensemble_tables import find_data
from benchmarks.folds import Fold, make_fold
from benchmarks.load import load
from benchmarks.results import Result, Row, Target

_DATA = ("autoMpg", "no2", "boston", "stock", "socmob", "Moneyball", "abalone", "wind", "cpu_small", "houses")
_QUICK = ("diabetes",)
_FOLDS, _TREES = 2, 200
_MOST_ROWS = 1_000
_LAYERS = sc.solvers.BlockDescent(granularity="layer", values="keep")
_POLISHED = replace(_LAYERS, polish="ridge")
_BY_DEPTH = replace(_POLISHED, weights="depth")
_RIVALS: dict[str, Any] = {
    "baseline": sc.solvers.FewerTrees(),
    "LASSO": sc.solvers.TreeLasso(),
    "BSTS": None,
    "CCP": sc.solvers.WeakestLink(),
    "layers unpolished": _LAYERS,
    "auto": None,
}
_NOTES = [
    f"{_TREES} trees of depth at most 20, √features per split; {_FOLDS} of five folds of at most {_MOST_ROWS} rows: a "
    "fifth tests, a fifth validates, the rest trains. ForestPrune is polished: layers, then tree weights by ridge "
    "regression.",
    "First grid, figure 4: limit: how much the validation loss of the pruned forest may exceed that of the "
    "forest. times_smaller: nodes before / nodes after (geometric mean). change_%: test error against the "
    "forest's. depth: mean depth of its trees, 20 or less before pruning (depth_before).",
    "rival_…: the median over data sets and folds of how much higher the test error of a rival is, in %, for "
    "its model with the lowest validation loss and at most as many nodes; a constant if it has none that small."
    " baseline: the first trees of the forest. LASSO: TreeLasso. BSTS: BestSubset within these nodes, one "
    "second. CCP: WeakestLink. auto: prune() within these nodes. share_…: in how many % of folds the rival's "
    "error is higher.",
    "Second grid, figure 2: depths of the trees that are left at equal size, the largest model within the nodes"
    " of the first grid at 5 %, if a layer is priced by its nodes (as above) or every layer alike. The paper: "
    "node weights give shallower trees, and more of them.",
    "The paper (25 data sets of full size): 10 to 20 times smaller at 1 %, for 1 to 5 % more error; trees of "
    "depth about 5; rivals' medians at 1, 2.5 and 5 %: baseline 220, 250, 250; LASSO 130, 190, 220; BSTS 5, 40,"
    " 80; CCP 78, 78, 110.",
    "Figure 2 of the paper shows one ensemble, and figure 4 distributions as boxes; figure 3 is in "
    "[forestprune_optimality](forestprune_optimality.md).",
]


def run(quick: bool) -> Result:
    found, skipped = find_data(_QUICK if quick else _DATA, unavailable=[])
    tasks = [(name, fold) for name in found for fold in range(1 if quick else _FOLDS)]
    outcomes = Parallel(1 if quick else 2, batch_size=1)(delayed(measure)(*task, quick) for task in tasks)
    rows = [row for rows, _ in outcomes for row in rows]
    depths = [row for _, rows in outcomes for row in rows]
    limits = INCREASES[-1:] if quick else INCREASES
    table = [summarise([row for row in rows if row["limit"] == limit], limit) for limit in limits]
    shapes = [mean_shape(depths, name) for name in ("nodes", "depth")]
    by_nodes, by_depth = (float(shape["depth"]) for shape in shapes)
    targets = [Target("depth of trees by node weights / by depth weights", by_nodes / by_depth, at_most=1.0)]
    return Result(table, 1 if quick else _FOLDS, _NOTES, targets, shapes, skipped, draw(rows, depths, limits))


def measure(name: str, fold: int, quick: bool) -> tuple[list[Row], list[Row]]:
    """Return a row for each limit, and the shapes of both kinds of weights at the last, on one fold."""
    data = load(data_sets()[name]).sample(200 if quick else _MOST_ROWS, seed=0)
    parts = make_fold(data, fold)
    model = RandomForestRegressor(10 if quick else _TREES, max_depth=20, max_features="sqrt", random_state=0)
    model.fit(parts.train.X, parts.train.y)
    full, full_error = sc.as_forest(model), parts.error(model.predict(parts.test.X))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pruned = path_of(model, parts, _POLISHED)
        fixed = {name: path_of(model, parts, solver) for name, solver in _RIVALS.items() if solver is not None}
        rows = []
        for limit in INCREASES[-1:] if quick else INCREASES:
            point = smallest_within(pruned, limit)
            nodes, error = point.row["n_nodes"], parts.error(point.predict(parts.test.X).ravel())
            rivals = {
                **fixed,
                "BSTS": path_of(model, parts, sc.solvers.BestSubset(max_nodes=int(nodes), time_limit=1.0)),
            }
            errors = {name: error_within(path, parts, nodes) for name, path in rivals.items()}
            validation = (parts.validation.X, parts.validation.y)
            auto = sc.prune(model, parts.train.X, parts.train.y, validation=validation, max_nodes=int(nodes))
            errors["auto"] = parts.error(auto.predict(parts.test.X))
            rows.append(
                {
                    "limit": limit,
                    "times_smaller": full.n_nodes / nodes,
                    "change_%": 100 * (error / full_error - 1),
                    "depth_before": mean_depth(full),
                    "depth": mean_depth(point.forest),
                    **{name: 100 * (errors[name] / error - 1) for name in _RIVALS},
                }
            )
        shapes = [
            {"weights": kind, **shape_within(path_of(model, parts, solver), int(nodes))}
            for kind, solver in (("nodes", _POLISHED), ("depth", _BY_DEPTH))
        ]
    return rows, shapes


def path_of(model: Any, parts: Fold, solver: sc.solvers.Solver) -> sc.Path:
    """Return the path on the training rows, evaluated on the validation rows."""
    path = sc.prune_path(model, parts.train.X, parts.train.y, solver=solver)
    return path.evaluate(parts.validation.X, parts.validation.y)


def smallest_within(path: sc.Path, limit: float) -> sc.Pruned:
    """Return the smallest pruning whose validation loss exceeds that of the forest by at most the limit."""
    nodes, loss = path.table["n_nodes"], path.table["loss"]
    return path[int(np.where(loss <= (1 + limit) * loss[0], nodes, nodes[0] + 1).argmin())]


def error_within(path: sc.Path, parts: Fold, nodes: int) -> float:
    """Return the test error of the best point of at most so many nodes, of a constant if there is none."""
    if path.table["n_nodes"].min() > nodes:
        return parts.error(np.zeros(len(parts.test.y)))
    return parts.error(path.select(max_nodes=int(nodes), rule="lowest").predict(parts.test.X).ravel())


def shape_within(path: sc.Path, nodes: int) -> Row:
    """Return the number and depths of the trees of the largest point of at most so many nodes."""
    forest = path.select(max_nodes=max(nodes, int(path.table["n_nodes"].min())), rule="fullest").forest
    return {"trees": forest.n_trees, "nodes": forest.n_nodes, "depths": tree_depths(forest).tolist()}


def tree_depths(forest: sc.Forest) -> NDArray[np.int32]:
    """Return the depth of every tree, (n_trees,)."""
    return np.maximum.reduceat(forest.depth, forest.root) if forest.n_trees else np.zeros(1, np.int32)


def mean_depth(forest: sc.Forest) -> float:
    """Return the mean depth of the trees."""
    return float(tree_depths(forest).mean())


def summarise(rows: list[Row], limit: float) -> Row:
    """Return means over data sets and folds, and medians of the rivals."""
    values = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return {
        "limit": f"{100 * limit:g} %",
        "folds": len(rows),
        "times_smaller": float(np.exp(np.log(values["times_smaller"]).mean())),
        "change_%": float(values["change_%"].mean()),
        "depth_before": float(values["depth_before"].mean()),
        "depth": float(values["depth"].mean()),
        **{f"rival_{name}": float(np.median(values[name])) for name in _RIVALS},
        **{f"share_{name}": float(100 * np.mean(values[name] > 0)) for name in _RIVALS},
    }


def mean_shape(rows: list[Row], kind: str) -> Row:
    """Return the means of one kind of weights over data sets and folds."""
    same = [row for row in rows if row["weights"] == kind]
    return {
        "weights": kind,
        "nodes": float(np.mean([row["nodes"] for row in same])),
        "trees": float(np.mean([row["trees"] for row in same])),
        "depth": float(np.mean([np.mean(row["depths"]) for row in same])),
    }


def draw(rows: list[Row], depths: list[Row], limits: tuple[float, ...]) -> bytes:
    """Return the depths of trees and the rivals' errors as boxes, as a PNG file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4), layout="constrained")
    shapes, left, right = figure.subplots(1, 3, width_ratios=[1, 1, 2])
    for kind, colour in (("nodes", "tab:blue"), ("depth", "tab:orange")):
        every = np.concatenate([row["depths"] for row in depths if row["weights"] == kind])
        shapes.hist(every, np.arange(22) - 0.5, density=True, alpha=0.6, color=colour, label=f"priced by {kind}")
    shapes.set_title("Figure 2: depths, equal size", fontsize=11)
    shapes.set_xlabel("depth of a tree")
    shapes.legend()
    before = [row["depth_before"] for row in rows if row["limit"] == limits[0]]
    after = [[row["depth"] for row in rows if row["limit"] == limit] for limit in limits]
    left.boxplot([before, *after], tick_labels=["before", *(f"{100 * limit:g} %" for limit in limits)])
    left.set_title("Figure 4, left: mean depth", fontsize=11)
    for index, limit in enumerate(limits):
        values = [[row[name] for row in rows if row["limit"] == limit] for name in _RIVALS]
        places = np.arange(len(_RIVALS)) * (len(limits) + 1) + index
        right.boxplot(values, positions=places, widths=0.8, showfliers=False)
    right.set_xticks(np.arange(len(_RIVALS)) * (len(limits) + 1) + (len(limits) - 1) / 2, list(_RIVALS))
    right.axhline(0, color="black", linewidth=0.8)
    right.set_yscale("symlog", linthresh=10)
    right.set_title("Figure 4, right: error above ForestPrune's at equal size, %", fontsize=11)
    file = BytesIO()
    figure.savefig(file, format="png", dpi=110)
    return file.getvalue()


TABLE = Table(
    "forestprune_figures", "Depths and rivals of pruned bagged forests (ForestPrune paper, figures 2 and 4)", run
)
