"""The whole cost-complexity path of a forest, O(nodes log nodes) whatever the depth.

Let F_v(a) be the least `risk + a * price` of any pruning of the subtree at v. It is concave and piecewise linear
in the penalty a; each of its breakpoints is a split below v that is cut there. Going down from a = infinity every
child of v is a leaf, and each breakpoint passed gives some risk back for some price. The split v itself is cut at
the penalty g (negative if the subtree does harm) where collapsing it starts to win; breakpoints above g never happen,
because v is gone by then. So one max-heap of breakpoints per subtree, merged bottom-up, is enough: each node enters
once and leaves at most once.
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
    """Return for every split the penalty from which on it is cut or gone, +inf at leaves and uncuttable splits.

    `risk[v]` is what v adds to the risk as a leaf; `leaf_price[v]` and `split_price[v]` are what it adds to the
    price as a leaf and as a split.
    """
    n = right.shape[0]
    critical = np.full(n, np.inf)
    gained = np.zeros(n)  # risk that breakpoint v adds on the way up
    saved = np.zeros(n)  # price that breakpoint v saves on the way up
    heap = np.full(n, -1, np.int64)  # heap[v]: the top of the breakpoints below v
    child_a = np.full(n, -1, np.int64)
    child_b = np.full(n, -1, np.int64)
    rank = np.zeros(n, np.int64)
    spine = np.empty(128, np.int64)  # the right spines of a leftist heap are at most log2(n) long

    for v in range(n - 1, -1, -1):
        if right[v] == -1:
            continue
        a, b = v + 1, right[v]
        top = _merge(heap[a], heap[b], critical, child_a, child_b, rank, spine)
        below_risk = risk[a] + risk[b]
        below_price = leaf_price[a] + leaf_price[b] + split_price[v]
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

    for v in range(n):  # a split is gone as soon as an ancestor is cut
        if right[v] != -1 and parent[v] != -1:
            critical[v] = min(critical[v], critical[parent[v]])
    return critical


@kernel
def _crossing(risk: float, below_risk: float, saved_price: float) -> float:
    """Return the penalty at which the risk a collapse adds is worth the price it saves; negative if it adds none.

    A difference that rounding alone can make is none, so that collapses without loss meet at 0.
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

    Walking down takes the larger top each time; walking back hangs the rest below it and restores
    rank[child_a] >= rank[child_b].
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
