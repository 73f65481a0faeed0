"""Shrink the state of a block descent: drop a tree, or collapse the weakest splits.

The arrays are those of `secateur.kernels.ensemble.block_descent`.
"""

import numpy as np

from secateur.kernels._jit import kernel
from secateur.kernels.ensemble.block_descent import move_rows, sum_rows
from secateur.kernels.ensemble.block_update import REFIT


@kernel
def drop_tree(
    leaf: np.ndarray,
    weight: np.ndarray,
    neg_gradient: np.ndarray,
    probability: np.ndarray,
    column: int,
    start: int,
    stop: int,
    status: np.ndarray,
    contribution: np.ndarray,
) -> None:
    """Drop one tree from the state."""
    zeros = np.zeros((stop - start, contribution.shape[1]))
    move_rows(leaf, weight, neg_gradient, probability, column, start, contribution.shape[1], contribution, zeros)
    status[start:stop] = 0
    contribution[start:stop] = 0.0


@kernel
def weakest_collapses(
    leaves: np.ndarray,
    weight: np.ndarray,
    neg_gradient: np.ndarray,
    probability: np.ndarray,
    tree_start: np.ndarray,
    tree_output: np.ndarray,
    right: np.ndarray,
    node_weight: np.ndarray,
    original: np.ndarray,
    as_leaf: np.ndarray,
    as_split: np.ndarray,
    status: np.ndarray,
    contribution: np.ndarray,
    ridge: float,
    values: int,
) -> tuple:
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
    n_trees, width = leaves.shape[0], contribution.shape[1]
    largest = (tree_start[1:] - tree_start[:-1]).max() if n_trees > 0 else 1
    sums, hessian_sum = np.empty((largest, width)), np.empty(largest)
    node, rate, value = np.full(n_trees, -1), np.full(n_trees, np.inf), np.zeros((n_trees, width))
    newton = probability.shape[0] > 0
    for tree in range(n_trees):
        start, n = tree_start[tree], tree_start[tree + 1] - tree_start[tree]
        if status[start] == 1:
            sum_rows(
                leaves[tree], weight, neg_gradient, probability, max(tree_output[tree], 0), n, width, sums, hessian_sum
            )
            node[tree], rate[tree] = weakest_collapse(
                start,
                n,
                right,
                node_weight,
                original,
                as_leaf,
                as_split,
                status,
                contribution,
                ridge,
                values,
                newton,
                sums,
                hessian_sum,
                value[tree],
            )
    return node, rate, value


@kernel
def weakest_collapse(
    start: int,
    n: int,
    right: np.ndarray,
    node_weight: np.ndarray,
    original: np.ndarray,
    as_leaf: np.ndarray,
    as_split: np.ndarray,
    status: np.ndarray,
    contribution: np.ndarray,
    ridge: float,
    values: int,
    newton: bool,
    sums: np.ndarray,
    hessian_sum: np.ndarray,
    value: np.ndarray,
) -> tuple:
    """Return node and rate of `weakest_collapses` for one tree, from sums of gradient and Hessian in its leaves.

    Extends `sums` and `hessian_sum` to the inner nodes in place, and writes the new contribution into `value`.
    """
    width = contribution.shape[1]
    node, rate = -1, np.inf
    half = 0.5 if newton else 1.0
    fitted = np.empty(width)
    # Reverse preorder. Invariant: `sums` and `hessian_sum` hold gradient and Hessian of all nodes after v, and `node`
    # is the split after v with the smallest rate.
    for v in range(n - 1, -1, -1):
        u = start + v
        if right[u] == -1:
            if not newton:
                hessian_sum[v] = node_weight[u]
            continue
        a, b = v + 1, right[u] - start
        hessian_sum[v] = hessian_sum[a] + hessian_sum[b]
        for k in range(width):
            sums[v, k] = sums[a, k] + sums[b, k]
        if status[u] != 1 or status[start + a] != 2 or status[start + b] != 2:
            continue
        saved = as_split[u] + as_leaf[start + a] + as_leaf[start + b] - (as_leaf[u] if v > 0 else 0.0)
        cost = 0.0
        for k in range(width):
            fitted[k] = 0.0
            if v > 0:
                fitted[k] = original[u, k]
                if values == REFIT:
                    numerator = (hessian_sum[a] + ridge) * contribution[start + a, k] + (
                        hessian_sum[b] + ridge
                    ) * contribution[start + b, k]
                    denominator = hessian_sum[v] + ridge
                    fitted[k] = numerator / denominator if denominator > 0.0 else 0.0
            cost += ridge * fitted[k] * fitted[k]
            for c in (a, b):
                step = fitted[k] - contribution[start + c, k]
                cost += step * (hessian_sum[c] * step - 2.0 * sums[c, k]) - ridge * contribution[start + c, k] ** 2
        if saved > 0.0 and half * cost < rate * saved:
            node, rate = u, half * cost / saved
            value[:] = fitted
    return node, rate


@kernel
def collapse(
    leaf: np.ndarray,
    weight: np.ndarray,
    neg_gradient: np.ndarray,
    probability: np.ndarray,
    column: int,
    start: int,
    stop: int,
    node: int,
    end: int,
    value: np.ndarray,
    status: np.ndarray,
    contribution: np.ndarray,
) -> None:
    """Turn a split into a leaf with the given contribution; collapsing a root drops the tree.

    `end` is one past the last node below `node`.
    """
    new_contribution = contribution[start:stop].copy()
    new_contribution[node - start : end - start] = value
    move_rows(
        leaf, weight, neg_gradient, probability, column, start, contribution.shape[1], contribution, new_contribution
    )
    contribution[start:stop] = new_contribution
    status[node:end] = 0
    if node != start:
        status[node] = 2
