"""Pruning one tree bottom-up when either side of a split may take its place, until nothing changes."""

import numpy as np

from secateur.kernels._jit import kernel

_ROUNDING = 1e-12


@kernel
def raise_tree(
    leaf_loss: np.ndarray,
    leaf: np.ndarray,
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

    `leaf_loss[v]` is the loss of all rows at node v when it is a leaf, `leaf[i]` where row i ends. The loss of row i in
    node v is `table[v, label[i]]`, or, where `label` is empty, the mean squared difference of `value[v]` and
    `target[i]`. Of equally good choices a leaf comes before a raised side before the split.

    Sweep after sweep the nodes that are there are judged bottom-up, then rows are sent through what is left. A node is
    judged again only where rows are new to it or something below it has changed: all else would be judged as before.
    """
    n = right.shape[0]
    leaf_loss, leaf = leaf_loss.copy(), leaf.copy()
    worth = leaf_loss.copy()  # the loss of what stands at v
    replacement = np.arange(n)  # the node that stands at v
    is_leaf = right == -1
    present, new_rows, changed = np.ones(n, np.bool_), np.ones(n, np.bool_), np.zeros(n, np.bool_)
    while new_rows.any():
        order, first = _rows_by_leaf(leaf, n)
        changed[:] = False
        for v in range(n - 1, -1, -1):
            if not present[v]:
                continue
            if is_leaf[v]:
                worth[v] = leaf_loss[v]
                continue
            a, b = v + 1, right[v]
            below = False
            for side in (a, b):
                before = side if present[side] else replacement[side]  # what stood there when the sweep began
                below |= changed[before]
                worth[side], replacement[side] = worth[before], replacement[before]
            if not new_rows[v] and not below:
                continue
            split, through_a, through_b = worth[a] + worth[b], worth[a], worth[b]
            if leaf_loss[v] > 0.0:  # nothing beats a leaf without loss
                # A side that is raised keeps its own rows, whose loss is known; those of the other side are new to it.
                # Once it is worse than leaf or split it need not be known how much worse.
                limit = min(leaf_loss[v], split) + 1e-9 * leaf_loss[v]
                for k in range(first[b], first[end[b]]):
                    u = _descend(a, order[k], X, right, feature, threshold, default_left, replacement, is_leaf)
                    through_a += weight[order[k]] * _loss(u, order[k], label, target, table, value)
                    if through_a > limit:
                        break
                for k in range(first[a], first[end[a]]):
                    u = _descend(b, order[k], X, right, feature, threshold, default_left, replacement, is_leaf)
                    through_b += weight[order[k]] * _loss(u, order[k], label, target, table, value)
                    if through_b > limit:
                        break
            enough = min(leaf_loss[v], through_a, through_b, split) + _ROUNDING * leaf_loss[v]
            changed[v] = True
            if leaf_loss[v] <= enough:
                worth[v], is_leaf[v] = leaf_loss[v], True
            elif through_a <= enough:
                worth[v], replacement[v] = through_a, replacement[a]
            elif through_b <= enough:
                worth[v], replacement[v] = through_b, replacement[b]
            else:
                worth[v], changed[v] = split, below
        replacement[0] = replacement[replacement[0]]
        present = _present(right, replacement, is_leaf)
        new_rows[:] = False
        home = _leaf_above(present, is_leaf, end)
        for i in range(leaf.shape[0]):
            u = replacement[0] if home[leaf[i]] == -1 else home[leaf[i]]
            while True:
                if not u <= leaf[i] < end[u]:  # it was not below u
                    new_rows[u] = True
                    leaf_loss[u] += weight[i] * _loss(u, i, label, target, table, value)
                if is_leaf[u]:
                    break
                u = _next(u, i, X, right, feature, threshold, default_left, replacement)
            leaf[i] = u
    return present


@kernel
def _rows_by_leaf(leaf: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows in the order of their leaves, and where those of each leaf start, (n + 1,).

    The rows below node v are `order[first[v]:first[end[v]]]`, as nodes are in preorder and no row leaves a subtree.
    """
    first = np.zeros(n + 2, np.int64)
    for i in range(leaf.shape[0]):
        first[leaf[i] + 2] += 1
    first = np.cumsum(first)
    order = np.empty(leaf.shape[0], np.int64)
    for i in range(leaf.shape[0]):
        order[first[leaf[i] + 1]] = i
        first[leaf[i] + 1] += 1
    return order, first[: n + 1]


@kernel
def _leaf_above(present: np.ndarray, is_leaf: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return the leaf that has taken in each node, -1 for nodes that are splits or gone: rows there need a new way."""
    home = np.full(present.shape[0], -1)
    for v in range(present.shape[0]):
        if present[v] and is_leaf[v]:
            home[v : end[v]] = v
    return home


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
    replacement: np.ndarray,
    is_leaf: np.ndarray,
) -> int:
    """Return the node in which a row ends when it starts at what stands at `top`."""
    v = replacement[top]
    while not is_leaf[v]:
        v = _next(v, row, X, right, feature, threshold, default_left, replacement)
    return v


@kernel
def _next(
    v: int,
    row: int,
    X: np.ndarray,
    right: np.ndarray,
    feature: np.ndarray,
    threshold: np.ndarray,
    default_left: np.ndarray,
    replacement: np.ndarray,
) -> int:
    """Return the node to which a split sends a row."""
    x = X[row, feature[v]]
    left = (x <= threshold[v]) | (default_left[v] & (x != x))
    return replacement[v + 1] if left else replacement[right[v]]


@kernel
def _present(right: np.ndarray, replacement: np.ndarray, is_leaf: np.ndarray) -> np.ndarray:
    """Return which nodes are there, walking down from what stands at the root; children come after parents."""
    keep = np.zeros(right.shape[0], np.bool_)
    keep[replacement[0]] = True
    for v in range(right.shape[0]):
        if keep[v] and not is_leaf[v]:
            keep[replacement[v + 1]] = True
            keep[replacement[right[v]]] = True
    return keep
