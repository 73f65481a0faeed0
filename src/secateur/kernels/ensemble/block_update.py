"""Solve one block of the descent: find the optimal subtree and leaf values of a tree given all other trees.

The input is sums of gradient and Hessian over the leaves of the tree; the rows are not needed. At a node, let H be the
sum of the Hessian, and S the sum of the negative gradient plus Hessian · current contribution, so that S does not
depend on this tree for squared error. A leaf with a refitted value costs −S² / (H + ridge) + penalty · price (the first
term halved for log loss). The optimal subtree is found by a dynamic program from the leaves to the root. The arrays are
those of `secateur.kernels.ensemble.arrays`.

References
----------
Liu and Mazumder (2023), ForestPrune: compact depth-pruned tree ensembles, AISTATS. Problem (4), and with tree weights
Problems (6) and (7).
"""

import numpy as np

from secateur.kernels._jit import kernel
from secateur.kernels.ensemble.arrays import BlockProblem, Prices, Scratch, State, Trees

KEEP, REFIT, SCALE, SCALE_SPARSE = 0, 1, 2, 3
"""Contribution of a kept leaf: the original value, a value refitted with a ridge, or the original value times a weight
of the tree (with a penalty on the squared weight, or on the presence of the tree)."""


@kernel
def choose_subtree(
    tree: int,
    trees: Trees,
    prices: Prices,
    state: State,
    problem: BlockProblem,
    bounded: bool,
    scratch: Scratch,
) -> tuple:
    """Find the optimal subtree of a tree; return the gain and the weight of the tree.

    For log loss the gain is that of the quadratic approximation. `gradient` and `hessian` of the buffers hold the sums
    over the rows in each leaf; `bounded` replaces the latter by its upper bound, ¼ of the row weight. Writes `status`
    and `contribution` of the buffers; for squared error only if the gain exceeds the tolerance. O(nodes).
    """
    right, original, as_leaf, as_split = trees.right, trees.original, prices.as_leaf, prices.as_split
    status, contribution = state.status, state.contribution
    sums, hessian_sum, fitted, best = scratch.sums, scratch.hessian_sum, scratch.fitted, scratch.best
    penalty, ridge, centre, values = problem.penalty, problem.ridge, problem.centre, problem.values
    layered, frozen = problem.layered, problem.frozen
    start, width = trees.tree_start[tree], contribution.shape[1]
    n = trees.tree_start[tree + 1] - start
    newton = state.probability.shape[0] > 0
    half = 0.5 if newton else 1.0
    # Reverse preorder. Invariant: for every node w > v, `sums[w]` and `hessian_sum[w]` are S and H of the module
    # docstring, and `best[w]` is the cost of its optimal subtree (for layers: of a leaf), relative to a contribution of
    # 0. `old` accumulates the cost of the current tree on the same scale.
    old = _cost_of_factor(status[start], state.factor[tree], ridge, values, half)
    for v in range(n - 1, -1, -1):
        u = start + v
        if right[u] == -1:
            if newton:
                hessian_sum[v] = 0.25 * trees.node_weight[u] if bounded else scratch.hessian[v]
            else:
                hessian_sum[v] = trees.node_weight[u]
            for k in range(width):
                sums[v, k] = scratch.gradient[v, k] + hessian_sum[v] * contribution[u, k]
                old += half * contribution[u, k] * (hessian_sum[v] * contribution[u, k] - 2.0 * sums[v, k])
        else:
            b = right[u] - start
            hessian_sum[v] = hessian_sum[v + 1] + hessian_sum[b]
            for k in range(width):
                sums[v, k] = sums[v + 1, k] + sums[b, k]
        cost = 0.0
        for k in range(width):
            if values == REFIT:
                denominator, prior = hessian_sum[v] + ridge, centre * original[u, k]
                numerator = sums[v, k] + ridge * prior
                fitted[v, k] = numerator / denominator if denominator > 0.0 else 0.0
                cost += ridge * prior * prior - fitted[v, k] * numerator
            else:
                fitted[v, k] = original[u, k]
                cost += original[u, k] * (hessian_sum[v] * original[u, k] - 2.0 * sums[v, k])
        best[v] = half * cost + penalty * as_leaf[u]
        scratch.status[v] = 2
        if status[u] == 1:
            old += penalty * as_split[u]
        elif status[u] == 2:
            old += penalty * as_leaf[u]
            if values == REFIT:
                for k in range(width):
                    old += half * ridge * (contribution[u, k] - centre * original[u, k]) ** 2
        if right[u] != -1 and not layered:
            split_cost = best[v + 1] + best[right[u] - start] + penalty * as_split[u]
            if (frozen and status[u] == 1) or (not frozen and split_cost < best[v]):
                best[v] = split_cost
                scratch.status[v] = 1
    new, new_factor = best[0], 1.0
    if layered:
        # Whether the intercept is re-optimised together with the tree.
        refit_intercept = not newton and values <= REFIT and not frozen
        new, new_factor = _best_layer(tree, trees, prices, problem, refit_intercept, scratch)
    elif new >= 0.0 and not frozen:
        new, scratch.status[0] = 0.0, 0
    gain = old - new
    if gain > problem.tolerance or newton:
        _spread_values(tree, trees, new_factor, scratch)
    return gain, new_factor


@kernel
def _best_layer(
    tree: int, trees: Trees, prices: Prices, problem: BlockProblem, refit_intercept: bool, scratch: Scratch
) -> tuple:
    """Find the optimal depth of a tree; return its cost and the weight of the tree.

    This enumerates the depths, as ForestPrune does for Problem (4), and with tree weights for Problem (6); the weight
    at a fixed depth solves Problem (7) in closed form. `best` holds the costs of the nodes as leaves with the values
    `fitted`. With `refit_intercept` the cost includes the gain (Σ residuals)² / Σ weights of moving the intercept to
    the mean residual afterwards; the intercept must be optimal before the update. Writes the new status into the
    buffers.
    """
    right, depth, original = trees.right, trees.depth, trees.original
    sums, hessian_sum = scratch.sums, scratch.hessian_sum
    penalty, ridge, values = problem.penalty, problem.ridge, problem.values
    start, width = trees.tree_start[tree], original.shape[1]
    n = trees.tree_start[tree + 1] - start
    deepest = 0
    for v in range(n):
        deepest = max(deepest, depth[start + v])
    # For each depth d, with the tree cut below d:
    # depth_cost: cost of the tree; price: its penalty; match and norm: the inner products of the original values with
    # the residual and with themselves; added: Σ weight · value over the rows.
    depth_cost = np.zeros(deepest + 1)
    price = np.zeros(deepest + 1)
    match = np.zeros(deepest + 1)
    norm = np.zeros(deepest + 1)
    added = np.zeros((deepest + 1, width))
    for v in range(n):
        u = start + v
        last = deepest if right[u] == -1 else depth[u]
        inner, square = 0.0, 0.0
        if values >= SCALE:
            for k in range(width):
                inner += original[u, k] * sums[v, k]
                square += original[u, k] * original[u, k] * hessian_sum[v]
        for d in range(depth[u], last + 1):
            depth_cost[d] += scratch.best[v]
            price[d] += penalty * prices.as_leaf[u]
            match[d] += inner
            norm[d] += square
            for k in range(width):
                added[d, k] += hessian_sum[v] * scratch.fitted[v, k]
        if right[u] != -1:
            for d in range(depth[u] + 1, deepest + 1):
                depth_cost[d] += penalty * prices.as_split[u]
                price[d] += penalty * prices.as_split[u]
    least, cut, new_factor = 0.0, -1, 1.0
    if refit_intercept:
        for k in range(width):
            least -= sums[0, k] ** 2 / hessian_sum[0]
    for d in range(deepest + 1):
        cost, factor = depth_cost[d], 1.0
        if refit_intercept:
            for k in range(width):
                cost -= (sums[0, k] - added[d, k]) ** 2 / hessian_sum[0]
        if values == SCALE:
            factor = match[d] / (norm[d] + ridge) if norm[d] + ridge > 0.0 else 0.0
            cost = price[d] - factor * match[d]
        elif values == SCALE_SPARSE:
            factor = match[d] / norm[d] if norm[d] > 0.0 else 0.0
            cost = price[d] - factor * match[d] + ridge
        if cost < least:
            least, cut, new_factor = cost, d, factor
    for v in range(n):
        u = start + v
        if depth[u] > cut:
            scratch.status[v] = 0
        else:
            scratch.status[v] = 2 if depth[u] == cut or right[u] == -1 else 1
    return least, new_factor


@kernel
def _spread_values(tree: int, trees: Trees, new_factor: float, scratch: Scratch) -> None:
    """Clear the status of the nodes below kept leaves, and write the contributions into the buffers.

    Nodes below a kept leaf get its contribution; splits and nodes of a dropped tree get 0.
    """
    right, status, fitted, contribution = trees.right, scratch.status, scratch.fitted, scratch.contribution
    start, width = trees.tree_start[tree], fitted.shape[1]
    for v in range(trees.tree_start[tree + 1] - start):
        if v == 0 or status[v] == 2:
            for k in range(width):
                contribution[v, k] = new_factor * fitted[v, k] if status[v] == 2 else 0.0
        elif status[v] == 1:
            for k in range(width):
                contribution[v, k] = 0.0
        # Below a leaf or an absent node: the children are absent and inherit the contribution.
        if right[start + v] != -1 and status[v] != 1:
            a, b = v + 1, right[start + v] - start
            status[a] = status[b] = 0
            for k in range(width):
                contribution[a, k] = contribution[b, k] = contribution[v, k]


@kernel
def _cost_of_factor(status: int, factor: float, ridge: float, values: int, half: float) -> float:
    """Return the penalty on the weight of a tree, 0 for a dropped tree."""
    if status != 0 and values == SCALE:
        return half * ridge * factor * factor
    if status != 0 and values == SCALE_SPARSE:
        return half * ridge
    return 0.0


@kernel
def price_gain(tree: int, trees: Trees, prices: Prices, state: State, problem: BlockProblem, scratch: Scratch) -> float:
    """Return the decrease in penalty plus ridge term, for log loss with refitted or original values."""
    as_leaf, as_split, original = prices.as_leaf, prices.as_split, trees.original
    penalty, ridge, centre = problem.penalty, problem.ridge, problem.centre
    start, gain = trees.tree_start[tree], 0.0
    for v in range(trees.tree_start[tree + 1] - start):
        u = start + v
        if state.status[u] == 1:
            gain += penalty * as_split[u]
        elif state.status[u] == 2:
            gain += penalty * as_leaf[u] + 0.5 * ridge * (state.contribution[u, 0] - centre * original[u, 0]) ** 2
        if scratch.status[v] == 1:
            gain -= penalty * as_split[u]
        elif scratch.status[v] == 2:
            gain -= penalty * as_leaf[u] + 0.5 * ridge * (scratch.contribution[v, 0] - centre * original[u, 0]) ** 2
    return gain
