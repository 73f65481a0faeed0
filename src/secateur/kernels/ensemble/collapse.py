"""Drop a tree from the state of a block descent. The arrays are those of `secateur.kernels.ensemble.arrays`."""

import numpy as np

from secateur.kernels._jit import kernel
from secateur.kernels.ensemble.arrays import RoutedRows, State, Trees
from secateur.kernels.ensemble.block_descent import move_rows


@kernel
def drop_tree(tree: int, rows: RoutedRows, trees: Trees, state: State) -> None:
    """Drop one tree from the state."""
    start, width = trees.tree_start[tree], state.contribution.shape[1]
    n = trees.tree_start[tree + 1] - start
    move_rows(tree, rows, trees, state, np.zeros((n, width)))
    for u in range(start, start + n):
        state.status[u] = 0
        for k in range(width):
            state.contribution[u, k] = 0.0
    state.factor[tree] = 0.0
