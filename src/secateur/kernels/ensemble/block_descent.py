"""Descent over trees: one tree at a time gets the subtree, and the leaf values, that are best given all others.

The state of an ensemble: `status` of each node (0 absent, 1 split, 2 leaf), `contribution`, what the tree adds for rows
that end at or below a kept leaf, an intercept, and for each row `neg_gradient`, weight · (target − prediction). A tree
sees the rows through sums over its leaves. Squared error needs nothing else; for logistic and softmax losses
`probability` holds the probabilities, the loss is replaced by a parabola, and a step counts only if the true loss
falls.
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
    """Update every tree that may change once; return how many did change, and the gain.

    Changes `neg_gradient`, `probability`, `status`, `contribution` and `factor`, with layers also `intercept`. An
    update must gain more than `tolerance`. `frozen` refits values without changing what is kept. The ridge draws fitted
    values to `centre` times their own.
    """
    n_trees = leaves.shape[0]
    largest = (tree_start[1:] - tree_start[:-1]).max() if n_trees > 0 else 1
    scratch = np.empty((5, largest, contribution.shape[1]))
    numbers = np.empty((3, largest))
    state = np.empty(largest, np.int8)
    changed, total = 0, 0.0
    for place in range(n_trees):
        tree = (first + place) % n_trees
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
                numbers,
                state,
            )
            if gain > 0.0:
                total += gain
                changed += 1
    return changed, total


@kernel
def move_intercept(
    weight: np.ndarray, neg_gradient: np.ndarray, probability: np.ndarray, intercept: np.ndarray
) -> float:
    """Move the intercept of every output to where the loss is least, or nearer; return the gain."""
    gain = 0.0
    total = weight.sum()
    newton = probability.shape[0] > 0
    for k in range(neg_gradient.shape[1]):
        slope, hessian = 0.0, 0.0
        for i in range(weight.shape[0]):
            slope += neg_gradient[i, k]
            if newton:
                hessian += weight[i] * probability[i, k] * (1.0 - probability[i, k])
        if not newton:
            step = slope / total
            for i in range(weight.shape[0]):
                neg_gradient[i, k] -= weight[i] * step
            intercept[k] += step
            gain += total * step * step
            continue
        for bend in (hessian, 0.25 * total):
            step = slope / bend if bend > 0.0 else 0.0
            better = 0.0
            for i in range(weight.shape[0]):
                better += _less_loss(weight[i], neg_gradient[i, k], probability[i, k], step)
            if better > 0.0:
                for i in range(weight.shape[0]):
                    _shift(i, k, weight[i], step, neg_gradient, probability)
                intercept[k] += step
                gain += better
                break
    return gain


@kernel
def _less_loss(weight: float, neg_gradient: float, probability: float, step: float) -> float:
    """Return by how much a row's loss falls when its logit moves by `step`."""
    return (neg_gradient + weight * probability) * step - weight * np.log1p(probability * np.expm1(step))


@kernel
def _shift(i: int, k: int, weight: float, step: float, neg_gradient: np.ndarray, probability: np.ndarray) -> None:
    """Move logit k of row i by `step`; what it wins the other classes lose in proportion."""
    shrink = 1.0 / (1.0 + probability[i, k] * np.expm1(step))
    for other in range(probability.shape[1]):
        was = probability[i, other]
        now = was * shrink if other != k else was * np.exp(step) * shrink
        neg_gradient[i, other] -= weight * (now - was)
        probability[i, other] = now


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
    numbers: np.ndarray,
    state: np.ndarray,
) -> float:
    """Give one tree its best subtree; return the gain, 0 if it stays as it is."""
    if frozen and status[start] == 0:
        return 0.0
    n, width = stop - start, contribution.shape[1]
    fresh = scratch[3]
    newton = probability.shape[0] > 0
    sum_rows(leaf, weight, neg_gradient, probability, column, n, width, scratch[0], numbers[0])
    for attempt in range(2 if newton else 1):
        gain, times = choose_subtree(
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
            numbers,
            state,
        )
        if newton:
            gain = price_gain(
                start, n, original, as_leaf, as_split, status, contribution, state, fresh, penalty, ridge, centre
            )
            gain = add_rows_gain(gain, leaf, weight, neg_gradient, probability, column, start, contribution, fresh)
        if gain > tolerance:
            move_rows(leaf, weight, neg_gradient, probability, column, start, width, contribution, fresh)
            for v in range(n):
                status[start + v] = state[v]
                for k in range(width):
                    contribution[start + v, k] = fresh[v, k]
            factor[tree] = times if state[0] != 0 else 0.0
            if layered and not newton and values <= REFIT:
                move_intercept(weight, neg_gradient, probability, intercept)  # its gain is in the cost of the layer
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
    pulled: np.ndarray,
    hessian: np.ndarray,
) -> None:
    """Sum the gradient of the rows in each leaf of a tree, and their curvature."""
    for v in range(n):
        hessian[v] = 0.0
        for k in range(width):
            pulled[v, k] = 0.0
    if probability.shape[0] > 0:
        for i in range(leaf.shape[0]):
            v = leaf[i]
            pulled[v, 0] += neg_gradient[i, column]
            hessian[v] += weight[i] * probability[i, column] * (1.0 - probability[i, column])
    elif width == 1:
        for i in range(leaf.shape[0]):
            pulled[leaf[i], 0] += neg_gradient[i, column]
    else:
        for i in range(leaf.shape[0]):
            v = leaf[i]
            for k in range(width):
                pulled[v, k] += neg_gradient[i, k]


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
    fresh: np.ndarray,
) -> float:
    """Return `gain` and by how much the loss of the rows falls, for losses of logits, when a tree adds `fresh`."""
    for i in range(leaf.shape[0]):
        step = fresh[leaf[i], 0] - contribution[start + leaf[i], 0]
        if step != 0.0:
            gain += _less_loss(weight[i], neg_gradient[i, column], probability[i, column], step)
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
    fresh: np.ndarray,
) -> None:
    """Bring the rows up to date with what a tree now adds."""
    newton = probability.shape[0] > 0
    for i in range(leaf.shape[0]):
        v = leaf[i]
        if newton:
            step = fresh[v, 0] - contribution[start + v, 0]
            if step != 0.0:
                _shift(i, column, weight[i], step, neg_gradient, probability)
        elif width == 1:
            neg_gradient[i, column] -= weight[i] * (fresh[v, 0] - contribution[start + v, 0])
        else:
            for k in range(width):
                neg_gradient[i, k] -= weight[i] * (fresh[v, k] - contribution[start + v, k])


@kernel
def add_parts(
    leaves: np.ndarray,
    tree_start: np.ndarray,
    tree_output: np.ndarray,
    trees: np.ndarray,
    contribution: np.ndarray,
    score: np.ndarray,
) -> None:
    """Add to the sums of the rows what some trees add."""
    for tree in trees:
        start, column, leaf = tree_start[tree], max(tree_output[tree], 0), leaves[tree]
        for i in range(leaf.shape[0]):
            for k in range(contribution.shape[1]):
                score[i, column + k] += contribution[start + leaf[i], k]


@kernel
def sum_trees(
    leaves: np.ndarray,
    weight: np.ndarray,
    neg_gradient: np.ndarray,
    probability: np.ndarray,
    tree_start: np.ndarray,
    tree_output: np.ndarray,
    trees: np.ndarray,
    pulled: np.ndarray,
    hessian: np.ndarray,
) -> None:
    """Write the sums of `sum_rows` for some trees, one after the other."""
    first = 0
    for tree in trees:
        stop = first + tree_start[tree + 1] - tree_start[tree]
        column = max(tree_output[tree], 0)
        here, bend = pulled[first:stop], hessian[first:stop]
        sum_rows(leaves[tree], weight, neg_gradient, probability, column, stop - first, pulled.shape[1], here, bend)
        first = stop


@kernel
def shift_rows(
    step: np.ndarray, weight: np.ndarray, neg_gradient: np.ndarray, probability: np.ndarray, column: int
) -> float:
    """Move a logit of all rows by steps of their own; return by how much the loss falls."""
    gain = 0.0
    for i in range(step.shape[0]):
        if step[i] != 0.0:
            gain += _less_loss(weight[i], neg_gradient[i, column], probability[i, column], step[i])
            _shift(i, column, weight[i], step[i], neg_gradient, probability)
    return gain


@kernel
def add_overlaps(
    leaves: np.ndarray,
    weight: np.ndarray,
    tree_start: np.ndarray,
    trees: np.ndarray,
    others: np.ndarray,
    row: np.ndarray,
    column: np.ndarray,
    total: np.ndarray,
) -> None:
    """Add the weight of the rows that reach both of two leaves, for all leaves of some trees and of some others."""
    for a in trees:
        for b in others:
            for i in range(weight.shape[0]):
                total[row[tree_start[a] + leaves[a, i]], column[tree_start[b] + leaves[b, i]]] += weight[i]
