"""Sweep over the trees of an ensemble as `secateur.kernels.ensemble.block_descent`, with trees that are cut at a depth.

The kernels are separate from those for subtrees, so that a descent compiles only its own.

References
----------
Liu and Mazumder (2023), ForestPrune: compact depth-pruned tree ensembles, AISTATS. Problem (4), and with tree weights
Problems (6) and (7).
"""

import numpy as np

from secateur.kernels._jit import kernel
from secateur.kernels.ensemble.arrays import BlockProblem, Prices, RoutedRows, Scratch, State, Trees, empty_scratch
from secateur.kernels.ensemble.block_descent import move_intercept, place_subtree, sum_rows
from secateur.kernels.ensemble.block_update import (
    REFIT,
    SCALE,
    SCALE_SPARSE,
    fit_leaves,
    penalty_of,
    set_bounds,
    spread_values,
    sum_nodes,
)


@kernel
def sweep_layered_blocks(
    rows: RoutedRows,
    trees: Trees,
    prices: Prices,
    state: State,
    problem: BlockProblem,
    may_change: np.ndarray,
    first: int,
) -> tuple[bool, float, float]:
    """Update every tree with `may_change` once, then the intercept, as `sweep_blocks`."""
    n_trees = len(trees.tree_output)
    scratch = empty_scratch(trees, state)
    changed, total, saved = 0, 0.0, 0.0
    # Loop invariant: the objective has decreased by `total` since the start of the sweep.
    for position in range(n_trees):
        tree = (first + position) % n_trees
        if may_change[tree]:
            gain, less = update_layers(tree, rows, trees, prices, state, problem, scratch)
            if gain > 0.0:
                total += gain
                saved += less
                changed += 1
    moved = move_intercept(rows.weight, state)
    return changed == 0 and moved <= problem.tolerance, total + moved, saved


@kernel
def update_layers(
    tree: int,
    rows: RoutedRows,
    trees: Trees,
    prices: Prices,
    state: State,
    problem: BlockProblem,
    scratch: Scratch,
) -> tuple[float, float]:
    """Cut one tree at its optimal depth given all others: ForestPrune's Problem (4) for original values.

    Returns the gain, 0 if the tree does not change, and the part of it that is penalty and ridge (0 for squared error,
    where it is not needed).
    """
    start = trees.tree_start[tree]
    if problem.frozen and state.status[start] == 0:
        return 0.0, 0.0
    sum_rows(tree, rows, trees, state, scratch)
    old = cost_of_factor(state.status[start], state.factor[tree], problem.ridge, problem.values)
    old += sum_nodes(tree, trees, state, scratch)
    if state.status[start] != 0:
        old += penalty_of(tree, trees, prices, problem, state.status, state.contribution, start)
    if trees.sign.shape[0] > 0:
        set_bounds(tree, trees, state, problem, scratch)
    fit_leaves(tree, trees, prices, problem, scratch)
    # Whether the intercept is re-optimised together with the tree.
    with_intercept = state.curvature.shape[0] == 0 and problem.values <= REFIT
    only = cut_depth(tree, trees, state) if problem.frozen else -1
    new, factor, entry = best_layer(tree, trees, prices, problem, with_intercept and not problem.frozen, only, scratch)
    if not old - new > problem.tolerance:
        state.entry[tree] = entry if state.status[start] == 0 else np.inf
        return 0.0, 0.0
    spread_values(tree, trees, factor, scratch)
    saved = place_subtree(tree, rows, trees, prices, state, problem, scratch, factor)
    if with_intercept:
        # The cost of the layer already includes the gain of this step.
        move_intercept(rows.weight, state)
    return old - new, saved


@kernel
def cut_depth(tree: int, trees: Trees, state: State) -> int:
    """Return the depth at which a tree is cut."""
    deepest = 0
    for v in range(trees.tree_start[tree], trees.tree_start[tree + 1]):
        if state.status[v] != 0:
            deepest = max(deepest, trees.depth[v])
    return deepest


@kernel
def best_layer(
    tree: int, trees: Trees, prices: Prices, problem: BlockProblem, refit_intercept: bool, only: int, scratch: Scratch
) -> tuple[float, float, float]:
    """Find the optimal depth of a tree, or take depth `only`; return its cost, the tree's weight and entry penalty.

    This enumerates the depths, as ForestPrune does for Problem (4), and with tree weights for Problem (6); the weight
    at a fixed depth solves Problem (7) in closed form. `best` holds the costs of the nodes as leaves with the values
    `fitted`. With `refit_intercept` the cost includes the gain (Σ residuals)² / Σ weights of moving the intercept to
    the mean residual afterwards; the intercept must be optimal before the update. Writes the new status into the
    buffers.
    """
    right, depth, original = trees.right, trees.depth, trees.original
    sums, hessian_sum = scratch.sums, scratch.hessian_sum
    penalty, ridge, values = problem.penalty, problem.ridge, problem.values
    start, width, n_hessians = trees.tree_start[tree], original.shape[1], hessian_sum.shape[1]
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
                square += original[u, k] * original[u, k] * hessian_sum[v, min(k, n_hessians - 1)]
        for d in range(depth[u], last + 1):
            depth_cost[d] += scratch.best[v]
            price[d] += penalty * prices.as_leaf[u]
            match[d] += inner
            norm[d] += square
            for k in range(width):
                added[d, k] += hessian_sum[v, min(k, n_hessians - 1)] * scratch.fitted[v, k]
        if right[u] != -1:
            for d in range(depth[u] + 1, deepest + 1):
                depth_cost[d] += penalty * prices.as_split[u]
                price[d] += penalty * prices.as_split[u]
    least, cut, new_factor, entry = 0.0, -1, 1.0, 0.0
    if refit_intercept:
        for k in range(width):
            least -= sums[0, k] ** 2 / hessian_sum[0, 0]
    dropped = least
    if only >= 0:
        least = np.inf
    for d in range(deepest + 1):
        cost, factor = depth_cost[d], 1.0
        if refit_intercept:
            for k in range(width):
                cost -= (sums[0, k] - added[d, k]) ** 2 / hessian_sum[0, 0]
        if values == SCALE:
            factor = match[d] / (norm[d] + ridge) if norm[d] + ridge > 0.0 else 0.0
            cost = price[d] - factor * match[d]
        elif values == SCALE_SPARSE:
            factor = match[d] / norm[d] if norm[d] > 0.0 else 0.0
            cost = price[d] - factor * match[d] + ridge
        if cost < least and (only < 0 or d == only):
            least, cut, new_factor = cost, d, factor
        # The tree enters at the penalty at which this depth costs as much as a dropped tree.
        decrease = dropped - (cost - price[d])
        if decrease > 0.0:
            entry = max(entry, penalty * decrease / price[d] if price[d] > 0.0 else np.inf)
    for v in range(n):
        u = start + v
        if depth[u] > cut:
            scratch.status[v] = 0
        else:
            scratch.status[v] = 2 if depth[u] == cut or right[u] == -1 else 1
    return least, new_factor, entry


@kernel
def cost_of_factor(status: int, factor: float, ridge: float, values: int) -> float:
    """Return the penalty on the weight of a tree, 0 for a dropped tree."""
    if status != 0 and values == SCALE:
        return ridge * factor * factor
    if status != 0 and values == SCALE_SPARSE:
        return ridge
    return 0.0
