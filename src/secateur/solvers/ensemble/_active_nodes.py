"""The part of an ensemble that a descent looks at: all nodes, or those that can be worth keeping at a penalty."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.solvers.ensemble.additive_model import Additive

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ActiveNodes:
    """The arrays of some nodes of every tree, as in `Additive` and in the forest."""

    leaves: NDArray[np.unsignedinteger]
    tree_start: NDArray[np.int64]
    right: NDArray[np.int32]
    depth: NDArray[np.int32]
    share: Floats
    original: Floats
    as_leaf: Floats
    as_split: Floats


@dataclass(frozen=True, eq=False)
class Crown:
    """Trees without some of their lower parts; a node that is not there says what the lowest one above it says.

    Attributes
    ----------
    arrays : Nodes
    penalty : float
        For this one and larger ones the others are, in all likelihood, out of the question.
    marked : (n_nodes of the forest,) bool
        Which nodes are there.
    nodes : (n_nodes,)
        Their numbers in the forest.
    lowest : (n_nodes of the forest,)
        For every node of the forest the number here of the lowest one at or above it.
    """

    arrays: ActiveNodes
    penalty: float
    marked: NDArray[np.bool_]
    nodes: NDArray[np.intp]
    lowest: NDArray[np.int32]


def all_nodes(ensemble: Additive, as_leaf: Floats, as_split: Floats) -> ActiveNodes:
    """Return the arrays of all nodes."""
    forest = ensemble.forest
    return ActiveNodes(
        ensemble.leaves,
        forest.tree_start,
        forest.right,
        forest.depth,
        ensemble.share,
        ensemble.original,
        as_leaf,
        as_split,
    )


def crown_of(everything: ActiveNodes, ensemble: Additive, marked: NDArray[np.bool_], penalty: float) -> Crown:
    """Return the trees of the marked nodes, which have their parents and siblings among them."""
    forest = ensemble.forest
    nodes = np.flatnonzero(marked)
    number = np.cumsum(marked, dtype=np.int32) - np.int32(1)
    lowest = number[kernels.lift(forest.parent, marked)]
    tree_start = np.searchsorted(nodes, forest.tree_start)
    right = forest.right[nodes]
    has_children = (right != -1) & marked[np.minimum(nodes + 1, len(marked) - 1)]
    right = np.where(has_children, number[right], np.int32(-1))
    kind = np.min_scalar_type(int(np.diff(tree_start).max(initial=1)) - 1)
    leaves = np.empty(ensemble.leaves.shape, kind)
    for tree, (start, first) in enumerate(zip(forest.root, tree_start[:-1], strict=True)):
        here = (lowest[start : forest.tree_start[tree + 1]] - first).astype(kind)
        np.take(here, ensemble.leaves[tree], out=leaves[tree])
    arrays = (getattr(everything, name)[nodes] for name in ("depth", "share", "own", "as_leaf", "as_split"))
    return Crown(ActiveNodes(leaves, tree_start, right, *arrays), penalty, marked, nodes, lowest)
