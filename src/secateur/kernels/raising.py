"""Pruning one tree bottom-up when either side of a split may take its place."""

import numpy as np

from secateur.kernels._jit import kernel

_ROUNDING = 1e-12


@kernel
def raise_tree(
    leaf_loss: np.ndarray,
    order: np.ndarray,
    first: np.ndarray,
    X: np.ndarray,
    label: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray,
    right: np.ndarray,
    end: np.ndarray,
    feature: np.ndarray,
    threshold: np.ndarray,
    default_left: np.ndarray,
    table: np.ndarray,
    value: np.ndarray,
) -> np.ndarray:
    """Return which nodes of one tree are kept, (n_nodes,).

    `leaf_loss[v]` is the loss of all rows at node v when it is a leaf; they are `order[first[v]:first[end[v]]]`. The
    loss of row i in node v is `table[v, label[i]]`, or, where `label` is empty, the mean squared difference of
    `value[v]` and `target[i]`. Of equally good choices a leaf comes before a raised side before the split.
    """
    n = right.shape[0]
    stand_in = np.arange(n)  # the node that has taken the place of v
    is_leaf = right == -1
    worth = leaf_loss.copy()  # the loss of what the subtree at v has become
    for v in range(n - 1, -1, -1):
        if right[v] == -1:
            continue
        a, b = v + 1, right[v]
        options = (worth[v], worth[a], worth[b], worth[a] + worth[b])
        if worth[v] > 0.0:  # nothing beats a leaf without loss
            # A side that is raised keeps its own rows, whose loss is known; those of the other side are new to it. Once
            # it is worse than leaf or split it need not be known how much worse.
            limit = min(options[0], options[3]) + 1e-9 * worth[v]
            through_a, through_b = worth[a], worth[b]
            for k in range(first[b], first[end[b]]):
                u = _descend(a, order[k], X, right, feature, threshold, default_left, stand_in, is_leaf)
                through_a += weight[order[k]] * _loss(u, order[k], label, target, table, value)
                if through_a > limit:
                    break
            for k in range(first[a], first[end[a]]):
                u = _descend(b, order[k], X, right, feature, threshold, default_left, stand_in, is_leaf)
                through_b += weight[order[k]] * _loss(u, order[k], label, target, table, value)
                if through_b > limit:
                    break
            options = (worth[v], through_a, through_b, worth[a] + worth[b])
        enough = min(options) + _ROUNDING * worth[v]
        if options[0] <= enough:
            is_leaf[v] = True
        elif options[1] <= enough:
            worth[v], stand_in[v] = options[1], stand_in[a]
        elif options[2] <= enough:
            worth[v], stand_in[v] = options[2], stand_in[b]
        else:
            worth[v] = options[3]
    return _present(right, stand_in, is_leaf)


@kernel
def _loss(v: int, row: int, label: np.ndarray, target: np.ndarray, table: np.ndarray, value: np.ndarray) -> float:
    if label.shape[0] > 0:
        return table[v, label[row]]
    total = 0.0
    for k in range(target.shape[1]):
        total += (value[v, k] - target[row, k]) ** 2
    return total / target.shape[1]


@kernel
def _descend(
    top: int,
    row: int,
    X: np.ndarray,
    right: np.ndarray,
    feature: np.ndarray,
    threshold: np.ndarray,
    default_left: np.ndarray,
    stand_in: np.ndarray,
    is_leaf: np.ndarray,
) -> int:
    """Return the node in which a row ends when it starts at what has taken the place of `top`."""
    v = stand_in[top]
    while not is_leaf[v]:
        x = X[row, feature[v]]
        left = (x <= threshold[v]) | (default_left[v] & (x != x))
        v = stand_in[v + 1] if left else stand_in[right[v]]
    return v


@kernel
def _present(right: np.ndarray, stand_in: np.ndarray, is_leaf: np.ndarray) -> np.ndarray:
    """Return which nodes are there, walking down from what stands in for the root; children come after parents."""
    keep = np.zeros(right.shape[0], np.bool_)
    keep[stand_in[0]] = True
    for v in range(right.shape[0]):
        if keep[v] and not is_leaf[v]:
            keep[stand_in[v + 1]] = True
            keep[stand_in[right[v]]] = True
    return keep
