"""Find the least-cost pruning of each tree at given prices of its needs, by dynamic programming."""

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
    """Return the cost of the cheapest pruning of each of the trees `first` to `stop` − 1, and mark its splits.

    A leaf v costs `as_leaf[v]`, a split the sum of `price[start[v] : start[v + 1]]`, all nonnegative; an infinite
    price forbids a split. Among equally cheap prunings the smallest is marked in `split` (n_nodes,); differences
    within rounding error count as ties.
    """
    begin, end = tree_start[first], tree_start[stop]
    cost = np.empty(end - begin)
    # Bottom-up. Invariant: `cost` has the optimal cost of the subtree at u for all u > v; children come after parents.
    for v in range(end - 1, begin - 1, -1):
        cost[v - begin] = as_leaf[v]
        split[v] = False
        if right[v] != -1:
            split_cost = cost[v + 1 - begin] + cost[right[v] - begin]
            for e in range(start[v], start[v + 1]):
                split_cost += price[e]
            split[v] = as_leaf[v] > split_cost + 1e-14 * split_cost
            cost[v - begin] = min(as_leaf[v], split_cost)
    # Top-down: unmark the splits below a leaf.
    for v in range(begin, end):
        if parent[v] != -1 and not split[parent[v]]:
            split[v] = False
    return cost[tree_start[first:stop] - begin]
