"""Sum weights, targets and class counts over the rows that reach each node."""

import numpy as np

from secateur.kernels._jit import kernel


@kernel
def add_rows(leaves: np.ndarray, tree_start: np.ndarray, columns: np.ndarray, sums: np.ndarray) -> None:
    """Add each row's `columns` to the sums of the leaf it reaches in each tree."""
    for tree in range(leaves.shape[0]):
        for i in range(leaves.shape[1]):
            v = tree_start[tree] + leaves[tree, i]
            for k in range(columns.shape[1]):
                sums[v, k] += columns[i, k]


@kernel
def count_rows(leaves: np.ndarray, n_nodes: int) -> np.ndarray:
    """Return how many rows reach each leaf of a tree, (n_nodes,)."""
    # Rows in a row often reach the same leaf; four counts per leaf need not wait for each other.
    partial, total = np.zeros((n_nodes, 4), np.int64), np.zeros(n_nodes, np.int64)
    for i in range(leaves.shape[0]):
        partial[leaves[i], i % 4] += 1
    for v in range(n_nodes):
        total[v] = partial[v, 0] + partial[v, 1] + partial[v, 2] + partial[v, 3]
    return total


@kernel
def add_moments(
    leaves: np.ndarray, tree_start: np.ndarray, y: np.ndarray, weight: np.ndarray, sums: np.ndarray
) -> None:
    """Add each row's weight w, and w y and w y² for every column of `y`, to the sums of the leaf it reaches."""
    n_columns = y.shape[1]
    for tree in range(leaves.shape[0]):
        for i in range(leaves.shape[1]):
            v = tree_start[tree] + leaves[tree, i]
            sums[v, 0] += weight[i]
            for k in range(n_columns):
                first = weight[i] * y[i, k]
                sums[v, 1 + k] += first
                sums[v, 1 + n_columns + k] += first * y[i, k]


@kernel
def count_classes(
    leaves: np.ndarray, tree_start: np.ndarray, code: np.ndarray, weight: np.ndarray, counts: np.ndarray
) -> None:
    """Add each row's weight to the count of its class at the leaf it reaches in each tree."""
    for tree in range(leaves.shape[0]):
        for i in range(leaves.shape[1]):
            counts[tree_start[tree] + leaves[tree, i], code[i]] += weight[i]


@kernel
def roll_up(right: np.ndarray, sums: np.ndarray) -> None:
    """Propagate sums from the leaves to the splits, in place: a split gets the total of its children."""
    # Invariant: sums[u] is final for every node u after v, which includes the children of v.
    for v in range(right.shape[0] - 1, -1, -1):
        if right[v] != -1:
            for k in range(sums.shape[1]):
                sums[v, k] += sums[v + 1, k] + sums[right[v], k]


@kernel
def cover_mean(right: np.ndarray, value: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the mean of the leaf values below every node, weighted by cover, (n_nodes, width).

    If all leaves below a node have zero cover, their mean is unweighted.
    """
    n, width = value.shape
    # Holds sums until the last loop: Σ cover · value if the subtree has cover, otherwise Σ value.
    mean = np.empty((n, width))
    cover, n_leaves = np.zeros(n), np.ones(n, np.int32)
    # Invariant: the sums, `cover` and `n_leaves` of all nodes after v are final.
    for v in range(n - 1, -1, -1):
        if right[v] == -1:
            cover[v] = max(weight[v], 0.0)
            for k in range(width):
                mean[v, k] = cover[v] * value[v, k] if cover[v] > 0 else value[v, k]
            continue
        cover[v], n_leaves[v] = cover[v + 1] + cover[right[v]], n_leaves[v + 1] + n_leaves[right[v]]
        for k in range(width):
            mean[v, k] = 0.0
        for side in range(2):
            child = v + 1 if side == 0 else right[v]
            if cover[child] > 0 or not cover[v] > 0:
                for k in range(width):
                    mean[v, k] += mean[child, k]
    for v in range(n):
        for k in range(width):
            if right[v] == -1:
                mean[v, k] = value[v, k]
            else:
                mean[v, k] /= cover[v] if cover[v] > 0 else n_leaves[v]
    return mean
