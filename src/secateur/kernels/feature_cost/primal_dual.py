"""The dual of feature cost: what each tree pays for an item, moved until no tree wants anything else.

Trees share items (a resource bought for a row). If every tree pays a share of each item it may need, and the shares of
an item add up to its price, trees know nothing of each other: each takes its own best pruning, in one pass from the
leaves up. What they gain together is no less than what any pruning of all trees gains, and shares exist for which it is
no more. Sub-gradient steps lead there: trees that use an item pay more of it, those that do not pay less.
"""

from typing import NamedTuple

import numpy as np

from secateur.kernels._jit import kernel

_EPS = 2.220446049250313e-16
_PATIENCE = 20  # steps without a better bound after which they are halved
_MEMORY = 0.05  # the weight of the latest sets of nodes in their running average, at least


class Shares(NamedTuple):
    """Nodes with profits, parents before children, and what they pay for the items they need.

    Attributes
    ----------
    parent, profit : (n,), (n,) float64
    price : (m,) float64
    start, node : (m + 1,), (n_edges,)
        Item i is needed by the nodes `node[start[i] : start[i + 1]]`.
    share : (n_edges,) float64
        What each of them pays for it.
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
    """Return a set of nodes, an upper bound on what any set gains, and how many steps it took; shares are changed.

    It ends when the bound is above the gain by at most `tolerance` times the objective, `root_errors` less the gain.
    Steps are Polyak's: as long as they would have to be if the best gain found so far were the best there is.
    """
    n = len(shares.parent)
    for i in range(len(shares.price)):
        _scale(shares.share[shares.start[i] : shares.start[i + 1]], shares.price[i])
    rounding = _EPS * (n + 8) * np.abs(shares.profit).sum()
    inside, best = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    average = np.zeros(n)
    gain, bound = 0.0, np.inf  # nothing inside gains nothing
    length, since = 1.0, 0
    for iteration in range(1, max_iterations + 1):
        value = best_apart(shares.parent, left_over(shares), inside) + rounding
        since += 1
        if value < bound:
            bound, since = value, 0
        memory = max(_MEMORY, 1.0 / iteration)
        for h in range(n):
            average[h] += memory * (inside[h] - average[h])
        for rounded in (inside, best_level(shares, average)):
            found = gain_of(shares, rounded)
            if found > gain:
                gain, length = found, 1.0
                best[:] = rounded
        slope = squared_slope(shares, inside)
        if slope == 0 or bound - gain <= tolerance * (root_errors - gain):
            return best, bound, iteration
        if since == _PATIENCE:
            length, since = length / 2, 0
        move_shares(shares, inside, length * (value - gain) / slope)
    return best, bound, max_iterations


@kernel
def best_apart(parent: np.ndarray, profit: np.ndarray, inside: np.ndarray) -> float:
    """Return the most that nodes gain if each needs its parent and nothing else; `inside` gets the smallest such set.

    This is the least-cost pruning of every tree, and the shortest path through its network.
    """
    value = profit.copy()
    total = 0.0
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
def left_over(shares: Shares) -> np.ndarray:
    """Return the profit of each node less its shares, (n,), rounded up."""
    paid = np.zeros(len(shares.parent))
    for e in range(len(shares.node)):
        paid[shares.node[e]] += shares.share[e]
    return shares.profit - (1.0 - _EPS * (len(shares.node) + 16)) * paid


@kernel
def gain_of(shares: Shares, inside: np.ndarray) -> float:
    """Return what a set of nodes gains, each of its items bought once."""
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
    """Return the nodes above the level of `average` above which nodes gain most.

    A node's average is no larger than its parent's, so what is above a level is a pruning; the average gains no more
    than the best of them.
    """
    n = len(average)
    order = np.argsort(-average)
    level = np.zeros(n, np.int64)  # the first place in the order that has the same average
    for k in range(1, n):
        same = average[order[k]] == average[order[k - 1]]
        level[order[k]] = level[order[k - 1]] if same else k
    change = np.zeros(n + 1)  # what is gained when nodes of a level come in
    for h in range(n):
        change[level[h]] += shares.profit[h]
    for i in range(len(shares.price)):
        first = n
        for e in range(shares.start[i], shares.start[i + 1]):
            first = min(first, level[shares.node[e]])
        change[first] -= shares.price[i]
    running, most, last = 0.0, 0.0, -1
    for k in range(n):
        running += change[k]
        complete = k == n - 1 or level[order[k + 1]] == k + 1
        if complete and running > most and average[order[k]] > 0:
            most, last = running, k
    return level <= last


@kernel
def squared_slope(shares: Shares, inside: np.ndarray) -> float:
    """Return the squared length of the sub-gradient, in the directions in which shares can move."""
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
    """Let nodes inside pay `step` more, then go to the nearest shares that add up to the prices."""
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
    """Move x, whose sum is at least `total`, to the nearest point with this sum and no entry below 0.

    All entries above 0 fall by the same. Those that would fall below it are left out and it is asked again by how much:
    there are fewer of them each time.
    """
    n_left, fall = len(x) + 1, 0.0
    for _ in range(len(x)):
        n_above, above = 0, 0.0
        for e in range(len(x)):
            if x[e] > fall:
                n_above += 1
                above += x[e]
        if n_above == 0 or n_above == n_left:
            break
        n_left = n_above
        fall = max(fall, (above - total) / n_above)
    for e in range(len(x)):
        x[e] = max(x[e] - fall, 0.0)
    _scale(x, total)


@kernel
def _scale(x: np.ndarray, total: float) -> None:
    """Make x add up to `total`, but for the rounding of the last digit; equal parts if all of it is 0."""
    present = x.sum()
    for e in range(len(x)):
        x[e] = x[e] * (total / present) if present > 0 else total / len(x)
