"""Plot one tree of a pruned model: kept nodes with split conditions and leaf values, pruned nodes as grey ghosts."""

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from secateur._util.text import shortened
from secateur.libraries.adapter import Adapter
from secateur.plotting._layout import Layout, lay_out
from secateur.plotting._palette import GREY, LINES, new_axes
from secateur.plotting.split_labels import class_names, feature_name, split_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

    from secateur.path.pruned import Pruned

# Width of a letter in inches.
_LETTER_WIDTH = 0.062
# Letters per line of a label.
_LINE_LENGTH = 17
# Largest number of tips for which pruned splits show their conditions.
_MAX_TIPS_WITH_CONDITIONS = 12
_FONT_SIZES = (9.0, 8.5, 8.0, 7.5, 7.0, 6.5, 6.0, 5.5, 5.0, 4.5, 4.0)
# Below this font size, conditions of pruned splits are removed.
_SMALL = 7.0
_DASHED = (0, (3, 2))

Floats = NDArray[np.float64]


def draw_tree(
    pruned: "Pruned",
    ax: "Axes | None" = None,
    *,
    tree: int = 0,
    max_depth: int | None = None,
    support: Floats | None = None,
) -> "Axes":
    """Plot tree `tree` of the unpruned model, with the nodes that the pruning keeps highlighted.

    Subtrees deeper than `max_depth` are drawn as triangles with their number of nodes. By default at most 32 nodes are
    drawn side by side, kept nodes first. With `support`, nodes with lower support are drawn lighter.
    """
    layout = lay_out(pruned, tree, max_depth)
    ax = ax or _axes_for(layout)
    start, stop = layout.forest.tree_start[tree : tree + 2].tolist()
    kept = int(layout.keep[start:stop].sum())
    ax.set_title(f"tree {tree} of {layout.forest.n_trees}: {kept} of {stop - start} nodes kept", fontsize="medium")
    ax.set_axis_off()
    ax.set_xlim(-0.6, layout.width - 0.4)
    below = 0.7 if any(map(layout.hidden_below, layout.position)) else 0.4
    ax.set_ylim(-layout.height - below, 0.35)
    labels = _Labels(layout, pruned.source, start, support, _inches(ax))
    _draw_edges(ax, layout, labels)
    texts = [text for node in layout.position for text in _draw_node(ax, layout, labels, node)]
    _fit(ax, texts)
    return ax


def _axes_for(layout: Layout) -> "Axes":
    """Return the axes of a new figure large enough for all labels."""
    return new_axes(min(max(0.95 * layout.width + 0.4, 4.5), 18.0), min(max(1.05 * layout.height + 1.5, 3.0), 14.0))


def _inches(ax: "Axes") -> float:
    """Return the width of the axes in inches, after the layout engine of the figure has run."""
    figure = ax.get_figure(root=True)
    if figure is not None and figure.get_layout_engine() is not None:
        figure.draw_without_rendering()
    return float(ax.get_window_extent().width) / (figure.dpi if figure is not None else 100.0)


class _Labels:
    """Texts and opacities of the nodes."""

    def __init__(self, layout: Layout, adapter: Adapter, root: int, support: Floats | None, inches: float) -> None:
        self.forest, self.root, self.support = layout.forest, root, support
        self.classes = [f"class {name}" if name.isdecimal() else name for name in class_names(adapter)]
        self.letters = int(np.clip(1.2 * inches / layout.width / _LETTER_WIDTH, 12, _LINE_LENGTH))
        self.show_ghost_conditions = layout.n_tips <= _MAX_TIPS_WITH_CONDITIONS

    def condition(self, node: int) -> str:
        """Return the condition of a split, wrapped to short lines."""
        name = feature_name(self.forest, int(self.forest.feature[node]))
        text = split_text(self.forest, node).replace(name, shortened(name, 40), 1)
        # A no-break space keeps the operator on the line of its operand.
        for sign in ("≤", "<", "in"):
            text = text.replace(f" {sign} ", f" {sign}\xa0")
        return "\n".join(textwrap.wrap(text, self.letters, break_on_hyphens=False))

    def prediction(self, node: int) -> tuple[str, str]:
        """Return the prediction of a leaf with its fraction of the training weight, and the colour of the leaf."""
        forest, value = self.forest, self.forest.value[node]
        fraction = forest.weight[node] / forest.weight[self.root] if forest.weight[self.root] > 0 else np.nan
        percent = f"{fraction:.0%}" if fraction >= 0.005 or fraction == 0 else "< 1%"
        of_rows = "" if np.isnan(fraction) else f"\n{percent} of {'rows' if forest.trees_predict_target else 'weight'}"
        if self.classes and len(value) == len(self.classes) and forest.trees_predict_target:
            best = int(value.argmax())
            probability = value[best] / value.sum() if value.sum() > 0 else 0.0
            separator = "\n" if self.letters < _LINE_LENGTH else " "
            text = f"{shortened(self.classes[best], 24)}{separator}({probability:.2f}){of_rows}"
            return text, LINES[best % len(LINES)]
        tree = int(np.searchsorted(forest.tree_start, node, side="right")) - 1
        scale, sign = (1.0, "") if forest.trees_predict_target else (float(forest.tree_weight[tree]), "+")
        numbers = [f"{scale * number:{sign}.4g}" for number in value[:3]]
        return ", ".join([*numbers, "…"] if len(value) > 3 else numbers) + of_rows, LINES[0]

    def opacity(self, node: int) -> float:
        """Return the opacity of a node, which increases with its support."""
        return 1.0 if self.support is None else 0.2 + 0.8 * float(self.support[node])


def _draw_edges(ax: "Axes", layout: Layout, labels: _Labels) -> None:
    """Draw the edges from nodes to their parents; edges of pruned nodes are dashed."""
    for node, (x, y) in layout.position.items():
        parent = int(layout.forest.parent[node])
        if parent not in layout.position:
            continue
        parent_x, parent_y = layout.position[parent]
        is_kept = bool(layout.keep[node] and layout.keep[parent])
        style: dict[str, Any] = {"color": GREY, "lw": 0.9, "ls": _DASHED, "gid": "ghost edge"}
        if is_kept:
            style = {"color": (LINES[0], labels.opacity(node)), "lw": 1.4, "gid": "edge"}
        ax.plot([parent_x, x], [parent_y, y], zorder=1, **style)
        if parent == labels.root and is_kept:
            answer = "yes" if x < parent_x else "no"
            _write(ax, 0.5 * (parent_x + x), 0.5 * (parent_y + y), answer, gid="branch", color=GREY, va="center")


def _draw_node(ax: "Axes", layout: Layout, labels: _Labels, node: int) -> list["Text"]:
    """Draw one node and a triangle for hidden descendants; return the texts that must not overlap."""
    x, y = layout.position[node]
    hidden = layout.hidden_below(node)
    if hidden:
        _draw_hidden(ax, x, y, int(layout.keep[hidden.start : hidden.stop].sum()), len(hidden))
    if layout.keep[node]:
        is_split = bool(layout.split[node])
        text, color = (labels.condition(node), GREY) if is_split else labels.prediction(node)
        opacity = labels.opacity(node)
        box = {"boxstyle": "round,pad=0.25", "ec": (color, opacity), "lw": 0.8 if is_split else 1.6}
        gid = "kept split" if is_split else "kept leaf"
        return [_write(ax, x, y, text, box, gid=gid, va="center", zorder=3, alpha=opacity)]
    ax.plot(x, y, "o", color=GREY, mfc=ax.get_facecolor(), ms=4, zorder=2, gid="ghost")
    if not layout.forest.is_split[node] or hidden or not labels.show_ghost_conditions:
        return []
    return [_write(ax, x, y + 0.08, labels.condition(node), gid="ghost condition", color=GREY, va="bottom", zorder=2)]


def _draw_hidden(ax: "Axes", x: float, y: float, kept: int, n_nodes: int) -> None:
    """Draw a triangle for the descendants of a node that are not drawn, with the numbers of kept and all nodes."""
    color, gid = (LINES[0], "hidden") if kept else (GREY, "hidden ghosts")
    ax.plot([x, x], [y, y - 0.42], color=color, lw=0.9, ls="-" if kept else _DASHED, zorder=1)
    ax.plot(x, y - 0.46, "^", color=color, ms=7, mfc=color if kept else ax.get_facecolor(), zorder=2, gid=gid)
    label = f"{kept} of {n_nodes}" if 0 < kept < n_nodes else f"{n_nodes}"
    _write(ax, x, y - 0.56, label, gid="number hidden", color=GREY, fontsize=7, va="top")


def _write(ax: "Axes", x: float, y: float, text: str, box: dict[str, Any] | None = None, **style: Any) -> "Text":
    """Write text on an opaque background that hides edges; dollar signs in names are not parsed as formulas."""
    box = {"fc": ax.get_facecolor(), **(box or {"ec": "none", "pad": 0.6})}
    return ax.text(x, y, text, ha="center", parse_math=False, bbox=box, **{"fontsize": _FONT_SIZES[0], **style})


def _fit(ax: "Axes", texts: list["Text"]) -> None:
    """Choose the largest font size at which no texts overlap; small sizes drop the conditions of pruned splits."""
    for size in _FONT_SIZES:
        if size < _SMALL:
            for text in [text for text in texts if text.get_gid() == "ghost condition"]:
                text.remove()
                texts.remove(text)
        for text in texts:
            text.set_fontsize(size)
        boxes = [text.get_window_extent().padded(0.5 * size) for text in texts]
        if not any(one.overlaps(other) for i, one in enumerate(boxes) for other in boxes[:i]):
            break
    for text in ax.texts:
        text.set_fontsize(min(text.get_fontsize(), size))
