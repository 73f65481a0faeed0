"""Define the arrays that the kernels of block descent share: trees, rows, prices, state, problem and buffers."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from secateur.kernels._jit import kernel
from secateur.kernels.ensemble.leaf_sums import MAX_LANE_NODES, N_LANES

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
    order : (n_nodes,)
        The nodes of each tree, counted from its root: first its leaves, then its splits, each in reverse preorder.
        Loops over one kind of node need no test for it, which processors cannot predict.
    depth : (n_nodes,)
    node_weight : (n_nodes,)
        Row weight at each node.
    original : (n_nodes, width)
        The contribution of each node as a leaf, minus that of its root.
    sign : (n_nodes, width) int8
        At a split on a feature with a monotonic constraint, 1 if the contributions on the left must not exceed those
        on the right, -1 for the reverse; 0 elsewhere. Without constraints the array has no rows.
    """

    tree_start: NDArray[np.int64]
    tree_output: NDArray[np.int32]
    right: NDArray[np.int32]
    order: NDArray[np.int32]
    depth: NDArray[np.int32]
    node_weight: Floats
    original: Floats
    sign: NDArray[np.int8]


def leaves_then_splits(tree_start: NDArray[np.int64], right: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the nodes of each tree in the order of `Trees.order`, (n_nodes,)."""
    size = np.diff(tree_start)
    start, is_leaf = np.repeat(tree_start[:-1], size), right == -1
    # Position from the end of its kind; a binary tree of n nodes has (n + 1) / 2 leaves.
    leaf = np.cumsum(is_leaf, dtype=np.int32)
    leaf -= (leaf - is_leaf)[start]
    node = np.arange(len(right), dtype=np.int32) - start.astype(np.int32)
    n = np.repeat(size.astype(np.int32), size)
    order = np.empty_like(node)
    order[start + np.where(is_leaf, (n + 1) // 2 - leaf, n - 1 - node + leaf)] = node
    return order


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

    During a sweep the loss of a row is a parabola, whose curvature is frozen. It is the loss itself for squared error.

    Attributes
    ----------
    neg_gradient : (n_outputs, n_rows)
        Half the negative gradient of the weighted loss; weight · (target − prediction) for squared error.
    curvature : (n_outputs, n_rows)
        Half the curvature of the weighted loss. Empty for squared error, for which it is the row weight.
    score : (n_outputs, n_rows)
        The sum of offset, intercept and contributions; empty for squared error.
    loss : (1,)
        The weighted loss where the parabolas touch it; unused for squared error.
    intercept : (n_outputs,)
    status : (n_nodes,) int8
        0 absent, 1 split, 2 leaf.
    contribution : (n_nodes, width)
        The contribution of each kept leaf, repeated at the nodes below it.
    factor : (n_trees,)
        The weight of each tree.
    entry : (n_trees,)
        An estimate of the largest penalty at which a dropped tree would enter, infinite where it is not known.

    See Also
    --------
    secateur.kernels.ensemble.block_descent : The updates.
    """

    neg_gradient: Floats
    curvature: Floats
    score: Floats
    loss: Floats
    intercept: Floats
    status: NDArray[np.int8]
    contribution: Floats
    factor: Floats
    entry: Floats

    def copy(self, *, parabolas: bool = True) -> "State":
        """Return an independent copy; without `parabolas`, it shares the arrays that are computed from `score`."""
        if parabolas:
            return State._make(array.copy() for array in self)
        others = self._replace(neg_gradient=np.empty((0, 0)), curvature=np.empty((0, 0))).copy()
        return others._replace(neg_gradient=self.neg_gradient, curvature=self.curvature)


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
    frozen : bool
        Whether values are refitted without changing the kept nodes.
    tolerance : float
        An update is accepted if it gains more than this.
    screening : float
        Trees that stay dropped are tested for entry down to this multiple of the penalty; 0 for no test.
    """

    penalty: float
    ridge: float
    centre: float
    values: int
    frozen: bool
    tolerance: float
    screening: float = 0.0


class Scratch(NamedTuple):
    """Buffers of a block update, with room for the nodes of any one tree.

    Attributes
    ----------
    gradient, hessian : (n, width)
        Sums of negative gradient and curvature of the rows in each leaf. With the same curvature for all outputs,
        `hessian` has one column.
    sums, hessian_sum : (n, width)
        S and H of `secateur.kernels.ensemble.block_update`, at each node.
    low, high : (n, width)
        The bounds that monotonic constraints set for the value of each node; no rows without constraints.
    fitted : (n, width)
        The contribution of each node as a leaf, for a tree of weight 1.
    best, price : (n,)
        The cost of the optimal subtree of each node; its price, for entry penalties.
    contribution, status : (n, width), (n,)
        The contribution and the status of each node after the update.
    lanes : (N_LANES · n,)
        Partial sums of `secateur.kernels.ensemble.leaf_sums`, for at most MAX_LANE_NODES nodes.
    """

    gradient: Floats
    hessian: Floats
    sums: Floats
    hessian_sum: Floats
    low: Floats
    high: Floats
    fitted: Floats
    best: Floats
    price: Floats
    contribution: Floats
    status: NDArray[np.int8]
    lanes: Floats


@kernel
def empty_scratch(trees: Trees, state: State) -> Scratch:
    """Allocate the buffers for the updates of these trees."""
    n, width = 1, trees.original.shape[1]
    for tree in range(len(trees.tree_output)):
        n = max(n, trees.tree_start[tree + 1] - trees.tree_start[tree])
    n_hessians = width if state.curvature.shape[0] > 0 else 1
    n_bounds = n if trees.sign.shape[0] > 0 else 0
    return Scratch(
        np.empty((n, width)),
        np.empty((n, n_hessians)),
        np.empty((n, width)),
        np.empty((n, n_hessians)),
        np.empty((n_bounds, width)),
        np.empty((n_bounds, width)),
        np.empty((n, width)),
        np.empty(n),
        np.empty(n),
        np.empty((n, width)),
        np.empty(n, np.int8),
        np.empty(N_LANES * min(n, MAX_LANE_NODES)),
    )
