"""Run the case study of Liu and Mazumder 2023, section 4.3: prune a forest on wide data to few trees and features."""

from dataclasses import replace
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeRegressor, plot_tree

import secateur as sc
from benchmarks.discovery import Table, data_sets
from benchmarks.load import Data, DataNotFoundError, load
from benchmarks.results import Result, Row

_DATA = ("mercedes", "tecator")
_TREES = (1, 2, 3, 5, 10, 11, 20, 50, 100, 200, 500)
_SHOWN = 10
_LAYERS = sc.solvers.BlockDescent(granularity="layer", values="keep", polish="subset")
_TREE_PRICES = (0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4)
_COLOURS = {
    "node, refit": "tab:blue",
    "layer, then subset": "tab:red",
    "layer, joint subset": "tab:orange",
    "fewer trees": "tab:gray",
}
_NOTES = [
    "A random forest of 500 trees of depth 6 on data with many features; a third of the features is drawn at each "
    "split. Half of the rows are used for training and pruning. A quarter of the rows selects the point with the "
    "lowest loss among those with at most a given number of trees; a quarter is used for testing. One split. "
    "at_most: 1, 2, 3, 5, 10, 11, 20, 50, 100, 200 and 500 trees, as long as a larger number leaves more trees.",
    "node, refit: BlockDescent with four ridges and max_trees. layer, then subset: the paper's recipe, ForestPrune's "
    "layers followed by best subset polishing, problem (2), with a tree priced at .1, .03, .01, … .0001 of the loss "
    "without trees. layer, joint subset: both at once, problem (5). fewer trees: the first trees of the forest, "
    "unpruned.",
    "one tree: trained on the same rows, fully grown and to depth 6. rmse: on the test rows. features: the number "
    "of features used.",
    "The paper uses another data set (295 features of census tracts). It reports an RMSE of 7.54 for 500 trees on "
    "all features, 8.47 for 10 trees on 14 features, and 10.6 for one tree.",
]


def run(quick: bool) -> Result:
    rows, skipped, panels = [], [], []
    for name in ("diabetes",) if quick else _DATA:
        try:
            data = load(data_sets()[name])
        except DataNotFoundError as error:
            skipped.append(str(error))
            continue
        found, small = study(data, *((12, 2, (1, 12)) if quick else (500, 6, _TREES)))
        rows += found
        panels.append((name, found, small))
    return Result(rows, 1, _NOTES, skipped=skipped, picture=draw(panels) if panels else None)


def study(data: Data, n_trees: int, depth: int, limits: tuple[int, ...]) -> tuple[list[Row], Any]:
    """Return the selected models at each number of trees, and the model with at most ten."""
    X, X_rest, y, y_rest = train_test_split(data.X, data.y, test_size=0.5, random_state=0)
    X_val, X_test, y_val, y_test = train_test_split(X_rest, y_rest, test_size=0.5, random_state=0)
    forest = RandomForestRegressor(n_trees, max_depth=depth, max_features=1 / 3, n_jobs=-1, random_state=0).fit(X, y)
    grown = {"forest": forest}
    for name, most in (("one tree", None), ("one tree, depth 6", depth)):
        grown[name] = DecisionTreeRegressor(max_depth=most, random_state=0).fit(X, y)
    rows = [describe(data.name, name, model, X_test, y_test) for name, model in grown.items()]
    small = None
    for name, solvers in solvers_for(y).items():
        before = 0
        paths: dict[str, sc.Path] = {}
        for limit in limits:
            chosen = []
            for solver in solvers if len(solvers) > 1 else [solvers[0].with_budget(max_trees=limit)]:
                if repr(solver) not in paths:
                    paths[repr(solver)] = sc.prune_path(forest, X, y, solver=solver).evaluate(X_val, y_val)
                chosen.append(paths[repr(solver)].select(max_trees=limit))
            model = min(chosen, key=lambda point: point.row["loss"]).to_model()
            row = {**describe(data.name, name, model, X_test, y_test), "at_most": limit}
            rows += [row] if row["trees"] > before else []
            before = row["trees"]
            if small is None and limit >= _SHOWN:
                small = model
    return rows, small


def solvers_for(y: NDArray[np.float64]) -> dict[str, list[sc.solvers.Solver]]:
    """Return the solvers of each method; of several the one with the lowest validation loss is used."""
    prices = [share * float(((y - y.mean()) ** 2).sum()) for share in _TREE_PRICES]
    return {
        "node, refit": [sc.solvers.BlockDescent(ridge=(5.0, 25.0, 100.0, 400.0))],
        "layer, then subset": [replace(_LAYERS, polish_penalty=price) for price in prices],
        "layer, joint subset": [replace(_LAYERS, joint=True)],
        "fewer trees": [sc.solvers.FewerTrees()],
    }


def describe(data: str, name: str, model: Any, X: NDArray[np.float64], y: NDArray[np.float64]) -> Row:
    forest = sc.as_forest(model)
    return {
        "data": data,
        "model": name,
        "at_most": None,
        "trees": forest.n_trees,
        "nodes": forest.n_nodes,
        "depth": forest.max_depth,
        "features": len(forest.features_used),
        "rmse": float(np.sqrt(np.mean((model.predict(X) - y) ** 2))),
    }


def draw(panels: list[tuple[str, list[Row], Any]]) -> bytes:
    """Return loss and features against the number of trees, one line of panels per data set, and the first's trees."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    trees = list(panels[0][2].estimators_)
    wide = min(len(trees), 4)
    tall = -(-len(trees) // wide)
    figure = Figure(figsize=(13, 3.2 * len(panels) + 4 * tall), layout="constrained")
    FigureCanvasAgg(figure)  # plot_tree measures its boxes
    above, below = figure.subfigures(2, 1, height_ratios=[3.2 * len(panels), 4 * tall], hspace=0.04)
    grid = above.subplots(len(panels), 2, squeeze=False)
    for line, (name, rows, _) in zip(grid, panels, strict=True):
        draw_curves(line[0], rows, "rmse", f"{name}: RMSE on test rows")
        draw_curves(line[1], rows, "features", f"{name}: features used")
    grid[0, 1].legend(fontsize=8)
    below.suptitle(f"{panels[0][0]}: the {len(trees)} trees that node, refit leaves when it may keep ten", fontsize=11)
    boxes = below.subplots(tall, wide, squeeze=False).ravel()
    for box in boxes:
        box.axis("off")
    for box, tree in zip(boxes, trees, strict=False):
        plot_tree(tree, impurity=False, label="root", filled=True, precision=1, fontsize=7, ax=box)
    file = BytesIO()
    figure.savefig(file, format="png", dpi=110)
    return file.getvalue()


def draw_curves(panel: Any, rows: list[Row], what: str, title: str) -> None:
    """Draw one column against the number of trees; values far above the curves are given as text."""
    drawn = [row for row in rows if row["model"] in _COLOURS]
    for name, colour in _COLOURS.items():
        some = [row for row in drawn if row["model"] == name]
        panel.plot([r["trees"] for r in some], [r[what] for r in some], "o-", color=colour, markersize=4, label=name)
    low, high = (extreme(row[what] for row in drawn) for extreme in (min, max))
    for name, style in (("forest", "-"), ("one tree", ":"), ("one tree, depth 6", "--")):
        level = next(row[what] for row in rows if row["model"] == name)
        panel.axhline(level, color="black", linewidth=1, linestyle=style, label=name)
        if level > high + 0.3 * (high - low):
            panel.set_ylim(low - 0.1 * (high - low), high + 0.2 * (high - low))
            panel.text(0.98, 0.93, f"{name}: {level:.1f}", transform=panel.transAxes, ha="right")
    panel.set_xscale("log")
    panel.xaxis.set_major_formatter("{x:g}")
    panel.set_xlabel("trees left")
    panel.set_title(title, fontsize=11)
    panel.grid(alpha=0.3)


TABLE = Table("case_study", "A forest on wide data pruned to a few small trees", run)
