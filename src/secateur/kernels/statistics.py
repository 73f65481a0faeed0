"""Sums over the rows that reach each node."""

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
def count_classes(
    leaves: np.ndarray, tree_start: np.ndarray, code: np.ndarray, weight: np.ndarray, counts: np.ndarray
) -> None:
    """Add each row's weight to the count of its class at the leaf it reaches in each tree."""
    for tree in range(leaves.shape[0]):
        for i in range(leaves.shape[1]):
            counts[tree_start[tree] + leaves[tree, i], code[i]] += weight[i]


@kernel
def roll_up(right: np.ndarray, sums: np.ndarray) -> None:
    """Turn sums at leaves into sums at every node: a split gets the total of its children."""
    for v in range(right.shape[0] - 1, -1, -1):
        if right[v] != -1:
            for k in range(sums.shape[1]):
                sums[v, k] += sums[v + 1, k] + sums[right[v], k]
