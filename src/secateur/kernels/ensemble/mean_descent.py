"""Update the trees of a mean one at a time: find the subtree and bounded leaf values that are optimal given the rest.

The model is F = (1/m) Σ value[leaf] over the m trees in use, with every leaf value in a convex set C: a probability
simplex for each target, or an interval for each output. A mean of points of C lies in C, so predictions are valid
for every row. `update_mean_tree` minimises exactly, over all subtrees of one tree and all leaf values in C,

    Σ_i w_i |y_i − F_i|² + penalty · price + ridge / m² · Σ_leaves |value − center|²

The parabola of a leaf has the same curvature in all directions, so its minimum over C is the Euclidean projection of
its free minimum.
"""

import numpy as np

from secateur.kernels._jit import kernel
from secateur.kernels.ensemble.mean_arrays import (
    ABSENT,
    LEAF,
    SPLIT,
    MeanArrays,
    MeanProblem,
    MeanRows,
    MeanScratch,
    MeanTrees,
    Range,
)
from secateur.kernels.ensemble.projection import project
from secateur.kernels.forest.separators import separator


@kernel
def sweep_means(
    rows: MeanRows,
    trees: MeanTrees,
    bounds: Range,
    state: MeanArrays,
    scratch: MeanScratch,
    chosen: np.ndarray,
    first: int,
    problem: MeanProblem,
) -> tuple[int, float]:
    """Update the chosen trees once, beginning with `first`; return how many changed, and the decrease of the objective.

    With `frozen` only the values of the trees in use change.
    """
    n_trees, n_changed, total = chosen.shape[0], 0, 0.0
    for k in range(n_trees):
        tree = (first + k) % n_trees
        if chosen[tree]:
            gain = update_mean_tree(tree, rows, trees, bounds, state, scratch, problem)
            if gain > 0.0:
                n_changed += 1
                total += gain
    return n_changed, total


@kernel
def update_mean_tree(
    tree: int,
    rows: MeanRows,
    trees: MeanTrees,
    bounds: Range,
    state: MeanArrays,
    scratch: MeanScratch,
    problem: MeanProblem,
) -> float:
    """Replace one tree by its best subtree, or remove it; return the decrease of the objective, 0 if unchanged."""
    start, n = trees.start[tree], trees.start[tree + 1] - trees.start[tree]
    m, present, ridge = state.size[0], state.status[start] != ABSENT, problem.ridge
    if problem.frozen and not present:
        return 0.0
    others = 0.0
    for other in range(state.deviation.shape[0]):
        if other != tree:
            others += state.deviation[other]
    before = sum_without(tree, rows, trees, state, scratch) + problem.penalty * _price(start, n, trees, state)
    if m > 0:
        before += ridge * (others + state.deviation[tree]) / (m * m)
    without_y, without_square = scratch.with_target[0], scratch.square[0]

    # With the tree: F = scale · (others) + share · (tree); the first tree replaces the constant prediction.
    new_m = m if present else m + 1
    scale = 1.0 if present else m / new_m
    share = 1.0 / new_m
    if trees.sign.shape[0] > 0:
        value_ranges(tree, trees, state, scratch)
    fit_subtree(tree, trees, bounds, state.status, scratch, scale, share, problem)
    after = scale * scale * without_square - 2.0 * scale * without_y
    after += scratch.cost[0] + ridge * share * share * others
    remove = False
    if present and not problem.frozen:
        absent = loss_without(m, without_y, without_square, rows, bounds)
        if m > 1:
            absent += ridge * others / ((m - 1.0) * (m - 1.0))
        if absent < after:
            after, remove = absent, True
    state.entry[tree] = np.inf
    if not before - after > problem.tolerance:
        if not present and problem.screening > 0.0:
            state.entry[tree] = entry_penalty_of_mean(
                tree, trees, bounds, state.status, scratch, scale, share, problem, before - after
            )
        return 0.0
    if remove:
        remove_tree(tree, rows, trees, bounds, state)
    else:
        place_tree(tree, rows, trees, bounds, state, scratch, scale, share)
    return before - after


@kernel
def entry_penalty_of_mean(
    tree: int,
    trees: MeanTrees,
    bounds: Range,
    status: np.ndarray,
    scratch: MeanScratch,
    scale: float,
    share: float,
    problem: MeanProblem,
    gain: float,
) -> float:
    """Return an upper bound on the penalty at which a dropped tree enters, at least `screening` times the penalty.

    The gain of entering is a convex function of the penalty, so that the chord between two penalties lies above it.
    `gain` is that at the penalty of `problem`, whose cost is in `scratch`.
    """
    lower, cost = problem.screening * problem.penalty, scratch.cost[0]
    at_lower = MeanProblem(lower, problem.ridge, problem.keep_values, False, 0.0, 0.0)
    fit_subtree(tree, trees, bounds, status, scratch, scale, share, at_lower)
    gain_at_lower = gain + cost - scratch.cost[0]
    if gain_at_lower <= 0.0:
        return lower
    return lower + (problem.penalty - lower) * min(gain_at_lower / max(gain_at_lower - gain, 1e-300), 1.0)


@kernel
def sum_without(tree: int, rows: MeanRows, trees: MeanTrees, state: MeanArrays, scratch: MeanScratch) -> float:
    """Write the sums over the rows at each node to `scratch`; return Σ w (|F|² − 2 F·y) over all rows.

    The prediction without the tree is f = F − value / m if the tree is in use.
    """
    start, n = trees.start[tree], trees.start[tree + 1] - trees.start[tree]
    n_outputs, leaf, sums = rows.target.shape[1], rows.leaves[tree], scratch.sums
    for a in range(n):
        scratch.with_target[a], scratch.square[a] = 0.0, 0.0
        for k in range(n_outputs):
            sums[a, k] = 0.0
    for i in range(leaf.shape[0]):
        a, w = leaf[i], rows.weight[i]
        scratch.with_target[a] += w * state.score_target[i]
        scratch.square[a] += w * state.score_square[i]
        for k in range(n_outputs):
            sums[a, k] += w * state.score[i, k]
    part = 1.0 / state.size[0] if state.status[start] != ABSENT else 0.0
    loss = 0.0
    for position in range((n + 1) // 2):
        a = trees.order[start + position]
        u = start + a
        loss += scratch.square[a] - 2.0 * scratch.with_target[a]
        for k in range(n_outputs):
            v = part * state.value[u, k]
            scratch.with_target[a] -= v * trees.target[u, k]
            scratch.square[a] -= v * (2.0 * sums[a, k] - trees.weight[u] * v)
            sums[a, k] -= trees.weight[u] * v
    # Reverse preorder: both children are summed before their parent.
    for position in range((n + 1) // 2, n):
        a = trees.order[start + position]
        b = trees.right[start + a] - start
        scratch.with_target[a] = scratch.with_target[a + 1] + scratch.with_target[b]
        scratch.square[a] = scratch.square[a + 1] + scratch.square[b]
        for k in range(n_outputs):
            sums[a, k] = sums[a + 1, k] + sums[b, k]
    return loss


@kernel
def loss_without(m: int, with_y: float, square: float, rows: MeanRows, bounds: Range) -> float:
    """Return Σ w (|F|² − 2 F·y) after a tree was removed from m trees; without trees F is the center."""
    if m > 1:
        scale = m / (m - 1.0)
        return scale * scale * square - 2.0 * scale * with_y
    total = 0.0
    for i in range(rows.weight.shape[0]):
        for k in range(bounds.center.shape[0]):
            total += rows.weight[i] * bounds.center[k] * (bounds.center[k] - 2.0 * rows.target[i, k])
    return total


@kernel
def fit_subtree(
    tree: int,
    trees: MeanTrees,
    bounds: Range,
    status: np.ndarray,
    scratch: MeanScratch,
    scale: float,
    share: float,
    problem: MeanProblem,
) -> None:
    """Find the best subtree by dynamic programming: write the cost of each node's best subtree, choice and values.

    Fitted values are multiplied by `share`. With `frozen` the splits in use stay.

    Nodes are first visited from the root. As no subtree has a loss below 0, a subtree below a node gains at most the
    loss of the node as a leaf. Where that is less than the price of a split, the nodes below are not visited.
    """
    start, n = trees.start[tree], trees.start[tree + 1] - trees.start[tree]
    n_outputs, choice = bounds.center.shape[0], scratch.choice
    z, other, slope = np.empty(n_outputs), np.empty(n_outputs), np.empty(n_outputs)
    penalty, ridge, keep_values, frozen = problem.penalty, problem.ridge, problem.keep_values, problem.frozen
    constrained = trees.sign.shape[0] > 0 and not keep_values
    center = 0.0
    for k in range(n_outputs):
        center += ridge * share * share * bounds.center[k] * bounds.center[k]
    for a in range(n):
        choice[a] = ABSENT
    choice[0] = LEAF
    for a in range(n):
        if choice[a] == ABSENT:
            continue
        u = start + a
        # This is `free_value`, written out: a call passes all arrays and takes longer than the node does.
        curvature = trees.weight[u] + ridge
        inverse = 1.0 / curvature if curvature > 0.0 else 0.0
        for k in range(n_outputs):
            slope[k] = trees.target[u, k] - scale * scratch.sums[a, k] + ridge * share * bounds.center[k]
            z[k] = share * trees.original[u, k] if keep_values else slope[k] * inverse
        if not keep_values:
            project(z, share, bounds)
        if constrained:
            for k in range(n_outputs):
                z[k] = min(max(z[k], share * scratch.low[a, k]), share * scratch.high[a, k])
        cost = center
        for k in range(n_outputs):
            scratch.fit[a, k] = z[k]
            cost += z[k] * (curvature * z[k] - 2.0 * slope[k])
        scratch.cost[a] = cost + penalty * trees.as_leaf[u]
        if trees.right[u] != -1:
            right = trees.right[u]
            rest = scale * (scale * scratch.square[a] - 2.0 * scratch.with_target[a]) + trees.target_square[u]
            price = trees.as_split[u] + trees.as_leaf[u + 1] + trees.as_leaf[right] - trees.as_leaf[u]
            visit = status[u] == SPLIT if frozen else cost + rest > penalty * price
            if visit:
                choice[a], choice[a + 1], choice[right - start] = SPLIT, LEAF, LEAF
                if constrained:
                    free_value(u + 1, a + 1, trees, bounds, scratch, scale, share, ridge, slope, z)
                    free_value(right, right - start, trees, bounds, scratch, scale, share, ridge, slope, other)
                    bound_children(u, a, right - start, trees, status, scratch, share, z, other)
    # Reverse preorder: both children are solved before their parent. Visited splits are marked as such.
    for a in range(n - 1, -1, -1):
        if choice[a] == SPLIT:
            u = start + a
            below = scratch.cost[a + 1] + scratch.cost[trees.right[u] - start] + penalty * trees.as_split[u]
            if frozen or below < scratch.cost[a]:
                scratch.cost[a] = below
            else:
                choice[a] = LEAF


@kernel
def free_value(
    u: int,
    a: int,
    trees: MeanTrees,
    bounds: Range,
    scratch: MeanScratch,
    scale: float,
    share: float,
    ridge: float,
    slope: np.ndarray,
    z: np.ndarray,
) -> float:
    """Write half the negative gradient of a node at 0 to `slope` and its best value in C, times `share`, to `z`.

    Returns the curvature. Monotonic constraints are not considered.
    """
    curvature = trees.weight[u] + ridge
    inverse = 1.0 / curvature if curvature > 0.0 else 0.0
    for k in range(z.shape[0]):
        slope[k] = trees.target[u, k] - scale * scratch.sums[a, k] + ridge * share * bounds.center[k]
        z[k] = slope[k] * inverse
    project(z, share, bounds)
    return curvature


@kernel
def value_ranges(tree: int, trees: MeanTrees, state: MeanArrays, scratch: MeanScratch) -> None:
    """Write the smallest and the largest current value below each node to `low` and `high`; no bounds for the root."""
    start, low, high = trees.start[tree], scratch.low, scratch.high
    for a in range(trees.start[tree + 1] - start - 1, -1, -1):
        u = start + a
        for k in range(low.shape[1]):
            if trees.right[u] == -1:
                low[a, k] = high[a, k] = state.value[u, k]
            else:
                b = trees.right[u] - start
                low[a, k], high[a, k] = min(low[a + 1, k], low[b, k]), max(high[a + 1, k], high[b, k])
    for k in range(low.shape[1]):
        low[0, k], high[0, k] = -np.inf, np.inf


@kernel
def bound_children(
    u: int,
    a: int,
    b: int,
    trees: MeanTrees,
    status: np.ndarray,
    scratch: MeanScratch,
    share: float,
    z_left: np.ndarray,
    z_right: np.ndarray,
) -> None:
    """Divide the interval of split a between its children, a + 1 and b, by a separator if the split is constrained.

    The separator lies halfway between the free values of the children, moved to where the current subtree stays
    feasible. Before, `low` and `high` of the children are the ranges of their current values.
    """
    low, high = scratch.low, scratch.high
    for k in range(low.shape[1]):
        below, above = a + 1, b
        if trees.sign[u, k] == 0:
            low[below, k] = low[above, k] = low[a, k]
            high[below, k] = high[above, k] = high[a, k]
            continue
        if trees.sign[u, k] < 0:
            below, above = above, below
        middle = 0.5 * (z_left[k] + z_right[k]) / share
        middle = separator(middle, status[u] == SPLIT, high[below, k], low[above, k], low[a, k], high[a, k])
        low[below, k], high[below, k] = low[a, k], middle
        low[above, k], high[above, k] = middle, high[a, k]


@kernel
def place_tree(
    tree: int,
    rows: MeanRows,
    trees: MeanTrees,
    bounds: Range,
    state: MeanArrays,
    scratch: MeanScratch,
    scale: float,
    share: float,
) -> None:
    """Put the subtree of `scratch` in place of a tree, and update the predictions and their products."""
    start, n = trees.start[tree], trees.start[tree + 1] - trees.start[tree]
    n_outputs, choice, fit = bounds.center.shape[0], scratch.choice, scratch.fit
    present = state.status[start] != ABSENT
    part = 1.0 / state.size[0] if present else 0.0
    # Nodes below a leaf of the subtree get its value, so that a row finds the value at its own leaf.
    for a in range(n):
        if trees.right[start + a] != -1 and choice[a] != SPLIT:
            b = trees.right[start + a] - start
            choice[a + 1], choice[b] = ABSENT, ABSENT
            for k in range(n_outputs):
                fit[a + 1, k], fit[b, k] = fit[a, k], fit[a, k]
    leaf = rows.leaves[tree]
    for i in range(leaf.shape[0]):
        a, with_target, square = leaf[i], 0.0, 0.0
        for k in range(n_outputs):
            f = scale * (state.score[i, k] - part * state.value[start + a, k]) + fit[a, k]
            state.score[i, k] = f
            with_target += f * rows.target[i, k]
            square += f * f
        state.score_target[i], state.score_square[i] = with_target, square
    if not present:
        state.size[0] += 1
    deviation = 0.0
    for a in range(n):
        state.status[start + a] = choice[a]
        for k in range(n_outputs):
            state.value[start + a, k] = fit[a, k] / share
            if choice[a] == LEAF:
                deviation += (state.value[start + a, k] - bounds.center[k]) ** 2
    state.deviation[tree] = deviation


@kernel
def remove_tree(tree: int, rows: MeanRows, trees: MeanTrees, bounds: Range, state: MeanArrays) -> None:
    """Remove a tree in use; the mean is taken over the others, or is the center if there are none."""
    start, stop = trees.start[tree], trees.start[tree + 1]
    m, leaf = state.size[0], rows.leaves[tree]
    for i in range(leaf.shape[0]):
        with_target, square = 0.0, 0.0
        for k in range(bounds.center.shape[0]):
            f = bounds.center[k]
            if m > 1:
                f = (m * state.score[i, k] - state.value[start + leaf[i], k]) / (m - 1.0)
            state.score[i, k] = f
            with_target += f * rows.target[i, k]
            square += f * f
        state.score_target[i], state.score_square[i] = with_target, square
    for u in range(start, stop):
        state.status[u] = ABSENT
    state.deviation[tree] = 0.0
    state.size[0] = m - 1


@kernel
def _price(start: int, n: int, trees: MeanTrees, state: MeanArrays) -> float:
    """Return the price of the nodes of a tree that are in use."""
    total = 0.0
    for u in range(start, start + n):
        if state.status[u] == LEAF:
            total += trees.as_leaf[u]
        elif state.status[u] == SPLIT:
            total += trees.as_split[u]
    return total
