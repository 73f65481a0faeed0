"""Screen the nodes of every tree: mark those that can reduce the objective at a penalty."""

import numpy as np

from secateur.kernels._jit import kernel
from secateur.kernels.ensemble.arrays import Prices, RoutedRows, State, Trees, empty_scratch


@kernel
def mark_active_nodes(
    rows: RoutedRows, trees: Trees, prices: Prices, state: State, penalty: float, ridge: float
) -> np.ndarray:
    """Return the active set for squared error, (n_nodes,) bool.

    Let r be the residual of a row without this tree's contribution. Let W, S and E be the sums of weight, weight · r
    and weight · r² over the rows of a node. Any subtree below the node reduces the loss by at most

        (W E − S²) / (W + ridge)

    more than the node does as a leaf with its optimal value. A split whose additional price exceeds this bound becomes
    a leaf, and the nodes below it are not marked. The children of current splits are always marked.
    """
    leaves, weight, right, node_weight = rows.leaves, rows.weight, trees.right, trees.node_weight
    as_leaf, as_split, contribution = prices.as_leaf, prices.as_split, state.contribution
    width = contribution.shape[1]
    marked = np.zeros(right.shape[0], np.bool_)
    scratch = empty_scratch(trees, state)
    sums, sum_squares = scratch.sums, scratch.best
    for tree in range(leaves.shape[0]):
        start, stop = trees.tree_start[tree], trees.tree_start[tree + 1]
        first = max(trees.tree_output[tree], 0)
        for v in range(stop - start):
            sum_squares[v] = 0.0
            for k in range(width):
                sums[v, k] = 0.0
        for i in range(leaves.shape[1]):
            v = leaves[tree, i]
            for k in range(width):
                residual = state.neg_gradient[first + k, i] + weight[i] * contribution[start + v, k]
                sums[v, k] += residual
                sum_squares[v] += residual * residual / weight[i]
        # Reverse preorder: both children are summed before their parent.
        for v in range(stop - start - 1, -1, -1):
            if right[start + v] != -1:
                other = right[start + v] - start
                sum_squares[v] = sum_squares[v + 1] + sum_squares[other]
                for k in range(width):
                    sums[v, k] = sums[v + 1, k] + sums[other, k]
        # Preorder: a node is marked before its children are considered.
        marked[start] = True
        for u in range(start, stop):
            if marked[u] and right[u] != -1:
                price = as_split[u] + as_leaf[u + 1] + as_leaf[right[u]] - as_leaf[u]
                square = 0.0
                for k in range(width):
                    square += sums[u - start, k] ** 2
                denominator = node_weight[u] + ridge
                max_gain = (
                    (node_weight[u] * sum_squares[u - start] - square) / denominator if denominator > 0.0 else 0.0
                )
                if state.status[u] == 1 or max_gain > penalty * price:
                    marked[u + 1] = marked[right[u]] = True
    return marked
