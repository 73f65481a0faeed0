"""Solve one block of the descent: find the optimal subtree and leaf values of a tree given all other trees.

The input is sums of gradient and curvature over the leaves of the tree; the rows are not needed. At a node, let H be
the sum of the curvature, and S the sum of the negative gradient plus curvature · current contribution, so that S does
not depend on this tree. A leaf of value v costs H v² − 2 S v + ridge v² + penalty · price. A refitted value is
S / (H + ridge), moved to the nearest value that monotonic constraints allow. The optimal subtree is found by a dynamic
program from the leaves to the root; `secateur.kernels.ensemble.layer_descent` cuts at a depth instead. The arrays are
those of `secateur.kernels.ensemble.arrays`.
"""

import numpy as np

from secateur.kernels._jit import kernel
from secateur.kernels.ensemble.arrays import BlockProblem, Prices, Scratch, State, Trees
from secateur.kernels.forest.separators import separator

KEEP, REFIT, SCALE, SCALE_SPARSE = 0, 1, 2, 3
"""Contribution of a kept leaf: the original value, a value refitted with a ridge, or the original value times a weight
of the tree (with a penalty on the squared weight, or on the presence of the tree)."""


@kernel
def choose_subtree(
    tree: int, trees: Trees, prices: Prices, state: State, problem: BlockProblem, scratch: Scratch
) -> tuple[float, float]:
    """Find the optimal subtree of a tree; return the gain and its entry penalty.

    The entry penalty is known for a tree that stays dropped; otherwise it is infinite. `gradient` and `hessian` of the
    buffers hold the sums over the rows in each leaf. Writes `status` and `contribution` of the buffers if the gain
    exceeds the tolerance. O(nodes).
    """
    as_split, status, best = prices.as_split, state.status, scratch.best
    penalty, frozen, start = problem.penalty, problem.frozen, trees.tree_start[tree]
    n = trees.tree_start[tree + 1] - start
    # The steps are called from here: a call passes all arrays, and one more per tree would slow sweeps by a tenth.
    old = sum_nodes(tree, trees, state, scratch)
    if status[start] != 0:
        old += penalty_of(tree, trees, prices, problem, status, state.contribution, start)
    if trees.sign.shape[0] > 0:
        set_bounds(tree, trees, state, problem, scratch)
    fit_leaves(tree, trees, prices, problem, scratch)
    for v in range(n):
        scratch.status[v] = 2
    # Reverse preorder. Invariant: for every node w > v, `best[w]` is the cost of its optimal subtree, relative to a
    # contribution of 0.
    for position in range((n + 1) // 2, n):
        v = trees.order[start + position]
        u = start + v
        split_cost = best[v + 1] + best[trees.right[u] - start] + penalty * as_split[u]
        stays = status[u] == 1 if frozen else split_cost < best[v]
        best[v] = split_cost if stays else best[v]
        scratch.status[v] = 1 if stays else 2
    new = best[0]
    if new >= 0.0 and not frozen:
        new, scratch.status[0] = 0.0, 0
    gain, entry = old - new, np.inf
    if gain > problem.tolerance:
        spread_values(tree, trees, 1.0, scratch)
    elif status[start] == 0 and problem.screening > 0.0:
        entry = entry_penalty(tree, trees, prices, problem, scratch)
    return gain, entry


@kernel
def entry_penalty(tree: int, trees: Trees, prices: Prices, problem: BlockProblem, scratch: Scratch) -> float:
    """Return the largest penalty at which a dropped tree enters, or `screening` times the penalty if that is larger.

    This is the largest decrease of the loss per price over all subtrees. Dinkelbach's algorithm starts from the lower
    end and approaches it from below; three iterations suffice for an estimate. `sums`, `hessian_sum` and `fitted` of
    the buffers are those of the last update; `best` and `price` are overwritten.

    References
    ----------
    W. Dinkelbach (1967), On nonlinear fractional programming, Management Science 13.
    """
    right, original, fitted = trees.right, trees.original, scratch.fitted
    best, price = scratch.best, scratch.price
    refit, last = problem.values == REFIT, scratch.hessian_sum.shape[1] - 1
    start = trees.tree_start[tree]
    penalty = problem.screening * problem.penalty
    for _ in range(3):
        # Reverse preorder. Invariant: for every node w > v, `best[w]` and `price[w]` are those of its optimal subtree.
        for v in range(trees.tree_start[tree + 1] - start - 1, -1, -1):
            u, cost = start + v, 0.0
            for k in range(fitted.shape[1]):
                curvature, slope = scratch.hessian_sum[v, min(k, last)], scratch.sums[v, k]
                if refit:
                    prior = problem.centre * original[u, k]
                    curvature += problem.ridge
                    slope += problem.ridge * prior
                    cost += problem.ridge * prior * prior
                cost += fitted[v, k] * (curvature * fitted[v, k] - 2.0 * slope)
            best[v], price[v] = cost + penalty * prices.as_leaf[u], prices.as_leaf[u]
            if right[u] != -1:
                b = right[u] - start
                split_cost = best[v + 1] + best[b] + penalty * prices.as_split[u]
                if split_cost < best[v]:
                    best[v], price[v] = split_cost, price[v + 1] + price[b] + prices.as_split[u]
        if best[0] >= 0.0 or price[0] <= 0.0:
            break
        penalty -= best[0] / price[0]
    return penalty


@kernel
def sum_nodes(tree: int, trees: Trees, state: State, scratch: Scratch) -> float:
    """Write S and H of the module docstring for every node; return the cost of the current contributions."""
    contribution, sums, hessian_sum = state.contribution, scratch.sums, scratch.hessian_sum
    start, width, n_hessians = trees.tree_start[tree], contribution.shape[1], hessian_sum.shape[1]
    n, curved = trees.tree_start[tree + 1] - start, state.curvature.shape[0] > 0
    cost = 0.0
    for position in range((n + 1) // 2):
        v = trees.order[start + position]
        u = start + v
        for k in range(n_hessians):
            hessian_sum[v, k] = scratch.hessian[v, k] if curved else trees.node_weight[u]
        for k in range(width):
            h = hessian_sum[v, min(k, n_hessians - 1)]
            sums[v, k] = scratch.gradient[v, k] + h * contribution[u, k]
            cost += contribution[u, k] * (h * contribution[u, k] - 2.0 * sums[v, k])
    # Reverse preorder: both children are summed before their parent.
    for position in range((n + 1) // 2, n):
        v = trees.order[start + position]
        b = trees.right[start + v] - start
        for k in range(n_hessians):
            hessian_sum[v, k] = hessian_sum[v + 1, k] + hessian_sum[b, k]
        for k in range(width):
            sums[v, k] = sums[v + 1, k] + sums[b, k]
    return cost


@kernel
def set_bounds(tree: int, trees: Trees, state: State, problem: BlockProblem, scratch: Scratch) -> None:
    """Write bounds for the value of every node within which all leaves respect the monotonic constraints.

    At a constrained split a separator divides the interval of its node: the values on one side are at most the
    separator, those on the other at least. It lies halfway between the free values of both children, moved to where
    the current subtree stays feasible.
    """
    right, status, low, high = trees.right, state.status, scratch.low, scratch.high
    start, width, last = trees.tree_start[tree], low.shape[1], scratch.hessian_sum.shape[1] - 1
    n = trees.tree_start[tree + 1] - start
    # First `low` and `high` are the smallest and the largest current contribution below each node.
    for v in range(n - 1, -1, -1):
        for k in range(width):
            if right[start + v] == -1:
                low[v, k] = high[v, k] = state.contribution[start + v, k]
            else:
                b = right[start + v] - start
                low[v, k], high[v, k] = min(low[v + 1, k], low[b, k]), max(high[v + 1, k], high[b, k])
    for k in range(width):
        low[0, k], high[0, k] = -np.inf, np.inf
    # Preorder. Invariant: the bounds of v are final, those of its children still the range of their contributions.
    for v in range(n):
        u = start + v
        if right[u] == -1:
            continue
        for k in range(width):
            below, above = v + 1, right[u] - start
            if trees.sign[u, k] == 0:
                low[below, k] = low[above, k] = low[v, k]
                high[below, k] = high[above, k] = high[v, k]
                continue
            if trees.sign[u, k] < 0:
                below, above = above, below
            middle = 0.0
            for w in (below, above):
                denominator = scratch.hessian_sum[w, min(k, last)] + problem.ridge
                prior = problem.centre * trees.original[start + w, k]
                if denominator > 0.0:
                    middle += 0.5 * (scratch.sums[w, k] + problem.ridge * prior) / denominator
            middle = separator(middle, status[u] == 1, high[below, k], low[above, k], low[v, k], high[v, k])
            low[below, k], high[below, k] = low[v, k], middle
            low[above, k], high[above, k] = middle, high[v, k]


@kernel
def fit_leaves(tree: int, trees: Trees, prices: Prices, problem: BlockProblem, scratch: Scratch) -> None:
    """Write the value of every node as a leaf into `fitted`, and its cost including the price into `best`."""
    original, sums, hessian_sum, fitted = trees.original, scratch.sums, scratch.hessian_sum, scratch.fitted
    ridge, centre, refit, bounded = problem.ridge, problem.centre, problem.values == REFIT, scratch.low.shape[0] > 0
    start, width, last = trees.tree_start[tree], fitted.shape[1], hessian_sum.shape[1] - 1
    for v in range(trees.tree_start[tree + 1] - start):
        u, cost = start + v, 0.0
        for k in range(width):
            h, own = hessian_sum[v, min(k, last)], original[u, k]
            if not refit:
                fitted[v, k] = own
                cost += own * (h * own - 2.0 * sums[v, k])
                continue
            denominator, prior = h + ridge, centre * own
            numerator = sums[v, k] + ridge * prior
            value = numerator / denominator if denominator > 0.0 else 0.0
            cost += ridge * prior * prior - value * numerator
            if bounded:
                clipped = min(max(value, scratch.low[v, k]), scratch.high[v, k])
                cost += denominator * (clipped - value) * (clipped - value)
                value = clipped
            fitted[v, k] = value
        scratch.best[v] = cost + problem.penalty * prices.as_leaf[u]


@kernel
def penalty_of(
    tree: int,
    trees: Trees,
    prices: Prices,
    problem: BlockProblem,
    status: np.ndarray,
    contribution: np.ndarray,
    first: int,
) -> float:
    """Return the price and the ridge term of a tree whose root is entry `first` of `status` and `contribution`."""
    start, refit, total = trees.tree_start[tree], problem.values == REFIT, 0.0
    for v in range(trees.tree_start[tree + 1] - start):
        u, w = start + v, first + v
        if status[w] == 1:
            total += problem.penalty * prices.as_split[u]
        elif status[w] == 2:
            total += problem.penalty * prices.as_leaf[u]
            if refit:
                for k in range(contribution.shape[1]):
                    total += problem.ridge * (contribution[w, k] - problem.centre * trees.original[u, k]) ** 2
    return total


@kernel
def spread_values(tree: int, trees: Trees, new_factor: float, scratch: Scratch) -> None:
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
def penalty_decrease(
    tree: int, trees: Trees, prices: Prices, state: State, problem: BlockProblem, scratch: Scratch
) -> float:
    """Return the decrease in penalty plus ridge term from the current tree to that in the buffers."""
    before = penalty_of(tree, trees, prices, problem, state.status, state.contribution, trees.tree_start[tree])
    return before - penalty_of(tree, trees, prices, problem, scratch.status, scratch.contribution, 0)
