"""Compute the layout of a tree plot: kept nodes get room for labels, pruned nodes are drawn closer together."""

from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from secateur.forest import Forest
from secateur.forest.subforest import apply_decision, check_keep, kept_splits

if TYPE_CHECKING:
    from secateur.path.pruned import Pruned

_TIPS = 32
# Width and height of a pruned node ("ghost"), in units of those of a kept node.
_NARROW, _LOW = 0.4, 0.65

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
    place : dict of node: (x, y)
        The drawn nodes, in preorder. The root is at y = 0, the tips are between x = −½ and `width` − ½.
    n_tips : int
        The number of drawn nodes without drawn children.
    width : float
        The total width of the tips.
    """

    forest: Forest
    keep: Bools
    split: Bools
    place: dict[int, tuple[float, float]]
    n_tips: int
    width: float

    @property
    def height(self) -> float:
        """The distance from the root to the lowest drawn node."""
        return -min(y for _, y in self.place.values())

    def hidden_below(self, node: int) -> range:
        """Return the descendants of a drawn node that are not drawn."""
        return range(0) if node + 1 in self.place else range(node + 1, int(self.forest.end[node]))


def lay_out(pruned: "Pruned", tree: int, max_depth: int | None) -> Layout:
    """Choose the nodes of a tree to draw, and return their positions.

    Without `max_depth`, splits are expanded in order of depth, splits with kept descendants first, until 32 tips are
    drawn side by side.

    Raises
    ------
    ValueError
        If the tree does not exist.
    """
    forest = apply_decision(pruned.source.forest, pruned.decision)
    if not 0 <= tree < forest.n_trees:
        raise ValueError(f"Tree {tree} asked for; the model has trees 0 to {forest.n_trees - 1}. Pass one of them.")
    keep = pruned.decision.keep
    split = kept_splits(forest, keep, check_keep(forest, keep))
    drawn = _drawn(forest, keep, int(forest.root[tree]), max_depth)
    opened = {node for node in drawn if forest.is_split[node] and node + 1 in set(drawn)}
    tips = [node for node in drawn if node not in opened]
    across, right_edge = {}, 0.0
    for tip, width in zip(tips, _widths(forest, keep, split, drawn, tips), strict=True):
        across[tip] = right_edge + width / 2 - 0.5
        right_edge += width
    for node in reversed(drawn):
        if node in opened:
            across[node] = (across[node + 1] + across[int(forest.right[node])]) / 2
    place: dict[int, tuple[float, float]] = {}
    for node in drawn:
        above = int(forest.parent[node])
        place[node] = across[node], (place[above][1] - (1.0 if split[above] else _LOW) if above in place else 0.0)
    return Layout(forest, keep, split, place, len(tips), right_edge)


def _widths(forest: Forest, keep: Bools, split: Bools, drawn: list[int], tips: list[int]) -> list[float]:
    """Return the width of each tip: pruned tips are narrow, but those below one kept leaf have at least its width."""
    width = {tip: 1.0 if keep[tip] else _NARROW for tip in tips}
    for node in drawn:
        if keep[node] and not split[node]:
            below = [tip for tip in tips if node < tip < forest.end[node]]
            width.update(dict.fromkeys(below, max(_NARROW, 1 / max(len(below), 1))))
    return list(width.values())


def _drawn(forest: Forest, keep: Bools, root: int, max_depth: int | None) -> list[int]:
    """Return the nodes to draw, in preorder; splits are expanded from a priority queue."""
    kept_before = np.concatenate([[0], np.cumsum(keep)])
    waiting: list[tuple[bool, int, int]] = []
    drawn, n_tips = [root], 1

    def wait(node: int) -> None:
        depth = int(forest.depth[node])
        if forest.is_split[node] and (max_depth is None or depth < max_depth):
            only_ghosts = bool(kept_before[forest.end[node]] == kept_before[node + 1])
            heappush(waiting, (only_ghosts, depth, node))

    wait(root)
    while waiting and (max_depth is not None or n_tips < _TIPS):
        _, _, node = heappop(waiting)
        children = node + 1, int(forest.right[node])
        drawn += children
        n_tips += 1
        for child in children:
            wait(child)
    return sorted(drawn)
