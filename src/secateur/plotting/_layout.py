"""Compute the layout of a tree plot: kept nodes get space for labels, pruned nodes are drawn closer together."""

from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from secateur.errors import InvalidInputError
from secateur.forest import Forest
from secateur.forest.subforest import apply_decision, check_keep, kept_splits

if TYPE_CHECKING:
    from secateur.path.pruned import Pruned

_MAX_TIPS = 32
# Width and height of a pruned node ("ghost"), in units of those of a kept node.
_GHOST_WIDTH, _GHOST_HEIGHT = 0.4, 0.65

Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Layout:
    """Positions of the nodes of one tree.

    Attributes
    ----------
    forest : Forest
        The unpruned forest with the values of the pruned one.
    keep, split : (n_nodes,)
        Masks of the kept nodes, and of the kept nodes that still have children.
    position : dict of node: (x, y)
        The drawn nodes, in preorder. The root is at y = 0, the tips are between x = −½ and `width` − ½.
    n_tips : int
        The number of drawn nodes without drawn children.
    width : float
        The total width of the tips.
    """

    forest: Forest
    keep: Bools
    split: Bools
    position: dict[int, tuple[float, float]]
    n_tips: int
    width: float

    @property
    def height(self) -> float:
        """The distance from the root to the lowest drawn node."""
        return -min(y for _, y in self.position.values())

    def hidden_below(self, node: int) -> range:
        """Return the descendants of a drawn node that are not drawn."""
        return range(0) if node + 1 in self.position else range(node + 1, int(self.forest.end[node]))


def lay_out(pruned: "Pruned", tree: int, max_depth: int | None) -> Layout:
    """Choose the nodes of a tree to draw, and return their positions.

    Without `max_depth`, splits are expanded in order of depth, splits with kept descendants first, until 32 tips are
    drawn side by side.

    Raises
    ------
    InvalidInputError
        If the tree does not exist.
    """
    forest = apply_decision(pruned.source.forest, pruned.decision)
    if not 0 <= tree < forest.n_trees:
        raise InvalidInputError(
            f"Tree {tree} does not exist. The model has trees 0 to {forest.n_trees - 1}. Pass one of these numbers."
        )
    keep = pruned.decision.keep
    split = kept_splits(forest, keep, check_keep(forest, keep))
    drawn = _drawn_nodes(forest, keep, int(forest.root[tree]), max_depth)
    expanded = {node for node in drawn if forest.is_split[node] and node + 1 in set(drawn)}
    tips = [node for node in drawn if node not in expanded]
    x, right_edge = {}, 0.0
    for tip, width in zip(tips, _widths(forest, keep, split, drawn, tips), strict=True):
        x[tip] = right_edge + width / 2 - 0.5
        right_edge += width
    for node in reversed(drawn):
        if node in expanded:
            x[node] = (x[node + 1] + x[int(forest.right[node])]) / 2
    position: dict[int, tuple[float, float]] = {}
    for node in drawn:
        parent = int(forest.parent[node])
        y = position[parent][1] - (1.0 if split[parent] else _GHOST_HEIGHT) if parent in position else 0.0
        position[node] = x[node], y
    return Layout(forest, keep, split, position, len(tips), right_edge)


def _widths(forest: Forest, keep: Bools, split: Bools, drawn: list[int], tips: list[int]) -> list[float]:
    """Return the width of each tip: pruned tips are narrow, but those below one kept leaf have at least its width."""
    width = {tip: 1.0 if keep[tip] else _GHOST_WIDTH for tip in tips}
    for node in drawn:
        if keep[node] and not split[node]:
            below = [tip for tip in tips if node < tip < forest.end[node]]
            width.update(dict.fromkeys(below, max(_GHOST_WIDTH, 1 / max(len(below), 1))))
    return list(width.values())


def _drawn_nodes(forest: Forest, keep: Bools, root: int, max_depth: int | None) -> list[int]:
    """Return the nodes to draw, in preorder; splits are expanded from a priority queue."""
    kept_before = np.concatenate([[0], np.cumsum(keep)])
    queue: list[tuple[bool, int, int]] = []
    drawn, n_tips = [root], 1

    def enqueue(node: int) -> None:
        depth = int(forest.depth[node])
        if forest.is_split[node] and (max_depth is None or depth < max_depth):
            only_ghosts = bool(kept_before[forest.end[node]] == kept_before[node + 1])
            heappush(queue, (only_ghosts, depth, node))

    enqueue(root)
    while queue and (max_depth is not None or n_tips < _MAX_TIPS):
        _, _, node = heappop(queue)
        children = node + 1, int(forest.right[node])
        drawn += children
        n_tips += 1
        for child in children:
            enqueue(child)
    return sorted(drawn)
