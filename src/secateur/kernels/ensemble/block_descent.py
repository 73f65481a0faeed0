"""Sweep over the trees of an ensemble by block coordinate descent: one tree is optimised given all others.

An update uses the rows only through sums over the leaves of the tree. The loss of a row is a parabola with frozen
curvature, so that squared error is exact; the caller renews the parabolas of other losses between sweeps and checks the
true objective.

Invariant between updates: `neg_gradient` and `score` of the state are those of the current intercept and contributions.

References
----------
Liu and Mazumder (2023), ForestPrune: compact depth-pruned tree ensembles, AISTATS. Section 3.1.
"""

import numpy as np

from secateur.kernels._jit import kernel
from secateur.kernels.ensemble.arrays import BlockProblem, Prices, RoutedRows, Scratch, State, Trees, empty_scratch
from secateur.kernels.ensemble.block_update import choose_subtree, penalty_decrease
from secateur.kernels.ensemble.leaf_sums import sum_by_leaf, sum_pairs_by_leaf


@kernel
def sweep_blocks(
    rows: RoutedRows,
    trees: Trees,
    prices: Prices,
    state: State,
    problem: BlockProblem,
    may_change: np.ndarray,
    first: int,
    leaf_sums: np.ndarray,
) -> tuple[bool, float, float]:
    """Update every tree with `may_change` once, then the intercept.

    If `leaf_sums` has rows, nothing is updated, and `update_tree` writes the sums over the rows in each leaf.

    Updates the state in place. The trees are visited cyclically, beginning with `first`. Returns whether nothing
    changed, the decrease of the objective, and the part of it that is penalty and ridge.
    """
    n_trees = len(trees.tree_output)
    scratch = empty_scratch(trees, state)
    changed, total, saved = 0, 0.0, 0.0
    # Loop invariant: the objective has decreased by `total` since the start of the sweep.
    for position in range(n_trees):
        tree = (first + position) % n_trees
        if may_change[tree]:
            gain, less = update_tree(tree, rows, trees, prices, state, problem, scratch, leaf_sums)
            if gain > 0.0:
                total += gain
                saved += less
                changed += 1
    moved = move_intercept(rows.weight, state) if leaf_sums.shape[0] == 0 else 0.0
    return changed == 0 and moved <= problem.tolerance, total + moved, saved


@kernel
def move_intercept(weight: np.ndarray, state: State) -> float:
    """Move the intercept of every output to the minimum of the parabolas; return the gain."""
    neg_gradient, intercept = state.neg_gradient, state.intercept
    gain = 0.0
    for k in range(neg_gradient.shape[0]):
        curvature = state.curvature[k] if state.curvature.shape[0] > 0 else weight
        gradient, total = 0.0, 0.0
        for i in range(weight.shape[0]):
            gradient += neg_gradient[k, i]
            total += curvature[i]
        step = gradient / total if total > 0.0 else 0.0
        for i in range(weight.shape[0]):
            neg_gradient[k, i] -= curvature[i] * step
        for i in range(state.score.shape[1]):
            state.score[k, i] += step
        intercept[k] += step
        gain += total * step * step
    return gain


@kernel
def update_tree(
    tree: int,
    rows: RoutedRows,
    trees: Trees,
    prices: Prices,
    state: State,
    problem: BlockProblem,
    scratch: Scratch,
    leaf_sums: np.ndarray,
) -> tuple[float, float]:
    """Replace one tree by its optimal subtree given all others.

    Returns the gain, 0 if the tree does not change, and the part of it that is penalty and ridge (0 for squared error,
    where it is not needed). If `leaf_sums` has rows, (n_nodes, n), the tree stays. The sums of the negative gradient
    are then written to the first columns, and those of the curvature to the last, except for squared error.
    """
    start = trees.tree_start[tree]
    if problem.frozen and state.status[start] == 0:
        return 0.0, 0.0
    sum_rows(tree, rows, trees, state, scratch)
    if leaf_sums.shape[0] > 0:
        for v in range(trees.tree_start[tree + 1] - start):
            for k in range(scratch.gradient.shape[1]):
                leaf_sums[start + v, k] = scratch.gradient[v, k]
                if state.curvature.shape[0] > 0:
                    leaf_sums[start + v, scratch.gradient.shape[1] + k] = scratch.hessian[v, k]
        return 0.0, 0.0
    gain, entry = choose_subtree(tree, trees, prices, state, problem, scratch)
    if not gain > problem.tolerance:
        state.entry[tree] = entry if state.status[start] == 0 else np.inf
        return 0.0, 0.0
    return gain, place_subtree(tree, rows, trees, prices, state, problem, scratch, 1.0)


@kernel
def place_subtree(
    tree: int,
    rows: RoutedRows,
    trees: Trees,
    prices: Prices,
    state: State,
    problem: BlockProblem,
    scratch: Scratch,
    factor: float,
) -> float:
    """Put the subtree in the buffers, with weight `factor`, in place of a tree; return the decrease in penalty."""
    start, saved = trees.tree_start[tree], 0.0
    if state.curvature.shape[0] > 0:
        saved = penalty_decrease(tree, trees, prices, state, problem, scratch)
    move_rows(tree, rows, trees, state, scratch.contribution)
    for v in range(trees.tree_start[tree + 1] - start):
        state.status[start + v] = scratch.status[v]
        for k in range(scratch.contribution.shape[1]):
            state.contribution[start + v, k] = scratch.contribution[v, k]
    state.factor[tree] = factor if scratch.status[0] != 0 else 0.0
    state.entry[tree] = np.inf
    return saved


@kernel
def sum_rows(tree: int, rows: RoutedRows, trees: Trees, state: State, scratch: Scratch) -> None:
    """Sum the negative gradient and the curvature of the rows in each leaf of a tree.

    Writes into `gradient` and `hessian` of the buffers. For squared error the latter is left 0, as it is the row weight
    of the leaf.
    """
    leaf, gradient, hessian = rows.leaves[tree], scratch.gradient, scratch.hessian
    column, n = max(trees.tree_output[tree], 0), trees.tree_start[tree + 1] - trees.tree_start[tree]
    width = gradient.shape[1]
    if state.curvature.shape[0] > 0:
        for k in range(width):
            curvature = state.curvature[column + k]
            sum_pairs_by_leaf(leaf, state.neg_gradient[column + k], curvature, n, scratch.lanes, gradient, hessian, k)
    elif width == 1:
        sum_by_leaf(leaf, state.neg_gradient[column], n, scratch.lanes, gradient, 0)
    else:
        for v in range(n):
            for k in range(width):
                gradient[v, k] = 0.0
        for i in range(leaf.shape[0]):
            v = leaf[i]
            for k in range(width):
                gradient[v, k] += state.neg_gradient[k, i]


@kernel
def move_rows(tree: int, rows: RoutedRows, trees: Trees, state: State, new_contribution: np.ndarray) -> None:
    """Update gradient and score of the rows for a tree whose contribution changes to `new_contribution`."""
    leaf, contribution, start = rows.leaves[tree], state.contribution, trees.tree_start[tree]
    curved, width = state.curvature.shape[0] > 0, contribution.shape[1]
    step = np.empty((trees.tree_start[tree + 1] - start, width))
    for v in range(step.shape[0]):
        for k in range(width):
            step[v, k] = new_contribution[v, k] - contribution[start + v, k]
    if width > 1 and not curved:
        for i in range(leaf.shape[0]):
            v = leaf[i]
            for k in range(width):
                state.neg_gradient[k, i] -= rows.weight[i] * step[v, k]
        return
    for k in range(width):
        column = max(trees.tree_output[tree], 0) + k
        neg_gradient = state.neg_gradient[column]
        curvature = state.curvature[column] if curved else rows.weight
        for i in range(leaf.shape[0]):
            neg_gradient[i] -= curvature[i] * step[leaf[i], k]
        if curved:
            score = state.score[column]
            for i in range(leaf.shape[0]):
                score[i] += step[leaf[i], k]
