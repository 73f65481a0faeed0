"""Compute the critical penalty of every split on the cost-complexity path, O(nodes log nodes) for any depth.

Let F_v(a) be the minimum of `risk + a * price` over all prunings of the subtree at v. It is concave and piecewise
linear in the penalty a, and each breakpoint is the critical penalty of a split below v. At a = infinity every child of
v is a leaf. As a decreases, each breakpoint restores a split, which lowers the risk and raises the price. The split v
itself becomes a leaf at the penalty g at which collapsing it is no worse; g is negative if the subtree increases the
risk. Breakpoints above g are irrelevant, because v is a leaf there. One max-heap of breakpoints per subtree, merged
bottom-up, is therefore enough: each node enters a heap once and leaves it at most once.

References
----------
L. Breiman, J. H. Friedman, R. A. Olshen and C. J. Stone (1984). Classification and Regression Trees, chapter 3.
Wadsworth.
"""

import numpy as np

from secateur.kernels._jit import kernel

_ROUNDING = 1e-14


@kernel
def weakest_link(
    parent: np.ndarray,
    right: np.ndarray,
    risk: np.ndarray,
    leaf_price: np.ndarray,
    split_price: np.ndarray,
) -> np.ndarray:
    """Return the smallest penalty at which each split is absent, +inf at leaves and splits that are never cut.

    `risk[v]` is the contribution of v to the risk as a leaf. `leaf_price[v]` and `split_price[v]` are its contributions
    to the price as a leaf and as a split.
    """
    n = right.shape[0]
    critical = np.full(n, np.inf)
    # Increase in risk and decrease in price when the penalty rises past the breakpoint of v.
    gained = np.zeros(n)
    saved = np.zeros(n)
    # heap[v] is the top of the heap of breakpoints at or below v.
    heap = np.full(n, -1, np.int64)
    child_a = np.full(n, -1, np.int64)
    child_b = np.full(n, -1, np.int64)
    rank = np.zeros(n, np.int64)
    # The right spine of a leftist heap has at most log2(n) nodes, so two of them fit.
    spine = np.empty(128, np.int64)

    # Invariant: the heaps of all nodes after v are final. heap[u] holds the breakpoints of F_u.
    for v in range(n - 1, -1, -1):
        if right[v] == -1:
            continue
        a, b = v + 1, right[v]
        top = _merge(heap[a], heap[b], critical, child_a, child_b, rank, spine)
        below_risk = risk[a] + risk[b]
        below_price = leaf_price[a] + leaf_price[b] + split_price[v]
        # Invariant: `below_risk` and `below_price` belong to the optimal pruning of the children just above the
        # penalty critical[top].
        while True:
            g = _crossing(risk[v], below_risk, below_price - leaf_price[v])
            if top == -1 or g >= critical[top]:
                break
            below_risk -= gained[top]
            below_price += saved[top]
            top = _merge(child_a[top], child_b[top], critical, child_a, child_b, rank, spine)
        critical[v] = g
        gained[v] = risk[v] - below_risk
        saved[v] = below_price - leaf_price[v]
        child_a[v], child_b[v], rank[v] = -1, -1, 1
        heap[v] = _merge(v, top, critical, child_a, child_b, rank, spine)

    # A split is absent as soon as one of its ancestors is cut.
    for v in range(n):
        if right[v] != -1 and parent[v] != -1:
            critical[v] = min(critical[v], critical[parent[v]])
    return critical


@kernel
def _crossing(risk: float, below_risk: float, saved_price: float) -> float:
    """Return the penalty at which a collapse breaks even: added risk over saved price; negative if the risk falls.

    Differences within rounding error count as zero, so that all collapses without loss have the critical penalty 0.
    """
    more = risk - below_risk
    if abs(more) <= _ROUNDING * risk:
        more = 0.0
    if saved_price <= 0.0:
        return np.inf if more > 0.0 else 0.0
    return more / saved_price


@kernel
def _merge(
    a: int,
    b: int,
    key: np.ndarray,
    child_a: np.ndarray,
    child_b: np.ndarray,
    rank: np.ndarray,
    spine: np.ndarray,
) -> int:
    """Merge two leftist max-heaps and return the new top.

    The first loop walks down the right spines and takes the larger top each time. The second loop walks back, attaches
    the merged rest, and restores rank[child_a] >= rank[child_b].
    """
    length = 0
    while a != -1 and b != -1:
        if key[a] < key[b]:
            a, b = b, a
        spine[length] = a
        length += 1
        a = child_b[a]
    top = a if b == -1 else b
    for i in range(length - 1, -1, -1):
        node = spine[i]
        child_b[node] = top
        rank_a = rank[child_a[node]] if child_a[node] != -1 else 0
        rank_b = rank[top] if top != -1 else 0
        if rank_a < rank_b:
            child_a[node], child_b[node] = top, child_a[node]
            rank_a, rank_b = rank_b, rank_a
        rank[node] = rank_b + 1
        top = node
    return top
