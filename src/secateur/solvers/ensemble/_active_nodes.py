"""Build the node arrays a block descent works on: all nodes, or only an active set of them.

At a large penalty most nodes of a large tree reduce the objective by less than their price. An `ActiveSet`
holds the upper part of every tree that may reduce it by more, so that a sweep over the trees costs less.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.kernels import Prices, RoutedRows, Trees, leaves_then_splits
from secateur.solvers.ensemble.additive_model import Additive


class ActiveNodes(NamedTuple):
    """The arrays of some or all nodes of every tree that a sweep works on."""

    rows: RoutedRows
    trees: Trees
    prices: Prices


@dataclass(frozen=True, eq=False)
class ActiveSet:
    """An active set of nodes: every tree without some of its lower subtrees.

    A node outside the set predicts the same as its lowest ancestor inside it.

    Attributes
    ----------
    arrays : ActiveNodes
        The node arrays of the set.
    penalty : float
        The smallest penalty the set was built for. At this and larger penalties the other nodes are unlikely to be
        kept.
    marked : (n_nodes of the forest,) bool
        Whether a node is in the set.
    nodes : (n_nodes,)
        The forest's indices of the nodes in the set.
    lowest : (n_nodes of the forest,)
        For every node of the forest, the index within the set of its lowest ancestor (or itself) in the set.
    """

    arrays: ActiveNodes
    penalty: float
    marked: NDArray[np.bool_]
    nodes: NDArray[np.intp]
    lowest: NDArray[np.int32]


def active_set_of(ensemble: Additive, prices: Prices, marked: NDArray[np.bool_], penalty: float) -> ActiveSet:
    """Return the active set of the marked nodes.

    The parent and the sibling of every marked node must be marked, too.
    """
    forest = ensemble.forest
    nodes = np.flatnonzero(marked)
    number = np.cumsum(marked, dtype=np.int32) - np.int32(1)
    lowest = number[kernels.lift(forest.parent, marked)]
    tree_start = np.searchsorted(nodes, forest.tree_start)
    right = forest.right[nodes]
    has_children = (right != -1) & marked[np.minimum(nodes + 1, len(marked) - 1)]
    right = np.where(has_children, number[right], np.int32(-1))
    dtype = np.min_scalar_type(int(np.diff(tree_start).max(initial=1)) - 1)
    leaves = np.empty(ensemble.leaves.shape, dtype)
    for tree, (start, first) in enumerate(zip(forest.root, tree_start[:-1], strict=True)):
        local_leaf = (lowest[start : forest.tree_start[tree + 1]] - first).astype(dtype)
        np.take(local_leaf, ensemble.leaves[tree], out=leaves[tree])
    trees = Trees(
        tree_start,
        forest.tree_output,
        right,
        leaves_then_splits(tree_start, right),
        forest.depth[nodes],
        ensemble.node_weight[nodes],
        ensemble.original[nodes],
        ensemble.trees.sign[nodes] if len(ensemble.trees.sign) else ensemble.trees.sign,
    )
    prices = Prices(prices.as_leaf[nodes], prices.as_split[nodes])
    return ActiveSet(ActiveNodes(RoutedRows(leaves, ensemble.weight), trees, prices), penalty, marked, nodes, lowest)
