"""Prune one tree bottom-up with subtree raising, in sweeps until nothing changes.

In subtree raising, a child replaces its parent split and all rows of the split are routed through that child.
"""

import numpy as np

from secateur.kernels._jit import kernel
from secateur.kernels.forest.routing import SplitArrays

_ROUNDING = 1e-12


@kernel
def raise_tree(
    leaf_loss: np.ndarray,
    leaf: np.ndarray,
    X: np.ndarray,
    label: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray,
    splits: SplitArrays,
    end: np.ndarray,
    table: np.ndarray,
    value: np.ndarray,
) -> np.ndarray:
    """Return which nodes of one tree are kept, (n_nodes,).

    `leaf_loss[v]` is the loss of all rows at node v if v is a leaf, and `leaf[i]` is the leaf that row i reaches. The
    loss of row i at node v is `table[v, label[i]]` or, if `label` is empty, the mean squared difference of `value[v]`
    and `target[i]`. Ties prefer a leaf to a raised child, and a raised child to the split.

    Each sweep chooses the best option at every present node bottom-up, then routes the rows through the result. A node
    is revisited only if it has received new rows or a descendant has changed; otherwise its choice would not change.
    """
    right, n = splits.right, len(splits.right)
    leaf_loss, leaf = leaf_loss.copy(), leaf.copy()
    # Loss of the current subtree in the position of v.
    subtree_loss = leaf_loss.copy()
    # Root of the current subtree in the position of v.
    replacement = np.arange(n)
    is_leaf = right == -1
    present, new_rows, changed = np.ones(n, np.bool_), np.ones(n, np.bool_), np.zeros(n, np.bool_)
    # Invariant: for present nodes, `leaf_loss` sums over all rows that have passed the node, and `leaf` is the current
    # routing. The loop ends when a sweep routes no row to a node it had not passed before.
    while new_rows.any():
        order, first = _rows_by_leaf(leaf, n)
        changed[:] = False
        # Invariant: `subtree_loss` and `replacement` of all present nodes after v are final for this sweep.
        for v in range(n - 1, -1, -1):
            if not present[v]:
                continue
            if is_leaf[v]:
                subtree_loss[v] = leaf_loss[v]
                continue
            a, b = v + 1, right[v]
            below = False
            for side in (a, b):
                # Root of the child's subtree at the beginning of the sweep.
                before = side if present[side] else replacement[side]
                below |= changed[before]
                subtree_loss[side], replacement[side] = subtree_loss[before], replacement[before]
            if not new_rows[v] and not below:
                continue
            split, through_a, through_b = subtree_loss[a] + subtree_loss[b], subtree_loss[a], subtree_loss[b]
            # A leaf without loss is optimal, so the other options are evaluated only if it has a loss.
            if leaf_loss[v] > 0.0:
                # The loss of a raised child's own rows is known; only the sibling's rows have to be routed through it.
                # The sum stops as soon as it exceeds the loss of the leaf or of the split.
                limit = min(leaf_loss[v], split) + 1e-9 * leaf_loss[v]
                for k in range(first[b], first[end[b]]):
                    u = _descend(a, order[k], X, splits, replacement, is_leaf)
                    through_a += weight[order[k]] * _loss(u, order[k], label, target, table, value)
                    if through_a > limit:
                        break
                for k in range(first[a], first[end[a]]):
                    u = _descend(b, order[k], X, splits, replacement, is_leaf)
                    through_b += weight[order[k]] * _loss(u, order[k], label, target, table, value)
                    if through_b > limit:
                        break
            best_loss = min(leaf_loss[v], through_a, through_b, split) + _ROUNDING * leaf_loss[v]
            changed[v] = True
            if leaf_loss[v] <= best_loss:
                subtree_loss[v], is_leaf[v] = leaf_loss[v], True
            elif through_a <= best_loss:
                subtree_loss[v], replacement[v] = through_a, replacement[a]
            elif through_b <= best_loss:
                subtree_loss[v], replacement[v] = through_b, replacement[b]
            else:
                subtree_loss[v], changed[v] = split, below
        replacement[0] = replacement[replacement[0]]
        present = _present(right, replacement, is_leaf)
        new_rows[:] = False
        new_leaf = _leaf_above(present, is_leaf, end)
        for i in range(leaf.shape[0]):
            u = replacement[0] if new_leaf[leaf[i]] == -1 else new_leaf[leaf[i]]
            while True:
                # The old leaf is outside the subtree of u, so row i is new to u.
                if not u <= leaf[i] < end[u]:
                    new_rows[u] = True
                    leaf_loss[u] += weight[i] * _loss(u, i, label, target, table, value)
                if is_leaf[u]:
                    break
                u = _next(u, i, X, splits, replacement)
            leaf[i] = u
    return present


@kernel
def _rows_by_leaf(leaf: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows sorted by leaf, and the offset of each leaf's rows, (n + 1,).

    The rows below node v are `order[first[v]:first[end[v]]]`, because a subtree is a slice of the preorder.
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
    """Return the present leaf at or above each node, -1 if there is none; rows at such nodes must be rerouted."""
    new_leaf = np.full(present.shape[0], -1)
    for v in range(present.shape[0]):
        if present[v] and is_leaf[v]:
            new_leaf[v : end[v]] = v
    return new_leaf


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
    top: int, row: int, X: np.ndarray, splits: SplitArrays, replacement: np.ndarray, is_leaf: np.ndarray
) -> int:
    """Return the leaf a row reaches when it is routed from the current subtree in the position of `top`."""
    v = replacement[top]
    while not is_leaf[v]:
        v = _next(v, row, X, splits, replacement)
    return v


@kernel
def _next(v: int, row: int, X: np.ndarray, splits: SplitArrays, replacement: np.ndarray) -> int:
    """Return the node to which the split v routes a row."""
    x = X[row, splits.feature[v]]
    left = (x <= splits.threshold[v]) | (splits.default_left[v] & (x != x))
    return replacement[v + 1] if left else replacement[splits.right[v]]


@kernel
def _present(right: np.ndarray, replacement: np.ndarray, is_leaf: np.ndarray) -> np.ndarray:
    """Return which nodes are present in the current tree, (n_nodes,)."""
    keep = np.zeros(right.shape[0], np.bool_)
    keep[replacement[0]] = True
    # Invariant: keep[v] is final when v is visited, because the preorder lists parents before children.
    for v in range(right.shape[0]):
        if keep[v] and not is_leaf[v]:
            keep[replacement[v + 1]] = True
            keep[replacement[right[v]]] = True
    return keep
