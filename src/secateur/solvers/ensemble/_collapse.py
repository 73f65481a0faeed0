"""Collapse splits above two leaves in the state of a block descent, the weakest first."""

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.kernels import Prices, State
from secateur.solvers.ensemble.additive_model import Additive

Floats = NDArray[np.float64]


def weakest_collapses(
    ensemble: Additive, prices: Prices, state: State, sums: Floats, ridge: float, *, refit: bool
) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats, Floats]:
    """Return for each tree the split above two kept leaves whose collapse increases the loss least per price saved.

    Collapsing a root drops the tree. A refitted value is optimal under the assumption that the two leaves have
    their optimal values now. The remaining gradient of the rows is ignored: it is the same for all trees, and collapses
    in many trees would correct for it many times.

    Parameters
    ----------
    ensemble : Additive
    prices : Prices
    state : State
    sums : (n_nodes, n)
        The sums that `sweep_blocks` writes for the leaves of trees; those of all nodes are written.
    ridge : float
    refit : bool
        Whether the new leaf is refitted; otherwise it gets the original value.

    Returns
    -------
    tree, node : (n,)
        The trees that have such a split, and the split.
    rate : (n,)
        Increase in loss, including the ridge term, per price saved.
    value : (n, width)
        The contribution of the new leaf.
    """
    forest, status, contribution = ensemble.forest, state.status, state.contribution
    width = contribution.shape[1]
    if not len(state.curvature):
        sums[:, width] = np.where(forest.is_split, 0.0, ensemble.node_weight)
    kernels.roll_up(forest.right, sums)
    node = np.flatnonzero(status == 1)
    node = node[(status[node + 1] == 2) & (status[forest.right[node]] == 2)]
    tree = np.searchsorted(forest.tree_start, node, side="right") - 1
    pair, is_root = (node + 1, forest.right[node].astype(np.intp)), (node == forest.root[tree])
    saved = prices.as_split[node] + prices.as_leaf[pair[0]] + prices.as_leaf[pair[1]]
    saved = saved - np.where(is_root, 0.0, prices.as_leaf[node])
    value, cost = np.zeros((len(node), width)), np.zeros(len(node))
    for k in range(width):
        column = min(width + k, sums.shape[1] - 1)
        curvature, (left, right) = sums[node, column], (contribution[child, k] for child in pair)
        if refit:
            numerator = (sums[pair[0], column] + ridge) * left + (sums[pair[1], column] + ridge) * right
            denominator = curvature + ridge
            fitted = np.divide(numerator, denominator, out=np.zeros(len(node)), where=denominator > 0)
            if len(ensemble.trees.sign):
                # Between the two values the leaf respects every constraint that they do.
                fitted = np.clip(fitted, np.minimum(left, right), np.maximum(left, right))
        else:
            fitted = ensemble.original[node, k]
        value[:, k] = np.where(is_root, 0.0, fitted)
        cost += ridge * value[:, k] * value[:, k]
        for child, before in zip(pair, (left, right), strict=True):
            step = value[:, k] - before
            cost += step * (sums[child, column] * step - 2.0 * sums[child, k]) - ridge * before**2
    found = np.flatnonzero(saved > 0)
    rate = cost[found] / saved[found]
    # Of equal splits of a tree, the last one.
    found = found[np.lexsort([-node[found], rate, tree[found]])]
    found = found[np.diff(tree[found], prepend=-1) > 0]
    return tree[found], node[found], cost[found] / saved[found], value[found]


def collapse(ensemble: Additive, state: State, tree: int, node: int, value: Floats) -> None:
    """Turn a split into a leaf with the given contribution; collapsing a root drops the tree."""
    forest, end = ensemble.forest, int(ensemble.forest.end[node])
    first, leaf = node - int(forest.root[tree]), ensemble.leaves[tree]
    rows = np.flatnonzero((leaf >= first) & (leaf < first + end - node))
    step = (value - state.contribution[node:end])[leaf[rows] - first]
    for k in range(len(value)):
        column = max(int(forest.tree_output[tree]), 0) + k
        curvature = state.curvature[column] if len(state.curvature) else ensemble.weight
        state.neg_gradient[column, rows] -= curvature[rows] * step[:, k]
        if len(state.curvature):
            state.score[column, rows] += step[:, k]
    state.contribution[node:end] = value
    state.status[node:end] = 0
    if first:
        state.status[node] = 2
