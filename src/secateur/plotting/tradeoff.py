"""Plot the trade-off between loss and size or cost of a path, and dispatch to the other kinds of plot."""

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from secateur._util.text import printable, shortened
from secateur.errors import InvalidInputError
from secateur.plotting._palette import CHOSEN, GREY, LINES, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from secateur.path import Path, Pruned

_AXIS_LABELS = {
    "n_nodes": "nodes",
    "n_leaves": "leaves",
    "n_trees": "trees",
    "n_features": "features used",
    "depth": "depth",
    "bytes": "bytes of the saved model",
    "penalty": "penalty",
}
_COST_LABELS = {
    "nodes": "nodes",
    "leaves": "leaves",
    "depth": "mean number of splits per row",
    "features": "mean price of features per row",
}
_LOSS_LABELS = {
    "brier": "Brier score",
    "zero_one": "misclassification rate",
    "log_loss": "log loss (nats)",
    "squared_error": "squared error",
}
_MAX_NAME_LENGTH = 60
# Steps of the cost wider than this fraction of the unpruned cost are shaded as gaps.
_WIDE_STEP = 0.1

Floats = NDArray[np.float64]


def draw(path: "Path", kind: str, ax: "Axes | None", options: dict[str, Any]) -> "Axes":
    """Draw a plot of the given kind ("tradeoff", "tree" or "features") and return its axes.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    InvalidInputError
        If the kind is unknown.
    """
    if kind == "tradeoff":
        return draw_tradeoff(path, ax, **options)
    if kind == "tree":
        from secateur.plotting.tree_plot import draw_tree

        chosen = _chosen(path, options)
        return draw_tree(chosen, ax, support=path.support if chosen.given is None else None, **options)
    if kind == "features":
        from secateur.plotting.feature_bars import draw_features

        return draw_features(_chosen(path, options), ax, **options)
    raise InvalidInputError(f"Unknown kind of plot: {kind!r}. Use 'tradeoff', 'tree' or 'features'.")


def _chosen(path: "Path", options: dict[str, Any]) -> "Pruned":
    """Remove `point` from the options and return it as a `Pruned`; by default the point `select` returns."""
    point = options.pop("point", None)
    return path.select() if point is None else path[int(point)] if isinstance(point, int | np.integer) else point


def draw_tradeoff(
    path: "Path",
    ax: "Axes | None" = None,
    *,
    x: str | None = None,
    mark: "int | Pruned | None" = None,
    baselines: Mapping[str, "Path"] | None = None,
    label: str | None = None,
) -> "Axes":
    """Plot the loss against the size or the cost, from the unpruned model to the most pruned.

    Baselines are plotted as further lines. `mark` marks the chosen point. A path that has not been evaluated is plotted
    by its risk on the pruning rows.
    """
    x = x or size_column(path)
    y = "loss" if "loss" in path.table else "risk"
    others = {name: _with_column(other, x) for name, other in (baselines or {}).items()}
    _check_comparable(path, others)
    path = _with_column(path, x)
    ax = ax or new_axes()
    if x == "cost":
        _shade_gaps(ax, path)
    name = _legend_name(label) or (f"{y} of {_solver_name(path)}" if others else _legend_label(path, y))
    _draw_line(ax, path, x, y, name, LINES[0])
    if y == "loss" and _risk_is_comparable(path):
        line = points_of_line(path, x, y)
        size, risk = path.table[x][line], path.table["risk"][line]
        ax.plot(size, risk, color=LINES[0], lw=1, ls=":", label=_legend_label(path, "risk"))
    for (name, other), color in zip(others.items(), LINES[1:], strict=False):
        _draw_line(ax, other, x, y, _legend_name(name), color)
    _mark_points(ax, path, x, y, mark)
    _finish(ax, path, x, y)
    return ax


def size_column(path: "Path") -> str:
    """Return the table column of the path's cost: n_nodes, n_leaves, or cost for any other."""
    return {"nodes": "n_nodes", "leaves": "n_leaves"}.get(path.info.cost, "cost")


def _with_column(path: "Path", x: str) -> "Path":
    """Return the path with column `x` in its table; raise InvalidInputError if it has no such numeric column."""
    if x == "bytes":
        return path.with_bytes()
    numbers = [name for name, column in path.table.items() if column.dtype.kind in "if"]
    if x not in numbers:
        raise InvalidInputError(f"The path has no numeric column {x!r}. Use one of: {', '.join([*numbers, 'bytes'])}.")
    return path


def _check_comparable(path: "Path", others: Mapping[str, "Path"]) -> None:
    """Raise InvalidInputError unless the same quantity was measured on all paths."""
    for name, other in others.items():
        if ("loss" in other.table) != ("loss" in path.table):
            difference = "has no" if "loss" in path.table else "has a"
            raise InvalidInputError(
                f"Baseline {name!r} {difference} measured loss, unlike the path. Evaluate both on the same rows."
            )
        if other.info.loss != path.info.loss:
            raise InvalidInputError(
                f"Baseline {name!r} has the loss {other.info.loss}, but the path has {path.info.loss}. "
                "Evaluate both with the same loss."
            )
    if len(others) >= len(LINES):
        raise InvalidInputError(
            f"{len(others)} baselines were given. At most {len(LINES) - 1} have distinct colours. Plot fewer baselines."
        )


def _draw_line(ax: "Axes", path: "Path", x: str, y: str, label: str, color: str) -> None:
    """Draw one path: a line with a band of one standard error, and dots for the points not on the line."""
    size, loss = path.table[x].astype(np.float64), path.table[y].astype(np.float64)
    line = points_of_line(path, x, y)
    others = np.setdiff1d(np.arange(1, len(size)), line)
    ax.plot(size[others], loss[others], ".", color=color, alpha=0.35, ms=4, lw=0, gid="points")
    ax.plot(size[line], loss[line], color=color, marker="o", ms=3, lw=1.8, label=label, gid="line")
    if y == "loss":
        low, high = loss[line] - path.table["loss_se"][line], loss[line] + path.table["loss_se"][line]
        ax.fill_between(size[line], low, high, color=color, alpha=0.18, lw=0, gid="band")


def points_of_line(path: "Path", x: str, y: str) -> NDArray[np.intp]:
    """Return the points connected by a line, from left to right.

    For a path of one series these are all points; among points of equal size the one with the lowest loss. For a path
    of several series (of several ridges, for example) they are the Pareto-optimal points. The unpruned model is
    included unless the path has refitted values.
    """
    size, loss = path.table[x], path.table[y]
    shown = np.flatnonzero(np.isfinite(size) & np.isfinite(loss))
    if path.values is not None and len(shown) > 1:
        shown = shown[shown > 0]
    order = shown[np.lexsort((loss[shown], size[shown]))]
    order = order[np.append(True, np.diff(size[order]) > 0)]
    series = [path.table[name] for name in path.info.runs]
    if (np.diff(size[shown]) <= 0).all() and all(len(np.unique(column[1:])) < 2 for column in series):
        return order
    lowest = np.minimum.accumulate(np.append(np.inf, loss[order]))
    return order[loss[order] < lowest[:-1]]


def _risk_is_comparable(path: "Path") -> bool:
    """Return whether the risk and the measured loss are the same quantity on different rows."""
    info, forest = path.info, path.forest
    of_ensemble = info.is_ensemble_risk or (forest.n_trees == 1 and forest.trees_predict_target)
    return of_ensemble and info.same_loss


def _shade_gaps(ax: "Axes", path: "Path") -> None:
    """Shade wide ranges of the cost that contain no point of the path."""
    cost = np.unique(path.table["cost"])
    label: str | None = "no point has this cost"
    for low, high in pairwise(cost.tolist()):
        if high - low > _WIDE_STEP * path.table["cost"][0]:
            ax.axvspan(low, high, color=GREY, alpha=0.13, lw=0, label=label, gid="gap")
            label = None


def _mark_points(ax: "Axes", path: "Path", x: str, y: str, mark: "int | Pruned | None") -> None:
    """Mark the unpruned model and the chosen point."""
    unpruned = path.table[y][0]
    ax.axhline(unpruned, color=GREY, lw=0.8, ls="--", zorder=1)
    ax.plot(path.table[x][0], unpruned, "D", color=GREY, ms=7, label="unpruned", gid="unpruned")
    if mark is None:
        return
    if isinstance(mark, int | np.integer):
        mark = path[int(mark)]
    row = mark.row if {x, y} <= set(mark.row) else path[mark.point].row
    label = f"chosen: {'cost ' if x == 'cost' else ''}{_number(row[x])} {_AXIS_LABELS.get(x, '').split(' ')[0]}".strip()
    ax.plot(row[x], row[y], "*", color=CHOSEN, ms=16, mec="white", mew=0.8, zorder=5, gid="chosen", label=label)


def _finish(ax: "Axes", path: "Path", x: str, y: str) -> None:
    """Set axis labels, scale and legend; counts that span more than a decade get a logarithmic axis."""
    cost = path.info.cost
    label = _AXIS_LABELS.get(x, f"cost: {_COST_LABELS.get(cost, cost)}" if x == "cost" else x.replace("_", " "))
    column = path.table[x]
    if x in ("n_nodes", "n_leaves", "bytes", "penalty") and column.min() > 0 and column.max() > 10 * column.min():
        ax.set_xscale("log")
        label += " (logarithmic)"
    ax.set_xlabel(label, parse_math=False)
    loss = _LOSS_LABELS.get(path.info.loss, path.info.loss.replace("_", " "))
    loss = loss if y == "loss" or _risk_is_comparable(path) else f"{loss}, mean of single trees"
    ax.set_ylabel(loss, parse_math=False)
    for text in ax.legend(frameon=False, fontsize="small").get_texts():
        # Names may contain dollar signs.
        text.set_parse_math(False)
    ax.spines[["top", "right"]].set_visible(False)


def _legend_label(path: "Path", column: str) -> str:
    """Return the legend text of a loss or risk column."""
    if column == "loss":
        return f"measured on {path.info.evaluated_rows:,} rows, ± 1 standard error"
    scope = "" if _risk_is_comparable(path) else "mean of single trees, "
    return f"{scope}on the {path.info.made_on_rows:,} pruning rows"


def _legend_name(name: str | None) -> str:
    """Return a name for the legend; matplotlib hides labels that begin with an underscore."""
    shown = shortened(printable(name or ""), _MAX_NAME_LENGTH)
    return f" {shown}" if shown.startswith("_") else shown


def _solver_name(path: "Path") -> str:
    return path.solver.split("(")[0]


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3g}"
