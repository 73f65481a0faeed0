"""Compute the maximum closures of splits and items at every penalty: one critical penalty per split.

At a penalty L the value of a closure is its profit less L times its price. The smallest maximum closures are nested:
they shrink as L grows. The path is found by divide and conquer. A segment is the difference of two nested maximum
closures; the first is the difference of everything and nothing. Solve the segment at the L where its total value is 0.
If no closure has a positive value, L is the critical penalty of all its nodes. Otherwise the nodes of the maximum
closure have larger critical penalties and the rest smaller ones: two smaller, independent segments. B critical
penalties take 2 B − 1 closures. All arithmetic is in integers, so the result is exact.
"""

import numpy as np

from secateur.kernels._jit import kernel
from secateur.kernels.feature_cost.preflow import Network, Preflow, empty_network, empty_preflow, saturate


@kernel
def profitable_splits(parent: np.ndarray, profit: np.ndarray) -> np.ndarray:
    """Return which splits are in the smallest maximum closure at penalty 0, (n_splits,).

    `parent` numbers splits, parents before children.
    """
    value = profit.copy()
    # When h is visited, value[h] is the value of the best closure of the subtree at h that contains h.
    for h in range(len(parent) - 1, -1, -1):
        if parent[h] != -1 and value[h] > 0:
            value[parent[h]] += value[h]
    inside = np.zeros(len(parent), np.bool_)
    for h in range(len(parent)):
        inside[h] = value[h] > 0 and (parent[h] == -1 or inside[parent[h]])
    return inside


@kernel
def inseparable(parent: np.ndarray, profit: np.ndarray, n_needs: np.ndarray) -> np.ndarray:
    """Return for each split the highest split together with which it is always kept or removed, (n_splits,).

    A split that needs no items and has positive profit is kept whenever its parent is. A split without positive
    profit is kept only if its only child is.
    """
    n = len(parent)
    head = np.empty(n, np.int64)
    for h in range(n):
        head[h] = h
    total = profit.copy()
    n_children = np.zeros(n, np.int64)
    # First pass: merge free profitable splits into their parents.
    for h in range(n):
        if parent[h] != -1:
            above = head[parent[h]]
            if n_needs[h] == 0 and profit[h] > 0:
                head[h] = above
                total[above] += profit[h]
            else:
                n_children[above] += 1
    # Second pass: merge an only child into a parent without profit. Invariant: head[g] is final for all g < h.
    for h in range(n):
        if parent[h] == -1:
            continue
        above = head[parent[h]]
        if head[h] != h:
            head[h] = head[head[h]]
        elif n_children[above] == 1 and total[above] <= 0:
            head[h] = above
            total[above] += total[h]
            n_children[above] = n_children[h]
    return head


@kernel
def closure_path(
    parent: np.ndarray,
    profit: np.ndarray,
    price: np.ndarray,
    start: np.ndarray,
    need: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the critical penalty of each node as a fraction (numerator, denominator), and counts.

    From its critical penalty on, a node is not in the smallest maximum closure. Nodes that need nothing are never
    removed; their critical penalty is 1 over 0. The counts are the number of closures computed, of segments that
    leave as a whole, and of edges in all networks.

    Parameters
    ----------
    parent : (n,)
        Parents come before children.
    profit : (n,) int64
        All nodes together are a maximum closure at penalty 0.
    price : (m,) int64
        Positive. Σ |profit| · Σ price must be below 2⁶².
    start, need : (n + 1,), (n_edges,)
        Node h needs the items `need[start[h] : start[h + 1]]`.
    """
    n, m, n_edges = len(parent), len(price), len(need)
    numerator, denominator = np.ones(n, np.int64), np.zeros(n, np.int64)
    counts = np.zeros(3, np.int64)
    # Loops, not array expressions, which take seconds to compile.
    nodes, items, edges = np.empty(n, np.int32), np.empty(m, np.int32), need.copy()
    degree, local_node, local_item = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(m, np.int32)
    for q in range(n):
        nodes[q], degree[q], local_node[q] = q, start[q + 1] - start[q], -1
    for q in range(m):
        items[q], local_item[q] = q, -1
    net, pre = empty_network(n, m, n_edges), empty_preflow(n, m, n_edges)
    # Pending segments: the ranges of their nodes, items and edges.
    stack = np.empty((n + 2, 6), np.int64)
    _put(stack, 0, 0, n, 0, m, 0, n_edges)
    n_left = 1 if n > 0 else 0
    # Invariant: the segments on the stack are disjoint. Each is the difference of two nested maximum closures, stored
    # as a range of `nodes`, `items` and `edges`. Nodes in no segment have their critical penalty.
    while n_left > 0:
        n_left -= 1
        n0, n1, i0 = stack[n_left, 0], stack[n_left, 1], stack[n_left, 2]
        i1, e0, e1 = stack[n_left, 3], stack[n_left, 4], stack[n_left, 5]
        gain, cost = 0, 0
        for q in range(n0, n1):
            gain += profit[nodes[q]]
        for q in range(i0, i1):
            cost += price[items[q]]
        if cost == 0:
            counts[1] += 1
            continue
        # Solve at L = gain / cost, scaled by cost / gcd so that all values are integers.
        divisor = _gcd(gain, cost)
        segment = network_of(
            net, nodes[n0:n1], items[i0:i1], edges[e0:e1], degree[n0:n1], parent, local_node, local_item
        )
        flows = _preflow_of(pre, n1 - n0, i1 - i0, e1 - e0)
        for q in range(n1 - n0):
            value = profit[nodes[n0 + q]] * (cost // divisor)
            flows.excess[q] = max(value, 0)
            flows.capacity[q] = max(-value, 0)
        for q in range(i1 - i0):
            flows.capacity[n1 - n0 + q] = price[items[i0 + q]] * (gain // divisor)
        excess = saturate(segment, flows)
        counts[0] += 1
        counts[2] += e1 - e0
        if excess == 0:
            counts[1] += 1
            for q in range(n0, n1):
                numerator[nodes[q]], denominator[nodes[q]] = gain // divisor, cost // divisor
            continue
        a, b, c, d = _partition(segment, flows.queued, nodes[n0:n1], items[i0:i1], edges[e0:e1], degree[n0:n1])
        _put(stack, n_left, n0, n0 + a, i0, i0 + b, e0, e0 + c)
        _put(stack, n_left + 1, n0 + a, n1, i0 + b, i1, e0 + c, e0 + d)
        n_left += 2
    return numerator, denominator, counts


@kernel
def _put(stack: np.ndarray, at: int, n0: int, n1: int, i0: int, i1: int, e0: int, e1: int) -> None:
    """Write a segment to the stack: where its nodes, items and edges begin and end."""
    stack[at, 0], stack[at, 1], stack[at, 2] = n0, n1, i0
    stack[at, 3], stack[at, 4], stack[at, 5] = i1, e0, e1


@kernel
def _gcd(a: int, b: int) -> int:
    """Return the greatest common divisor."""
    while b:
        a, b = b, a % b
    return a


@kernel
def network_of(
    net: Network,
    nodes: np.ndarray,
    items: np.ndarray,
    edges: np.ndarray,
    degree: np.ndarray,
    parent: np.ndarray,
    local_node: np.ndarray,
    local_item: np.ndarray,
) -> Network:
    """Return the network of a segment, in the buffers of `net`.

    Parents outside the segment are already in the closure, so their arcs are dropped.
    """
    n, m, n_edges = len(nodes), len(items), len(edges)
    segment = Network(
        net.parent[:n],
        net.first_child[:n],
        net.next_child[:n],
        net.edge_start[: n + 1],
        net.edge_item[:n_edges],
        net.edge_node[:n_edges],
        net.item_start[: m + 1],
        net.item_edge[:n_edges],
    )
    for q in range(n):
        local_node[nodes[q]] = q
        segment.first_child[q] = -1
    for q in range(m):
        local_item[items[q]] = q
    segment.edge_start[0] = 0
    for q in range(m + 1):
        segment.item_start[q] = 0
    for q in range(n):
        above = parent[nodes[q]]
        above = local_node[above] if above != -1 else -1
        segment.parent[q] = above
        if above != -1:
            segment.next_child[q] = segment.first_child[above]
            segment.first_child[above] = q
        segment.edge_start[q + 1] = segment.edge_start[q] + degree[q]
        for e in range(segment.edge_start[q], segment.edge_start[q + 1]):
            item = local_item[edges[e]]
            segment.edge_item[e] = item
            segment.edge_node[e] = q
            segment.item_start[item + 1] += 1
    for q in range(m):
        segment.item_start[q + 1] += segment.item_start[q]
    # Counting sort of the edges by item. Afterwards entry q + 1 has the start of item q, so starts are shifted by one.
    for e in range(n_edges - 1, -1, -1):
        item = segment.edge_item[e]
        segment.item_start[item + 1] -= 1
        segment.item_edge[segment.item_start[item + 1]] = e
    for q in range(m):
        segment.item_start[q] = segment.item_start[q + 1]
    segment.item_start[m] = n_edges
    for q in range(n):
        local_node[nodes[q]] = -1
    return segment


@kernel
def _preflow_of(pre: Preflow, n: int, m: int, n_edges: int) -> Preflow:
    """Return an empty preflow for a segment, in the buffers of `pre`."""
    segment = Preflow(
        pre.excess[: n + m],
        pre.up[:n],
        pre.flow[:n_edges],
        pre.capacity[: n + m],
        pre.label[: n + m],
        pre.current[: n + m],
        pre.queue[: n + m],
        pre.queued[: n + m],
    )
    for v in range(n + m):
        segment.excess[v] = 0
    for v in range(n):
        segment.up[v] = 0
    for e in range(n_edges):
        segment.flow[e] = 0
    return segment


@kernel
def _partition(
    net: Network,
    inside: np.ndarray,
    nodes: np.ndarray,
    items: np.ndarray,
    edges: np.ndarray,
    degree: np.ndarray,
) -> tuple[int, int, int, int]:
    """Move the maximum closure of a segment to its front.

    Return the numbers of nodes, items and edges of the closure, and the number of all remaining edges. The closure
    pays for its items, so edges from the rest to these items are dropped.
    """
    n, m = len(nodes), len(items)
    old_nodes, old_items, old_edges = nodes.copy(), items.copy(), edges.copy()
    n_items, first_items = 0, 0
    n_nodes, first_nodes = 0, 0
    n_edges, first_edges = 0, 0
    for front in (True, False):
        for q in range(m):
            if inside[n + q] == front:
                items[n_items] = old_items[q]
                n_items += 1
        for q in range(n):
            if inside[q] != front:
                continue
            nodes[n_nodes] = old_nodes[q]
            degree[n_nodes] = 0
            for e in range(net.edge_start[q], net.edge_start[q + 1]):
                if front or not inside[n + net.edge_item[e]]:
                    edges[n_edges] = old_edges[e]
                    n_edges += 1
                    degree[n_nodes] += 1
            n_nodes += 1
        if front:
            first_items, first_nodes, first_edges = n_items, n_nodes, n_edges
    return first_nodes, first_items, first_edges, n_edges
