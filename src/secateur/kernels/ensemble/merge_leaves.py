"""Merge pairs of leaves in a mean of trees: find how much the merge of each pair increases the loss."""

import numpy as np

from secateur.kernels._jit import kernel
from secateur.kernels.ensemble.mean_arrays import LEAF, SPLIT, MeanArrays, MeanRows, MeanScratch, MeanTrees


@kernel
def merge_rates(tree: int, rows: MeanRows, trees: MeanTrees, state: MeanArrays, scratch: MeanScratch) -> np.ndarray:
    """Return the increase in loss per price saved of merging the two leaves of a split, (n,); infinite elsewhere.

    The merged leaf gets the weighted mean of both values, which lies in C.
    """
    start, n = trees.start[tree], trees.start[tree + 1] - trees.start[tree]
    n_outputs, leaf, sums = rows.target.shape[1], rows.leaves[tree], scratch.sums
    for a in range(n):
        for k in range(n_outputs):
            sums[a, k] = 0.0
    for i in range(leaf.shape[0]):
        for k in range(n_outputs):
            sums[leaf[i], k] += rows.weight[i] * (rows.target[i, k] - state.score[i, k])
    rate = np.full(n, np.inf)
    for a in range(n - 1, -1, -1):
        u, right = start + a, trees.right[start + a]
        if right == -1:
            continue
        b = right - start
        for k in range(n_outputs):
            sums[a, k] = sums[a + 1, k] + sums[b, k]
        if state.status[u] == SPLIT and state.status[u + 1] == LEAF and state.status[right] == LEAF:
            rise = _merge_rise(u, u + 1, start, trees, state, sums) + _merge_rise(u, right, start, trees, state, sums)
            saved = trees.as_split[u] + trees.as_leaf[u + 1] + trees.as_leaf[right] - trees.as_leaf[u]
            rate[a] = rise / max(saved, 1e-300)
    return rate


@kernel
def _merge_rise(u: int, child: int, start: int, trees: MeanTrees, state: MeanArrays, sums: np.ndarray) -> float:
    """Return the increase in loss of the rows at a leaf when it takes the merged value of its parent."""
    rise = 0.0
    for k in range(state.value.shape[1]):
        step = (merged_value(u, k, trees, state) - state.value[child, k]) / state.size[0]
        rise += step * (trees.weight[child] * step - 2.0 * sums[child - start, k])
    return rise


@kernel
def merged_value(u: int, k: int, trees: MeanTrees, state: MeanArrays) -> float:
    """Return the weighted mean of the values of the two children of a split."""
    left, right = u + 1, trees.right[u]
    weight = trees.weight[left] + trees.weight[right]
    if weight <= 0.0:
        return 0.5 * (state.value[left, k] + state.value[right, k])
    return (trees.weight[left] * state.value[left, k] + trees.weight[right] * state.value[right, k]) / weight
