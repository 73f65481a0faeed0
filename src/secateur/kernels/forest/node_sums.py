"""Sum weights, targets and class counts over the rows that reach each node."""

import numpy as np

from secateur.kernels._jit import kernel


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
