"""Shrink the state of a block descent: drop a tree, or collapse the weakest splits.

The arrays are those of `secateur.kernels.ensemble.arrays`.
"""

import numpy as np

from secateur.kernels._jit import kernel
from secateur.kernels.ensemble.arrays import Prices, RoutedRows, Scratch, State, Trees, empty_scratch
from secateur.kernels.ensemble.block_descent import move_rows, sum_rows
from secateur.kernels.ensemble.block_update import REFIT


@kernel
def drop_tree(tree: int, rows: RoutedRows, trees: Trees, state: State) -> None:
    """Drop one tree from the state."""
    start, width = trees.tree_start[tree], state.contribution.shape[1]
    n = trees.tree_start[tree + 1] - start
    move_rows(tree, rows, trees, state, np.zeros((n, width)))
    for u in range(start, start + n):
        state.status[u] = 0
        for k in range(width):
            state.contribution[u, k] = 0.0
    state.factor[tree] = 0.0


@kernel
def weakest_collapses(
    rows: RoutedRows, trees: Trees, prices: Prices, state: State, ridge: float, values: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return for each tree the split above two kept leaves whose collapse increases the loss least per price saved.

    Collapsing a root drops the tree. A refitted value is optimal under the assumption that the two leaves have
    their optimal values now. The remaining gradient of the rows is ignored: it is the same for all trees, and collapses
    in many trees would correct for it many times.

    Returns
    -------
    node : (n_trees,)
        The split to collapse, -1 if there is none.
    rate : (n_trees,)
        Increase in loss, including the ridge term, per price saved.
    value : (n_trees, width)
        The contribution of the new leaf.
    """
    n_trees, width = rows.leaves.shape[0], state.contribution.shape[1]
    scratch = empty_scratch(trees, state)
    node, rate, value = np.full(n_trees, -1), np.full(n_trees, np.inf), np.zeros((n_trees, width))
    for tree in range(n_trees):
        if state.status[trees.tree_start[tree]] == 1:
            sum_rows(tree, rows, trees, state, scratch)
            node[tree], rate[tree] = weakest_collapse(tree, trees, prices, state, ridge, values, scratch, value[tree])
    return node, rate, value


@kernel
def weakest_collapse(
    tree: int,
    trees: Trees,
    prices: Prices,
    state: State,
    ridge: float,
    values: int,
    scratch: Scratch,
    value: np.ndarray,
) -> tuple[int, float]:
    """Return node and rate of `weakest_collapses` for one tree, from sums of gradient and Hessian in its leaves.

    Extends `gradient` and `hessian` of the buffers to the inner nodes, and writes the new contribution into `value`.
    """
    right, as_leaf, as_split = trees.right, prices.as_leaf, prices.as_split
    status, contribution = state.status, state.contribution
    gradient, hessian, fitted = scratch.gradient, scratch.hessian, scratch.fitted[0]
    start, width = trees.tree_start[tree], contribution.shape[1]
    n_hessians = hessian.shape[1]
    curved = state.curvature.shape[0] > 0
    node, rate = -1, np.inf
    # Reverse preorder. Invariant: `gradient` and `hessian` hold the sums over the rows of all nodes after v, and `node`
    # is the split after v with the smallest rate.
    for v in range(trees.tree_start[tree + 1] - start - 1, -1, -1):
        u = start + v
        if right[u] == -1:
            if not curved:
                hessian[v, 0] = trees.node_weight[u]
            continue
        a, b = v + 1, right[u] - start
        for k in range(n_hessians):
            hessian[v, k] = hessian[a, k] + hessian[b, k]
        for k in range(width):
            gradient[v, k] = gradient[a, k] + gradient[b, k]
        if status[u] != 1 or status[start + a] != 2 or status[start + b] != 2:
            continue
        saved = as_split[u] + as_leaf[start + a] + as_leaf[start + b] - (as_leaf[u] if v > 0 else 0.0)
        cost = 0.0
        for k in range(width):
            h = min(k, n_hessians - 1)
            fitted[k] = 0.0
            if v > 0:
                fitted[k] = trees.original[u, k]
                if values == REFIT:
                    left, other = contribution[start + a, k], contribution[start + b, k]
                    numerator = (hessian[a, h] + ridge) * left + (hessian[b, h] + ridge) * other
                    denominator = hessian[v, h] + ridge
                    fitted[k] = numerator / denominator if denominator > 0.0 else 0.0
                    if trees.sign.shape[0] > 0:
                        # Between the two values the leaf respects every constraint that they do.
                        fitted[k] = min(max(fitted[k], min(left, other)), max(left, other))
            cost += ridge * fitted[k] * fitted[k]
            for c in (a, b):
                step = fitted[k] - contribution[start + c, k]
                cost += step * (hessian[c, h] * step - 2.0 * gradient[c, k]) - ridge * contribution[start + c, k] ** 2
        if saved > 0.0 and cost < rate * saved:
            node, rate = u, cost / saved
            for k in range(width):
                value[k] = fitted[k]
    return node, rate


@kernel
def collapse(tree: int, node: int, end: int, value: np.ndarray, rows: RoutedRows, trees: Trees, state: State) -> None:
    """Turn a split into a leaf with the given contribution; collapsing a root drops the tree.

    `end` is one past the last node below `node`.
    """
    start, stop = trees.tree_start[tree], trees.tree_start[tree + 1]
    new_contribution = state.contribution[start:stop].copy()
    for v in range(node - start, end - start):
        for k in range(len(value)):
            new_contribution[v, k] = value[k]
    move_rows(tree, rows, trees, state, new_contribution)
    for u in range(node, end):
        state.status[u] = 0
        for k in range(len(value)):
            state.contribution[u, k] = value[k]
    if node != start:
        state.status[node] = 2
