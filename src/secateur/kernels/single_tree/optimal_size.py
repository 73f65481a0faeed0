"""The best pruning of every size: a (min, +) dynamic program over subtrees."""

import numpy as np

from secateur.kernels._jit import kernel


@kernel
def table_start(right: np.ndarray, max_leaves: int) -> np.ndarray:
    """Return where the table of each node starts, (n_nodes + 1,): one entry per number of leaves up to the limit."""
    n = right.shape[0]
    leaves = np.ones(n, np.int64)
    for v in range(n - 1, -1, -1):
        if right[v] != -1:
            leaves[v] = leaves[v + 1] + leaves[right[v]]
    start = np.zeros(n + 1, np.int64)
    for v in range(n):
        start[v + 1] = start[v] + min(leaves[v], max_leaves)
    return start


@kernel
def best_of_every_size(right: np.ndarray, risk: np.ndarray, start: np.ndarray, choice: np.ndarray) -> np.ndarray:
    """Return the least risk of every node's subtree for every number of leaves.

    Entry `start[v] + k - 1` is the least total risk of a pruning of the subtree at v with exactly k leaves;
    `choice` gets how many of them the left side has, 0 where v itself is the leaf. Of equally good prunings the one
    with fewer leaves on the left is taken.
    """
    best = np.full(start[-1], np.inf)
    for v in range(right.shape[0] - 1, -1, -1):
        best[start[v]] = risk[v]
        choice[start[v]] = 0
        if right[v] == -1:
            continue
        a, b = v + 1, right[v]
        size = start[v + 1] - start[v]
        size_a, size_b = start[a + 1] - start[a], start[b + 1] - start[b]
        for i in range(1, size_a + 1):
            for j in range(1, min(size_b, size - i) + 1):
                total = best[start[a] + i - 1] + best[start[b] + j - 1]
                if total < best[start[v] + i + j - 1]:
                    best[start[v] + i + j - 1] = total
                    choice[start[v] + i + j - 1] = i
    return best


@kernel
def keep_of_size(
    root: int, end: int, right: np.ndarray, start: np.ndarray, choice: np.ndarray, n_leaves: int, keep: np.ndarray
) -> None:
    """Mark in `keep` the best pruning of the tree `root:end` with `n_leaves` leaves."""
    wanted = np.zeros(end - root, np.int64)  # leaves below each node; 0 where the node is not there
    wanted[0] = n_leaves
    for v in range(root, end):
        k = wanted[v - root]
        keep[v] = k > 0
        if k > 1:
            on_left = choice[start[v] + k - 1]
            wanted[v + 1 - root] = on_left
            wanted[right[v] - root] = k - on_left


@kernel
def cheapest_cut(right: np.ndarray, as_leaf: np.ndarray) -> np.ndarray:
    """Return where a bottom-up pass cuts: a split whose value as a leaf is no more than that of what is left below.

    Every node's worth is the smaller of the two; differences that rounding alone can make count as none.
    """
    worth = as_leaf.copy()
    cut = np.zeros(right.shape[0], np.bool_)
    for v in range(right.shape[0] - 1, -1, -1):
        if right[v] != -1:
            below = worth[v + 1] + worth[right[v]]
            cut[v] = as_leaf[v] <= below + 1e-14 * abs(below)
            if not cut[v]:
                worth[v] = below
    return cut


@kernel
def sum_over_leaves(right: np.ndarray, as_leaf: np.ndarray) -> np.ndarray:
    """Return for every node the sum of `as_leaf` over the leaves below it."""
    total = as_leaf.copy()
    for v in range(right.shape[0] - 1, -1, -1):
        if right[v] != -1:
            total[v] = total[v + 1] + total[right[v]]
    return total
