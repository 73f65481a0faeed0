"""Sweep over the trees of an ensemble by block coordinate descent: one tree is optimised given all others.

The state of an ensemble is

* `status` of each node: 0 absent, 1 split, 2 leaf;
* `contribution`, (n_nodes, width): the contribution of each kept leaf, repeated at the nodes below it;
* `factor`, (n_trees,): the weight of each tree;
* `intercept`, (n_outputs,);
* `neg_gradient`, (n_rows, n_outputs): weight · (target − prediction);
* `probability`, (n_rows, n_outputs) for logistic and softmax losses, empty for squared error.

An update uses the rows only through sums over the leaves of the tree. For logistic and softmax losses it minimises a
quadratic approximation of the loss, and is accepted only if the true objective decreases.

Invariant between updates: `neg_gradient` and `probability` are those of the current intercept and contributions.

References
----------
Liu and Mazumder (2023), ForestPrune: compact depth-pruned tree ensembles, AISTATS. Section 3.1.
"""

import numpy as np

from secateur.kernels._jit import kernel
from secateur.kernels.ensemble.block_update import REFIT, choose_subtree, price_gain


@kernel
def sweep_blocks(
    leaves: np.ndarray,
    weight: np.ndarray,
    neg_gradient: np.ndarray,
    probability: np.ndarray,
    intercept: np.ndarray,
    tree_start: np.ndarray,
    tree_output: np.ndarray,
    right: np.ndarray,
    depth: np.ndarray,
    node_weight: np.ndarray,
    original: np.ndarray,
    as_leaf: np.ndarray,
    as_split: np.ndarray,
    status: np.ndarray,
    contribution: np.ndarray,
    factor: np.ndarray,
    may_change: np.ndarray,
    penalty: float,
    ridge: float,
    centre: float,
    values: int,
    layered: bool,
    frozen: bool,
    first: int,
    tolerance: float,
) -> tuple:
    """Update every tree with `may_change` once; return the number of trees changed, and the gain.

    Updates `neg_gradient`, `probability`, `status`, `contribution` and `factor` in place, for layers also `intercept`.
    The trees are visited cyclically, beginning with `first`. An update is accepted if it gains more than `tolerance`.
    `frozen` refits values without changing the kept nodes. The ridge shrinks refitted values towards `centre` times the
    original ones.
    """
    n_trees = leaves.shape[0]
    largest = (tree_start[1:] - tree_start[:-1]).max() if n_trees > 0 else 1
    scratch = np.empty((5, largest, contribution.shape[1]))
    node_scratch = np.empty((3, largest))
    new_status = np.empty(largest, np.int8)
    changed, total = 0, 0.0
    # Loop invariant: the objective has decreased by `total` since the start of the sweep.
    for position in range(n_trees):
        tree = (first + position) % n_trees
        if may_change[tree]:
            gain = update_tree(
                tree,
                leaves[tree],
                weight,
                neg_gradient,
                probability,
                intercept,
                max(tree_output[tree], 0),
                tree_start[tree],
                tree_start[tree + 1],
                right,
                depth,
                node_weight,
                original,
                as_leaf,
                as_split,
                status,
                contribution,
                factor,
                penalty,
                ridge,
                centre,
                values,
                layered,
                frozen,
                tolerance,
                scratch,
                node_scratch,
                new_status,
            )
            if gain > 0.0:
                total += gain
                changed += 1
    return changed, total


@kernel
def move_intercept(
    weight: np.ndarray, neg_gradient: np.ndarray, probability: np.ndarray, intercept: np.ndarray
) -> float:
    """Update the intercept of every output; return the gain.

    The update is exact for squared error. For log loss it is a Newton step, or if that does not decrease the loss, a
    step with the upper bound ¼ on p(1 − p).
    """
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
    leaf: np.ndarray,
    weight: np.ndarray,
    neg_gradient: np.ndarray,
    probability: np.ndarray,
    intercept: np.ndarray,
    column: int,
    start: int,
    stop: int,
    right: np.ndarray,
    depth: np.ndarray,
    node_weight: np.ndarray,
    original: np.ndarray,
    as_leaf: np.ndarray,
    as_split: np.ndarray,
    status: np.ndarray,
    contribution: np.ndarray,
    factor: np.ndarray,
    penalty: float,
    ridge: float,
    centre: float,
    values: int,
    layered: bool,
    frozen: bool,
    tolerance: float,
    scratch: np.ndarray,
    node_scratch: np.ndarray,
    new_status: np.ndarray,
) -> float:
    """Replace one tree by its optimal subtree given all others; return the gain, 0 if the tree does not change.

    Solves the block problem, ForestPrune's Problem (4) for layers of original values. For log loss the first attempt
    uses the Hessian of the rows, the second its upper bound.
    """
    if frozen and status[start] == 0:
        return 0.0
    n, width = stop - start, contribution.shape[1]
    new_contribution = scratch[3]
    newton = probability.shape[0] > 0
    sum_rows(leaf, weight, neg_gradient, probability, column, n, width, scratch[0], node_scratch[0])
    for attempt in range(2 if newton else 1):
        gain, new_factor = choose_subtree(
            tree,
            start,
            stop,
            right,
            depth,
            node_weight,
            original,
            as_leaf,
            as_split,
            status,
            contribution,
            factor,
            penalty,
            ridge,
            centre,
            values,
            layered,
            frozen,
            tolerance,
            newton,
            attempt == 1,
            scratch,
            node_scratch,
            new_status,
        )
        if newton:
            gain = price_gain(
                start,
                n,
                original,
                as_leaf,
                as_split,
                status,
                contribution,
                new_status,
                new_contribution,
                penalty,
                ridge,
                centre,
            )
            gain = add_rows_gain(
                gain, leaf, weight, neg_gradient, probability, column, start, contribution, new_contribution
            )
        if gain > tolerance:
            move_rows(leaf, weight, neg_gradient, probability, column, start, width, contribution, new_contribution)
            for v in range(n):
                status[start + v] = new_status[v]
                for k in range(width):
                    contribution[start + v, k] = new_contribution[v, k]
            factor[tree] = new_factor if new_status[0] != 0 else 0.0
            if layered and not newton and values <= REFIT:
                # The cost of the layer already includes the gain of this step.
                move_intercept(weight, neg_gradient, probability, intercept)
            return gain
    return 0.0


@kernel
def sum_rows(
    leaf: np.ndarray,
    weight: np.ndarray,
    neg_gradient: np.ndarray,
    probability: np.ndarray,
    column: int,
    n: int,
    width: int,
    leaf_gradient: np.ndarray,
    hessian: np.ndarray,
) -> None:
    """Sum the negative gradient and the Hessian of the rows in each leaf of a tree.

    Writes into `leaf_gradient`, (n, width), and `hessian`, (n,). For squared error the Hessian is left 0, as it is the
    row weight of the leaf.
    """
    for v in range(n):
        hessian[v] = 0.0
        for k in range(width):
            leaf_gradient[v, k] = 0.0
    if probability.shape[0] > 0:
        for i in range(leaf.shape[0]):
            v = leaf[i]
            leaf_gradient[v, 0] += neg_gradient[i, column]
            hessian[v] += weight[i] * probability[i, column] * (1.0 - probability[i, column])
    elif width == 1:
        for i in range(leaf.shape[0]):
            leaf_gradient[leaf[i], 0] += neg_gradient[i, column]
    else:
        for i in range(leaf.shape[0]):
            v = leaf[i]
            for k in range(width):
                leaf_gradient[v, k] += neg_gradient[i, k]


@kernel
def add_rows_gain(
    gain: float,
    leaf: np.ndarray,
    weight: np.ndarray,
    neg_gradient: np.ndarray,
    probability: np.ndarray,
    column: int,
    start: int,
    contribution: np.ndarray,
    new_contribution: np.ndarray,
) -> float:
    """Return `gain` plus the decrease in log loss when a tree's contribution changes to `new_contribution`."""
    for i in range(leaf.shape[0]):
        step = new_contribution[leaf[i], 0] - contribution[start + leaf[i], 0]
        if step != 0.0:
            gain += _loss_decrease(weight[i], neg_gradient[i, column], probability[i, column], step)
    return gain


@kernel
def move_rows(
    leaf: np.ndarray,
    weight: np.ndarray,
    neg_gradient: np.ndarray,
    probability: np.ndarray,
    column: int,
    start: int,
    width: int,
    contribution: np.ndarray,
    new_contribution: np.ndarray,
) -> None:
    """Update gradient and probabilities of the rows for a tree whose contribution changes to `new_contribution`."""
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
