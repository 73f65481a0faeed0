"""Represent symmetric (oblivious) trees as chains with one split per level.

Only whole levels of a symmetric tree can be pruned. In the chain a level is one split with an empty leaf as its left
child and the next level as its right child, so any algorithm for binary trees applies.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from secateur.forest import Forest

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Chains:
    """Hold one chain per tree in preorder: a split, its empty leaf, the next split, and so on, down to a leaf.

    Attributes
    ----------
    parent, right : (n_links,) int32
        As in a Forest.
    link_index : (n_nodes,)
        The link of the chain that represents the level of each node of the forest.
    """

    parent: NDArray[np.int32]
    right: NDArray[np.int32]
    link_index: NDArray[np.int64]

    def totals(self, of_node: Floats) -> Floats:
        """Return the sum of `of_node` over the nodes of each level, 0 at the empty leaves, (n_links,)."""
        return np.bincount(self.link_index, of_node, minlength=len(self.right)).astype(np.float64, copy=False)


def chains_of(forest: Forest) -> Chains:
    """Return the chain representation of a symmetric forest."""
    # A tree of depth d becomes a chain of d splits (even links), d empty leaves (odd links) and a last leaf.
    depth = np.maximum.reduceat(forest.depth, forest.root)
    size = 2 * depth + 1
    start = np.cumsum(size) - size
    link = np.arange(size.sum()) - np.repeat(start, size)
    first = np.repeat(start, size)
    is_split = (link % 2 == 0) & (link < np.repeat(size, size) - 1)
    parent = np.where(link == 0, -1, first + (link - 1) // 2 * 2)
    right = np.where(is_split, first + link + 2, -1)
    tree = np.repeat(np.arange(forest.n_trees), np.diff(forest.tree_start))
    return Chains(parent.astype(np.int32), right.astype(np.int32), start[tree] + 2 * forest.depth.astype(np.int64))
