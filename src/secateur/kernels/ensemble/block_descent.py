"""Sweep over the trees of an ensemble by block coordinate descent: one tree is optimised given all others.

An update uses the rows only through sums over the leaves of the tree. For logistic and softmax losses it minimises a
quadratic approximation of the loss, and is accepted only if the true objective decreases.

Invariant between updates: `neg_gradient` and `probability` of the state are those of the current intercept and
contributions.

References
----------
Liu and Mazumder (2023), ForestPrune: compact depth-pruned tree ensembles, AISTATS. Section 3.1.
"""

import numpy as np

from secateur.kernels._jit import kernel
from secateur.kernels.ensemble.arrays import BlockProblem, Prices, RoutedRows, Scratch, State, Trees, empty_scratch
from secateur.kernels.ensemble.block_update import REFIT, choose_subtree, price_gain


@kernel
def sweep_blocks(
    rows: RoutedRows,
    trees: Trees,
    prices: Prices,
    state: State,
    problem: BlockProblem,
    may_change: np.ndarray,
    first: int,
) -> tuple[bool, float]:
    """Update every tree with `may_change` once, then the intercept; return whether nothing changed, and the gain.

    Updates the state in place. The trees are visited cyclically, beginning with `first`.
    """
    n_trees = len(trees.tree_output)
    scratch = empty_scratch(trees)
    changed, total = 0, 0.0
    # Loop invariant: the objective has decreased by `total` since the start of the sweep.
    for position in range(n_trees):
        tree = (first + position) % n_trees
        if may_change[tree]:
            gain = update_tree(tree, rows, trees, prices, state, problem, scratch)
            if gain > 0.0:
                total += gain
                changed += 1
    moved = move_intercept(rows.weight, state)
    return changed == 0 and moved <= problem.tolerance, total + moved


@kernel
def move_intercept(weight: np.ndarray, state: State) -> float:
    """Update the intercept of every output; return the gain.

    The update is exact for squared error. For log loss it is a Newton step, or if that does not decrease the loss, a
    step with the upper bound ¼ on p(1 − p).
    """
    neg_gradient, probability, intercept = state.neg_gradient, state.probability, state.intercept
    gain = 0.0
    total = weight.sum()
    newton = probability.shape[0] > 0
    for k in range(neg_gradient.shape[1]):
        gradient, hessian = 0.0, 0.0
        for i in range(weight.shape[0]):
            gradient += neg_gradient[i, k]
            if newton:
                hessian += weight[i] * probability[i, k] * (1.0 - probability[i, k])
        if not newton:
            step = gradient / total
            for i in range(weight.shape[0]):
                neg_gradient[i, k] -= weight[i] * step
            intercept[k] += step
            gain += total * step * step
            continue
        for curvature in (hessian, 0.25 * total):
            step = gradient / curvature if curvature > 0.0 else 0.0
            decrease = 0.0
            for i in range(weight.shape[0]):
                decrease += _loss_decrease(weight[i], neg_gradient[i, k], probability[i, k], step)
            if decrease > 0.0:
                for i in range(weight.shape[0]):
                    _move_logit(i, k, weight[i], step, neg_gradient, probability)
                intercept[k] += step
                gain += decrease
                break
    return gain


@kernel
def _loss_decrease(weight: float, neg_gradient: float, probability: float, step: float) -> float:
    """Return the decrease in a row's log loss when a logit of predicted `probability` moves by `step`."""
    return (neg_gradient + weight * probability) * step - weight * np.log1p(probability * np.expm1(step))


@kernel
def _move_logit(i: int, k: int, weight: float, step: float, neg_gradient: np.ndarray, probability: np.ndarray) -> None:
    """Move logit k of row i by `step`; update the probabilities of all classes and the gradient."""
    normaliser = 1.0 / (1.0 + probability[i, k] * np.expm1(step))
    for other in range(probability.shape[1]):
        old = probability[i, other]
        new = old * normaliser if other != k else old * np.exp(step) * normaliser
        neg_gradient[i, other] -= weight * (new - old)
        probability[i, other] = new


@kernel
def update_tree(
    tree: int,
    rows: RoutedRows,
    trees: Trees,
    prices: Prices,
    state: State,
    problem: BlockProblem,
    scratch: Scratch,
) -> float:
    """Replace one tree by its optimal subtree given all others; return the gain, 0 if the tree does not change.

    Solves the block problem, ForestPrune's Problem (4) for layers of original values. For log loss the first attempt
    uses the Hessian of the rows, the second its upper bound.
    """
    start = trees.tree_start[tree]
    if problem.frozen and state.status[start] == 0:
        return 0.0
    newton = state.probability.shape[0] > 0
    sum_rows(tree, rows, trees, state, scratch)
    for attempt in range(2 if newton else 1):
        gain, new_factor = choose_subtree(tree, trees, prices, state, problem, attempt == 1, scratch)
        if newton:
            gain = price_gain(tree, trees, prices, state, problem, scratch)
            gain = add_rows_gain(gain, tree, rows, trees, state, scratch.contribution)
        if gain > problem.tolerance:
            move_rows(tree, rows, trees, state, scratch.contribution)
            for v in range(trees.tree_start[tree + 1] - start):
                state.status[start + v] = scratch.status[v]
                for k in range(scratch.contribution.shape[1]):
                    state.contribution[start + v, k] = scratch.contribution[v, k]
            state.factor[tree] = new_factor if scratch.status[0] != 0 else 0.0
            if problem.layered and not newton and problem.values <= REFIT:
                # The cost of the layer already includes the gain of this step.
                move_intercept(rows.weight, state)
            return gain
    return 0.0


@kernel
def sum_rows(tree: int, rows: RoutedRows, trees: Trees, state: State, scratch: Scratch) -> None:
    """Sum the negative gradient and the Hessian of the rows in each leaf of a tree.

    Writes into `gradient` and `hessian` of the buffers. For squared error the Hessian is left 0, as it is the row
    weight of the leaf.
    """
    leaf, weight = rows.leaves[tree], rows.weight
    neg_gradient, probability = state.neg_gradient, state.probability
    gradient, hessian = scratch.gradient, scratch.hessian
    column, width = max(trees.tree_output[tree], 0), gradient.shape[1]
    for v in range(trees.tree_start[tree + 1] - trees.tree_start[tree]):
        hessian[v] = 0.0
        for k in range(width):
            gradient[v, k] = 0.0
    if probability.shape[0] > 0:
        for i in range(leaf.shape[0]):
            v = leaf[i]
            gradient[v, 0] += neg_gradient[i, column]
            hessian[v] += weight[i] * probability[i, column] * (1.0 - probability[i, column])
    elif width == 1:
        for i in range(leaf.shape[0]):
            gradient[leaf[i], 0] += neg_gradient[i, column]
    else:
        for i in range(leaf.shape[0]):
            v = leaf[i]
            for k in range(width):
                gradient[v, k] += neg_gradient[i, k]


@kernel
def add_rows_gain(
    gain: float, tree: int, rows: RoutedRows, trees: Trees, state: State, new_contribution: np.ndarray
) -> float:
    """Return `gain` plus the decrease in log loss when a tree's contribution changes to `new_contribution`."""
    leaf, weight, contribution = rows.leaves[tree], rows.weight, state.contribution
    start, column = trees.tree_start[tree], max(trees.tree_output[tree], 0)
    for i in range(leaf.shape[0]):
        step = new_contribution[leaf[i], 0] - contribution[start + leaf[i], 0]
        if step != 0.0:
            gain += _loss_decrease(weight[i], state.neg_gradient[i, column], state.probability[i, column], step)
    return gain


@kernel
def move_rows(tree: int, rows: RoutedRows, trees: Trees, state: State, new_contribution: np.ndarray) -> None:
    """Update gradient and probabilities of the rows for a tree whose contribution changes to `new_contribution`."""
    leaf, weight = rows.leaves[tree], rows.weight
    neg_gradient, probability, contribution = state.neg_gradient, state.probability, state.contribution
    start, column, width = trees.tree_start[tree], max(trees.tree_output[tree], 0), contribution.shape[1]
    newton = probability.shape[0] > 0
    for i in range(leaf.shape[0]):
        v = leaf[i]
        if newton:
            step = new_contribution[v, 0] - contribution[start + v, 0]
            if step != 0.0:
                _move_logit(i, column, weight[i], step, neg_gradient, probability)
        elif width == 1:
            neg_gradient[i, column] -= weight[i] * (new_contribution[v, 0] - contribution[start + v, 0])
        else:
            for k in range(width):
                neg_gradient[i, k] -= weight[i] * (new_contribution[v, k] - contribution[start + v, k])
