"""Define the arrays that the kernels of block descent share: trees, rows, prices, state, problem and buffers."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from secateur.kernels._jit import kernel

Floats = NDArray[np.float64]


class Trees(NamedTuple):
    """The trees of an ensemble, on the scale of the loss.

    Attributes
    ----------
    tree_start : (n_trees + 1,)
        The first node of each tree.
    tree_output : (n_trees,)
        The output each tree contributes to, −1 for all.
    right : (n_nodes,)
        The right child, −1 at a leaf; the left child is the next node.
    depth : (n_nodes,)
    node_weight : (n_nodes,)
        Row weight at each node.
    original : (n_nodes, width)
        The contribution of each node as a leaf, minus that of its root.
    """

    tree_start: NDArray[np.int64]
    tree_output: NDArray[np.int32]
    right: NDArray[np.int32]
    depth: NDArray[np.int32]
    node_weight: Floats
    original: Floats


class RoutedRows(NamedTuple):
    """Rows that are routed to leaves.

    Attributes
    ----------
    leaves : (n_trees, n_rows)
        The leaf each row reaches, counted from the root of the tree.
    weight : (n_rows,)
        Row weights.
    """

    leaves: NDArray[np.unsignedinteger]
    weight: Floats


class Prices(NamedTuple):
    """The price of each node as a leaf and as a split, both (n_nodes,)."""

    as_leaf: Floats
    as_split: Floats


class State(NamedTuple):
    """The variables of a block descent, which updates the arrays in place.

    Attributes
    ----------
    neg_gradient : (n_rows, n_outputs)
        weight · (target − prediction).
    probability : (n_rows, n_outputs)
        Predicted probabilities for log loss; empty for squared error.
    intercept : (n_outputs,)
    status : (n_nodes,) int8
        0 absent, 1 split, 2 leaf.
    contribution : (n_nodes, width)
        The contribution of each kept leaf, repeated at the nodes below it.
    factor : (n_trees,)
        The weight of each tree.

    See Also
    --------
    secateur.kernels.ensemble.block_descent : The updates.
    """

    neg_gradient: Floats
    probability: Floats
    intercept: Floats
    status: NDArray[np.int8]
    contribution: Floats
    factor: Floats

    def copy(self) -> "State":
        """Return an independent copy."""
        return State._make(array.copy() for array in self)


class BlockProblem(NamedTuple):
    """What a block update minimises besides the loss, and what it may change.

    Attributes
    ----------
    penalty : float
        Multiplier of the prices.
    ridge : float
        Penalty on squared values or weights, on the scale of the loss.
    centre : float
        The ridge shrinks refitted values towards `centre` times the original ones.
    values : int
        How the contribution of a kept leaf is determined: a constant of `secateur.kernels.ensemble.block_update`.
    layered : bool
        Whether trees are only cut at a depth.
    frozen : bool
        Whether values are refitted without changing the kept nodes.
    tolerance : float
        An update is accepted if it gains more than this.
    """

    penalty: float
    ridge: float
    centre: float
    values: int
    layered: bool
    frozen: bool
    tolerance: float


class Scratch(NamedTuple):
    """Buffers of a block update, with room for the nodes of any one tree.

    Attributes
    ----------
    gradient, hessian : (n, width), (n,)
        Sums of negative gradient and Hessian of the rows in each leaf.
    sums, hessian_sum : (n, width), (n,)
        S and H of `secateur.kernels.ensemble.block_update`, at each node.
    fitted : (n, width)
        The contribution of each node as a leaf, for a tree of weight 1.
    best : (n,)
        The cost of the optimal subtree of each node.
    contribution, status : (n, width), (n,)
        The contribution and the status of each node after the update.
    """

    gradient: Floats
    hessian: Floats
    sums: Floats
    hessian_sum: Floats
    fitted: Floats
    best: Floats
    contribution: Floats
    status: NDArray[np.int8]


@kernel
def empty_scratch(trees: Trees) -> Scratch:
    """Allocate the buffers for the updates of these trees."""
    n, width = 1, trees.original.shape[1]
    for tree in range(len(trees.tree_output)):
        n = max(n, trees.tree_start[tree + 1] - trees.tree_start[tree])
    return Scratch(
        np.empty((n, width)),
        np.empty(n),
        np.empty((n, width)),
        np.empty(n),
        np.empty((n, width)),
        np.empty(n),
        np.empty((n, width)),
        np.empty(n, np.int8),
    )
