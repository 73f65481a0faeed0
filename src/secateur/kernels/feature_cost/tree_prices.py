"""The least-cost pruning of each tree when what its splits need has prices of its own: one pass up, one pass down."""

import numpy as np

from secateur.kernels._jit import kernel


@kernel
def cheapest_trees(
    first: int,
    stop: int,
    tree_start: np.ndarray,
    parent: np.ndarray,
    right: np.ndarray,
    as_leaf: np.ndarray,
    start: np.ndarray,
    price: np.ndarray,
    split: np.ndarray,
) -> np.ndarray:
    """Return what the cheapest pruning of each of the trees `first` to `stop` − 1 costs, and mark its splits.

    A leaf v costs `as_leaf[v]`, a split the sum of `price[start[v] : start[v + 1]]`, all at least 0; infinite prices
    forbid a split. Of equally cheap prunings the smallest is marked in `split` (n_nodes,), where differences that
    rounding alone can make count as none.
    """
    begin, end = tree_start[first], tree_start[stop]
    worth = np.empty(end - begin)
    for v in range(end - 1, begin - 1, -1):  # worth of all nodes after v is known: children come later
        worth[v - begin] = as_leaf[v]
        split[v] = False
        if right[v] != -1:
            below = worth[v + 1 - begin] + worth[right[v] - begin]
            for e in range(start[v], start[v + 1]):
                below += price[e]
            split[v] = as_leaf[v] > below + 1e-14 * below
            worth[v - begin] = min(as_leaf[v], below)
    for v in range(begin, end):
        if parent[v] != -1 and not split[parent[v]]:
            split[v] = False
    return worth[tree_start[first:stop] - begin]
