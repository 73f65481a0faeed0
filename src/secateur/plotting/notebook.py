"""Render a path or a chosen point as self-contained HTML for notebooks."""

from html import escape
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from secateur._util.html import page, table
from secateur.plotting._palette import CHOSEN, GREY, LINES
from secateur.plotting.tradeoff import points_of_line, size_column

if TYPE_CHECKING:
    from secateur.path import Path
    from secateur.path.pruned import Pruned

_SHOWN_POINTS = 10
_COLUMNS = {"n_nodes": "nodes", "n_trees": "trees", "n_leaves": "leaves", "cost": "cost", "risk": "risk"}
_WIDTH, _HEIGHT, _MARGIN = 260.0, 120.0, 8.0


def path_html(path: "Path") -> str:
    """Return HTML with a table of about ten points on the front of a path, and a sketch of the trade-off curve."""
    info, columns = path.info, path.table
    front = _front(path)
    shown = _spread(path, front)
    names = [name for name in _COLUMNS if not (name == "cost" and info.cost in ("nodes", "leaves"))]
    head = ["point", *(_COLUMNS[name] for name in names)]
    if not info.same_loss:
        head[-1] = f"risk ({info.risk_loss})"
    rows = [[str(point), *(_number(columns[name][point].item()) for name in names)] for point in shown]
    if "loss" in columns:
        head += [f"loss ({info.loss})", "changed"]
        for row, point in zip(rows, shown, strict=True):
            row += [
                f"{columns['loss'][point]:.4g} ± {columns['loss_se'][point]:.2g}",
                f"{columns['changed'][point]:.1%}",
            ]
    if info.scoring is not None:
        head.append(info.scoring)
        for row, point in zip(rows, shown, strict=True):
            row.append(f"{columns['score'][point]:.4g}")
    lines = [f"{path.solver}, pruned with {info.made_on_rows:,} rows"]
    if info.evaluated_on is not None:
        lines.append(f"loss measured on {info.evaluated_rows:,} rows: {info.evaluated_on}")
    lines.append("rows: prunings with a lower loss than all smaller ones, and the unpruned model")
    more = f", {len(front)} on the front" if len(front) < len(path) else ""
    more += f", {len(shown)} shown" if len(shown) < len(front) else ""
    title = f"{path.source.type_name}: {len(path)} prunings{more}"
    return page(title, table(head, rows) + _sketch(path), "; ".join(lines))


def _front(path: "Path") -> NDArray[np.intp]:
    """Return the points that lose less than every smaller or cheaper one, largest first, after the unpruned model."""
    size, loss = path.table[size_column(path)], path.table["loss" if "loss" in path.table else "risk"]
    order = np.lexsort([loss, size])
    lowest = np.append(np.inf, np.minimum.accumulate(loss[order])[:-1])
    front = order[(loss[order] < lowest) & (np.diff(size[order], prepend=-1) > 0)][::-1]
    return np.append(0, front[front != 0])


def _spread(path: "Path", front: NDArray[np.intp]) -> list[int]:
    """Return about ten points of the front, evenly spaced in the logarithm of the size, with both ends."""
    size = np.log(np.maximum(path.table[size_column(path)][front].astype(np.float64), 1e-300))
    size = np.minimum.accumulate(np.where(np.isfinite(size), size, size[0]))
    places = np.linspace(size[0], size[-1], _SHOWN_POINTS)
    chosen = {0, len(front) - 1, *(int(np.abs(size - place).argmin()) for place in places)}
    return [int(front[k]) for k in sorted(chosen)]


def pruned_html(pruned: "Pruned") -> str:
    """Return HTML with a table of sizes and losses before and after pruning, and how the point was chosen."""
    row, info, unpruned = pruned.row, pruned.info, pruned.original.forest
    sizes = [
        ("nodes", unpruned.n_nodes, row["n_nodes"]),
        ("leaves", unpruned.n_leaves, row["n_leaves"]),
        ("trees", unpruned.n_trees, row["n_trees"]),
        ("depth", unpruned.max_depth, row["depth"]),
        ("features", len(unpruned.features_used), row["n_features"]),
    ]
    rows = [[name, f"{n:,}", f"{left:,}", f"{left / n:.1%}" if n else ""] for name, n, left in sizes]
    measured: list[list[str]] = []
    if info.cost not in ("nodes", "leaves") and info.unpruned_cost is not None:
        before = info.unpruned_cost
        left = f"{row['cost'] / before:.1%}" if before else ""
        rows.append([f"cost ({info.cost})", _number(before), _number(row["cost"]), left])
    if info.unpruned_loss is not None:
        before = info.unpruned_loss
        change = f"{row['loss'] / before - 1:+.1%}" if before > 0 and np.isfinite(row["loss"]) else ""
        measured.append([f"loss ({info.loss})", f"{before:.4g}", f"{row['loss']:.4g} ± {row['loss_se']:.2g}", change])
        measured.append(["predictions changed", "", f"{row['changed']:.1%}", ""])
    if info.unpruned_score is not None:
        name = str(info.scoring)
        measured.append([name, f"{info.unpruned_score:.4g}", f"{row['score']:.4g} (drop ± {row['score_se']:.2g})", ""])
    evaluated_on = info.evaluated_on or "the pruning rows"
    n_rows = info.evaluated_rows or info.made_on_rows
    clone = " of a clone trained on fewer features" if pruned.given is not None else ""
    how = f"Point {pruned.point}{clone} by {pruned.solver}, chosen on {n_rows:,} rows: {evaluated_on}"
    tables = table(["", "before", "after", "left"], rows)
    tables += table(["", "before", "after", "change"], measured) if measured else ""
    return page(f"{pruned.original.type_name}, pruned", tables, how)


def _sketch(path: "Path") -> str:
    """Return the curve of the loss against the size or cost as an inline SVG."""
    x = size_column(path)
    y = "loss" if "loss" in path.table else "risk"
    line = points_of_line(path, x, y)
    if len(line) < 2:
        return ""
    size, loss = path.table[x].astype(np.float64), path.table[y].astype(np.float64)
    size = size if x == "cost" else np.log(np.maximum(size, 1))
    drawn = np.union1d(line, [0]) if np.isfinite(loss[0]) else line
    left = _scaled(size, size[drawn]) * (_WIDTH - 2 * _MARGIN) + _MARGIN
    top = (1 - _scaled(loss, loss[drawn])) * (_HEIGHT - 2 * _MARGIN) + _MARGIN
    points = " ".join(f"{left[k]:.1f},{top[k]:.1f}" for k in line)
    label = f"cost ({path.info.cost})" if x == "cost" else f"{path.info.cost} (log)"
    start = f'<circle cx="{left[0]:.1f}" cy="{top[0]:.1f}" r="3.5" fill="{CHOSEN}"><title>unpruned</title></circle>'
    return (
        f'<svg width="{_WIDTH:.0f}" height="{_HEIGHT + 18:.0f}" role="img" fill="currentColor" font-size="11">'
        f"<title>{escape(y)} by {escape(label)}</title>"
        f'<path d="M{_MARGIN / 2},{_MARGIN / 2}V{_HEIGHT}H{_WIDTH}" fill="none" stroke="{GREY}"/>'
        f'<polyline points="{points}" fill="none" stroke="{LINES[0]}" stroke-width="1.8"/>'
        f"{start if np.isfinite(loss[0]) else ''}"
        f'<text x="{_WIDTH / 2}" y="{_HEIGHT + 13}" text-anchor="middle">{escape(y)} by {escape(label)}</text></svg>'
    )


def _scaled(column: np.ndarray, within: np.ndarray) -> np.ndarray:
    """Scale a column linearly so that the range of `within` becomes [0, 1]."""
    low, high = within.min(), within.max()
    return (column - low) / ((high - low) or 1.0)


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
