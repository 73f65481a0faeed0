"""Sum targets over the nodes of trees, and compute the predictions of a mean of trees."""

import numpy as np

from secateur.kernels._jit import kernel
from secateur.kernels.ensemble.mean_arrays import ABSENT, MeanArrays, MeanRows, MeanTrees, Range


@kernel
def sum_targets(rows: MeanRows, tree_start: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the sums of w y, (n_nodes, n_outputs), and of w |y|² over the rows at each node, in one array."""
    n_outputs = rows.target.shape[1]
    total = np.zeros((right.shape[0], n_outputs + 1))
    for tree in range(rows.leaves.shape[0]):
        start = tree_start[tree]
        for i in range(rows.weight.shape[0]):
            u = start + rows.leaves[tree, i]
            for k in range(n_outputs):
                total[u, k] += rows.weight[i] * rows.target[i, k]
                total[u, n_outputs] += rows.weight[i] * rows.target[i, k] ** 2
        for u in range(tree_start[tree + 1] - 1, start - 1, -1):
            if right[u] != -1:
                for k in range(n_outputs + 1):
                    total[u, k] = total[u + 1, k] + total[right[u], k]
    return total


@kernel
def recompute_scores(rows: MeanRows, trees: MeanTrees, bounds: Range, state: MeanArrays) -> None:
    """Compute the predictions and their products from the values, which removes the rounding of earlier updates."""
    n_outputs = bounds.center.shape[0]
    for i in range(rows.weight.shape[0]):
        for k in range(n_outputs):
            state.score[i, k] = 0.0 if state.size[0] > 0 else bounds.center[k]
    for tree in range(rows.leaves.shape[0]):
        start = trees.start[tree]
        if state.status[start] != ABSENT:
            for i in range(rows.weight.shape[0]):
                for k in range(n_outputs):
                    state.score[i, k] += state.value[start + rows.leaves[tree, i], k]
    for i in range(rows.weight.shape[0]):
        with_target, square = 0.0, 0.0
        for k in range(n_outputs):
            if state.size[0] > 0:
                state.score[i, k] /= state.size[0]
            with_target += state.score[i, k] * rows.target[i, k]
            square += state.score[i, k] ** 2
        state.score_target[i], state.score_square[i] = with_target, square
