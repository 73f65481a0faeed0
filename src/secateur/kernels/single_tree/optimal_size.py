"""Compute the optimal pruning of every size by a (min, +) dynamic program over subtrees.

The tables of the children are merged bottom-up. The size of a table is bounded by the number of leaves of its subtree,
so the merges take O(n_nodes²) in total.

References
----------
M. Bohanec and I. Bratko (1994). Trading accuracy for simplicity in decision trees. Machine Learning 15.

H. Almuallim (1996). An efficient algorithm for optimal pruning of decision trees. Artificial Intelligence 83.
"""

import numpy as np

from secateur.kernels._jit import kernel


@kernel
def table_start(right: np.ndarray, max_leaves: int) -> np.ndarray:
    """Return the offset of each node's table, (n_nodes + 1,); a table has one entry per number of leaves.

    Numbers of leaves above `max_leaves` get no entry.
    """
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
    """Return the least risk of every subtree for every number of leaves.

    Entry `start[v] + k - 1` is the least total risk of a pruning of the subtree at v with exactly k leaves. The same
    entry of `choice` is set to the number of leaves of the left subtree, 0 if v itself is the leaf. Of several optimal
    prunings, the one with fewer leaves on the left is taken.
    """
    best = np.full(start[-1], np.inf)
    # Invariant: the tables of all nodes after v are final. In preorder these include both children of v.
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
    """Mark in `keep` the optimal pruning of the tree `root:end` with `n_leaves` leaves."""
    # Number of leaves of each node's pruned subtree; 0 if the node is pruned.
    wanted = np.zeros(end - root, np.int64)
    wanted[0] = n_leaves
    # Invariant: wanted[v] is set when v is visited, because its parent precedes it in preorder.
    for v in range(root, end):
        k = wanted[v - root]
        keep[v] = k > 0
        if k > 1:
            n_left = choice[start[v] + k - 1]
            wanted[v + 1 - root] = n_left
            wanted[right[v] - root] = k - n_left


@kernel
def cheapest_cut(right: np.ndarray, as_leaf: np.ndarray) -> np.ndarray:
    """Return the splits that become leaves in the cheapest pruning, (n_nodes,) bool; ties prune.

    A split is cut if its value as a leaf is at most the value of its optimally pruned subtree. Differences within
    rounding error count as ties.
    """
    least_cost = as_leaf.copy()
    cut = np.zeros(right.shape[0], np.bool_)
    # Invariant: for every node u after v, least_cost[u] is the least sum of `as_leaf` over all prunings of its subtree.
    for v in range(right.shape[0] - 1, -1, -1):
        if right[v] != -1:
            subtree_cost = least_cost[v + 1] + least_cost[right[v]]
            cut[v] = as_leaf[v] <= subtree_cost + 1e-14 * abs(subtree_cost)
            if not cut[v]:
                least_cost[v] = subtree_cost
    return cut


@kernel
def sum_over_leaves(right: np.ndarray, as_leaf: np.ndarray) -> np.ndarray:
    """Return for every node the sum of `as_leaf` over the leaves of its subtree, (n_nodes,)."""
    total = as_leaf.copy()
    # Invariant: the totals of all nodes after v are final.
    for v in range(right.shape[0] - 1, -1, -1):
        if right[v] != -1:
            total[v] = total[v + 1] + total[right[v]]
    return total
