"""Compute one maximum closure of splits and items, and the cost of nested closures, on one partition of the rows.

The structure is that of `closure_path`. Profits may have been moved between partitions, so they can have any sign.
"""

import numpy as np

from secateur.kernels._jit import kernel
from secateur.kernels.feature_cost.closure_path import network_of
from secateur.kernels.feature_cost.preflow import empty_network, empty_preflow, saturate


@kernel
def best_closure(
    parent: np.ndarray, profit: np.ndarray, price: np.ndarray, start: np.ndarray, need: np.ndarray
) -> tuple[int, np.ndarray]:
    """Return the value of a maximum closure, and which nodes are in the smallest one, (n,).

    Parameters
    ----------
    parent : (n,)
        Parents come before children.
    profit : (n,) int64
        Of any sign; the positive ones must sum to less than 2⁶³.
    price : (m,) int64
        Nonnegative.
    start, need : (n + 1,), (n_edges,)
        Node h needs the items `need[start[h] : start[h + 1]]`.
    """
    n, m, n_edges = len(parent), len(price), len(need)
    buffers, pre = empty_network(n, m, n_edges), empty_preflow(n, m, n_edges)
    nodes, items = np.arange(n).astype(np.int32), np.arange(m).astype(np.int32)
    degree = np.diff(start).astype(np.int32)
    local_index = np.full(n, -1, np.int32), np.full(m, -1, np.int32)
    net = network_of(buffers, nodes, items, need, degree, parent, local_index[0], local_index[1])
    pre.excess[:], pre.up[:], pre.flow[:] = 0, 0, 0
    for h in range(n):
        pre.excess[h] = max(profit[h], 0)
        pre.capacity[h] = max(-profit[h], 0)
    pre.capacity[n:] = price
    value = saturate(net, pre)
    return value, pre.queued[:n].copy()


@kernel
def cost_of_levels(
    level: np.ndarray, price: np.ndarray, start: np.ndarray, need: np.ndarray, n_levels: int
) -> np.ndarray:
    """Return the price of the items that the nodes above each level need, each bought once, (n_levels,).

    Node h is above the levels 0 to `level[h]` − 1, so the sets are nested: they shrink as the level rises.
    """
    highest = np.zeros(len(price), np.int64)
    for h in range(len(level)):
        for e in range(start[h], start[h + 1]):
            highest[need[e]] = max(highest[need[e]], level[h])
    # paid[k] is the price of the items bought at levels 0 to k − 1 but not at level k or above.
    paid = np.zeros(n_levels + 1)
    for item in range(len(price)):
        paid[highest[item]] += price[item]
    total = np.zeros(n_levels)
    running = 0.0
    # After step k, running is the price of the items bought at level k.
    for k in range(n_levels - 1, -1, -1):
        running += paid[k + 1]
        total[k] = running
    return total


@kernel
def no_more_than_parent(values: np.ndarray, parent: np.ndarray) -> np.ndarray:
    """Return values lowered to the minimum over their ancestors, (n,).

    The nodes above any level then form a closure.
    """
    lowered = values.copy()
    for h in range(len(parent)):
        if parent[h] != -1:
            lowered[h] = min(lowered[h], lowered[parent[h]])
    return lowered
