"""Maximise the Lagrangian dual of pruning under feature cost by projected subgradient steps on price shares.

Trees share items (a resource bought for a row). If each tree pays a share of every item it may need, and the shares of
an item sum to its price, the problem separates: one bottom-up pass finds the best pruning of each tree. The trees'
total gain is an upper bound on the gain of every joint pruning, and some shares attain it. A subgradient step moves
shares towards the trees that use an item and away from those that do not. The shares are the dual variables β of
eq. (10) of Dercksen (2017).

References
----------
Nan, Wang, Saligrama (2016): Pruning Random Forests for Prediction on a Budget. arXiv:1606.05060.
Dercksen (2017): Exploring the Impact of BudgetPrune on Apache Spark Random Forest Performance. BSc thesis, Radboud
University Nijmegen.
"""

from typing import NamedTuple

import numpy as np

from secateur.kernels._jit import kernel

_EPS = 2.220446049250313e-16
_PATIENCE = 20
"""Steps without a better bound after which the step length is halved."""
_MEMORY = 0.05
"""Minimum weight of the latest prunings in their running average."""


class Shares(NamedTuple):
    """Nodes with profits, parents before children, and their shares of the prices of the items they need.

    Attributes
    ----------
    parent, profit : (n,), (n,) float64
    price : (m,) float64
    start, node : (m + 1,), (n_edges,)
        Item i is needed by the nodes `node[start[i] : start[i + 1]]`.
    share : (n_edges,) float64
        The part of the price that each of them pays.
    """

    parent: np.ndarray
    profit: np.ndarray
    price: np.ndarray
    start: np.ndarray
    node: np.ndarray
    share: np.ndarray


@kernel
def share_prices(
    shares: Shares, root_errors: float, tolerance: float, max_iterations: int
) -> tuple[np.ndarray, float, int]:
    """Return the best set of nodes found, an upper bound on the gain of any set, and the number of steps.

    Shares are updated in place. The loop stops when the bound exceeds the gain by at most `tolerance` times the
    objective, which is `root_errors` less the gain. The step length is Polyak's, with the best gain found as the
    target value.
    """
    n = len(shares.parent)
    for i in range(len(shares.price)):
        _scale(shares.share[shares.start[i] : shares.start[i + 1]], shares.price[i])
    rounding = _EPS * (n + 8) * np.abs(shares.profit).sum()
    inside, best = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    average = np.zeros(n)
    # The empty set has gain 0.
    gain, bound = 0.0, np.inf
    length, stalled = 1.0, 0
    # Invariant: gain = gain_of(best) ≤ optimum ≤ bound, and the shares of each item sum to its price.
    for iteration in range(1, max_iterations + 1):
        value = best_subtrees(shares.parent, net_profit(shares), inside) + rounding
        stalled += 1
        if value < bound:
            bound, stalled = value, 0
        weight = max(_MEMORY, 1.0 / iteration)
        for h in range(n):
            average[h] += weight * (inside[h] - average[h])
        for rounded in (inside, best_level(shares, average)):
            found = gain_of(shares, rounded)
            if found > gain:
                gain, length = found, 1.0
                best[:] = rounded
        squared_norm = squared_subgradient(shares, inside)
        if squared_norm == 0 or bound - gain <= tolerance * (root_errors - gain):
            return best, bound, iteration
        if stalled == _PATIENCE:
            length, stalled = length / 2, 0
        move_shares(shares, inside, length * (value - gain) / squared_norm)
    return best, bound, max_iterations


@kernel
def best_subtrees(parent: np.ndarray, profit: np.ndarray, inside: np.ndarray) -> float:
    """Return the largest gain if each node requires only its parent.

    `inside` receives the smallest set that attains it. This is the least-cost pruning of every tree, and the shortest
    path through its network.
    """
    value = profit.copy()
    total = 0.0
    # When h is visited, value[h] is the gain of the best subtree at h that contains h: children come after parents.
    for h in range(len(parent) - 1, -1, -1):
        if value[h] > 0:
            if parent[h] == -1:
                total += value[h]
            else:
                value[parent[h]] += value[h]
    for h in range(len(parent)):
        inside[h] = value[h] > 0 and (parent[h] == -1 or inside[parent[h]])
    return total


@kernel
def net_profit(shares: Shares) -> np.ndarray:
    """Return the profit of each node less its shares, (n,), rounded up."""
    paid = np.zeros(len(shares.parent))
    for e in range(len(shares.node)):
        paid[shares.node[e]] += shares.share[e]
    return shares.profit - (1.0 - _EPS * (len(shares.node) + 16)) * paid


@kernel
def gain_of(shares: Shares, inside: np.ndarray) -> float:
    """Return the gain of a set of nodes, with each of its items bought once."""
    total = 0.0
    for h in range(len(shares.parent)):
        if inside[h]:
            total += shares.profit[h]
    for i in range(len(shares.price)):
        for e in range(shares.start[i], shares.start[i + 1]):
            if inside[shares.node[e]]:
                total -= shares.price[i]
                break
    return total


@kernel
def best_level(shares: Shares, average: np.ndarray) -> np.ndarray:
    """Return the set of nodes above a threshold on `average` that has the largest gain.

    The average of a node is at most that of its parent, so every threshold gives a pruning. The gain of `average` is at
    most that of the best threshold.
    """
    n = len(average)
    order = np.argsort(-average)
    # level[h] is the first position in the order with the same average as h.
    level = np.zeros(n, np.int64)
    for k in range(1, n):
        same = average[order[k]] == average[order[k - 1]]
        level[order[k]] = level[order[k - 1]] if same else k
    # change[k] is the gain of adding the nodes of level k to those of the levels before.
    change = np.zeros(n + 1)
    for h in range(n):
        change[level[h]] += shares.profit[h]
    for i in range(len(shares.price)):
        first = n
        for e in range(shares.start[i], shares.start[i + 1]):
            first = min(first, level[shares.node[e]])
        change[first] -= shares.price[i]
    running, best_gain, last = 0.0, 0.0, -1
    for k in range(n):
        running += change[k]
        complete = k == n - 1 or level[order[k + 1]] == k + 1
        if complete and running > best_gain and average[order[k]] > 0:
            best_gain, last = running, k
    return level <= last


@kernel
def squared_subgradient(shares: Shares, inside: np.ndarray) -> float:
    """Return the squared norm of the subgradient, restricted to the directions in which shares can move."""
    total = 0.0
    for i in range(len(shares.price)):
        users, payers = 0, 0
        for e in range(shares.start[i], shares.start[i + 1]):
            if inside[shares.node[e]]:
                users += 1
            elif shares.share[e] > 0:
                payers += 1
        if payers > 0:
            total += users * payers / (users + payers)
    return total


@kernel
def move_shares(shares: Shares, inside: np.ndarray, step: float) -> None:
    """Raise the shares of the nodes inside by `step`, then project the shares of each item onto its simplex."""
    for i in range(len(shares.price)):
        a, b = shares.start[i], shares.start[i + 1]
        users = 0
        for e in range(a, b):
            users += inside[shares.node[e]]
        if 0 < users < b - a:
            for e in range(a, b):
                if inside[shares.node[e]]:
                    shares.share[e] += step
            project_simplex(shares.share[a:b], shares.price[i])


@kernel
def project_simplex(x: np.ndarray, total: float) -> None:
    """Project x, whose sum is at least `total`, onto the nonnegative vectors with sum `total`.

    All positive entries fall by the same amount. Entries that would become negative are set to 0, and the amount is
    computed again from the rest. The number of positive entries decreases in every round, so the loop ends.
    """
    n_left, decrease = len(x) + 1, 0.0
    for _ in range(len(x)):
        n_above, above = 0, 0.0
        for e in range(len(x)):
            if x[e] > decrease:
                n_above += 1
                above += x[e]
        if n_above == 0 or n_above == n_left:
            break
        n_left = n_above
        decrease = max(decrease, (above - total) / n_above)
    for e in range(len(x)):
        x[e] = max(x[e] - decrease, 0.0)
    _scale(x, total)


@kernel
def _scale(x: np.ndarray, total: float) -> None:
    """Rescale x to the sum `total`, up to rounding; equal entries if x is 0."""
    present = x.sum()
    for e in range(len(x)):
        x[e] = x[e] * (total / present) if present > 0 else total / len(x)
