"""Measure how much the targets differ within the nodes of trees, and mark the nodes below splits where they do."""

import numpy as np

from secateur.kernels._jit import kernel


@kernel
def target_spread(
    leaves: np.ndarray, tree_start: np.ndarray, right: np.ndarray, weight: np.ndarray, target: np.ndarray
) -> np.ndarray:
    """Return Σ w |y − mean|² over the rows at each node, (n_nodes,).

    `leaves` (n_trees, n_rows) has the leaf of each row, counted from the root; `target` (n_rows, n_outputs) is best
    centred. No array has a row for every node and output, only for those of one tree.
    """
    n_outputs, largest = target.shape[1], 1
    for tree in range(leaves.shape[0]):
        largest = max(largest, tree_start[tree + 1] - tree_start[tree])
    spread = np.empty(right.shape[0])
    total, square, sums = np.empty(largest), np.empty(largest), np.empty((largest, n_outputs))
    for tree in range(leaves.shape[0]):
        start, n = tree_start[tree], tree_start[tree + 1] - tree_start[tree]
        for a in range(n):
            total[a] = square[a] = 0.0
            for k in range(n_outputs):
                sums[a, k] = 0.0
        for i in range(weight.shape[0]):
            a = leaves[tree, i]
            total[a] += weight[i]
            for k in range(n_outputs):
                square[a] += weight[i] * target[i, k] * target[i, k]
                sums[a, k] += weight[i] * target[i, k]
        # Reverse preorder: both children are summed before their parent.
        for a in range(n - 1, -1, -1):
            if right[start + a] != -1:
                b = right[start + a] - start
                total[a], square[a] = total[a + 1] + total[b], square[a + 1] + square[b]
                for k in range(n_outputs):
                    sums[a, k] = sums[a + 1, k] + sums[b, k]
            explained = 0.0
            for k in range(n_outputs):
                explained += sums[a, k] * sums[a, k]
            spread[start + a] = square[a] - explained / total[a] if total[a] > 0.0 else 0.0
    return spread


@kernel
def mark_spread(tree_start: np.ndarray, right: np.ndarray, spread: np.ndarray, least: float) -> np.ndarray:
    """Return the roots and all nodes below splits whose spread, and that of the splits above, exceeds `least`."""
    marked = np.zeros(right.shape[0], np.bool_)
    for tree in range(tree_start.shape[0] - 1):
        marked[tree_start[tree]] = True
    # Preorder: a node is marked before its children are considered.
    for u in range(right.shape[0]):
        if marked[u] and right[u] != -1 and spread[u] > least:
            marked[u + 1] = marked[right[u]] = True
    return marked
