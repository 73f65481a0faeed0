"""One best closure of splits and items, and what nested closures pay: what a part of the rows is asked again and again.

The structure is that of `closure_path`; profits may have been moved between parts, so they may have any sign.
"""

import numpy as np

from secateur.kernels._jit import kernel
from secateur.kernels.feature_cost.closure_path import network_of
from secateur.kernels.feature_cost.preflow import empty_network, empty_preflow, saturate


@kernel
def best_closure(
    parent: np.ndarray, profit: np.ndarray, price: np.ndarray, start: np.ndarray, need: np.ndarray
) -> tuple[int, np.ndarray]:
    """Return the most that a closure is worth, and which nodes are in the smallest that is worth so much, (n,).

    Parameters
    ----------
    parent : (n,)
        Parents come before children.
    profit : (n,) int64
        Of any sign; those above 0 must add up to less than 2⁶³.
    price : (m,) int64
        Not negative.
    start, need : (n + 1,), (n_edges,)
        The items that node h needs are `need[start[h] : start[h + 1]]`.
    """
    n, m, n_edges = len(parent), len(price), len(need)
    memory, pre = empty_network(n, m, n_edges), empty_preflow(n, m, n_edges)
    nodes, items = np.arange(n).astype(np.int32), np.arange(m).astype(np.int32)
    degree = np.diff(start).astype(np.int32)
    numbers = np.full(n, -1, np.int32), np.full(m, -1, np.int32)
    net = network_of(memory, nodes, items, need, degree, parent, numbers[0], numbers[1])
    pre.excess[:], pre.up[:], pre.flow[:] = 0, 0, 0
    for h in range(n):
        pre.excess[h] = max(profit[h], 0)
        pre.capacity[h] = max(-profit[h], 0)
    pre.capacity[n:] = price
    left = saturate(net, pre)
    return left, pre.queued[:n].copy()


@kernel
def cost_of_levels(
    level: np.ndarray, price: np.ndarray, start: np.ndarray, need: np.ndarray, n_levels: int
) -> np.ndarray:
    """Return what the nodes above each level pay for the items they need, each bought once, (n_levels,).

    Node h is above the levels 0 to `level[h]` − 1, so what is above a level is above those before it.
    """
    highest = np.zeros(len(price), np.int64)
    for h in range(len(level)):
        for e in range(start[h], start[h + 1]):
            highest[need[e]] = max(highest[need[e]], level[h])
    paid = np.zeros(n_levels + 1)  # paid[k]: what is bought above all levels before k, and not above k
    for item in range(len(price)):
        paid[highest[item]] += price[item]
    total = np.zeros(n_levels)
    running = 0.0
    for k in range(n_levels - 1, -1, -1):
        running += paid[k + 1]
        total[k] = running
    return total


@kernel
def no_more_than_parent(values: np.ndarray, parent: np.ndarray) -> np.ndarray:
    """Return values lowered to the lowest above them, (n,), so that the nodes above any level are a closure."""
    lowered = values.copy()
    for h in range(len(parent)):
        if parent[h] != -1:
            lowered[h] = min(lowered[h], lowered[parent[h]])
    return lowered
