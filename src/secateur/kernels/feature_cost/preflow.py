"""A maximum closure of splits and the items they need, by one preflow (Goldberg and Tarjan 1988).

Each node may be taken with its parent and all items it needs; it brings a profit, an item costs a price. Profits flow
from nodes to needed items and to parents, which can always take more, and leave the network where a price or a negative
profit takes them. Profit that cannot leave is what the best closure is worth, and where it could still flow is the
smallest best closure. All numbers are integers, so this is exact.

FIFO push-relabel with labels set anew by breadth-first search; only the first phase, which is all a cut needs.
"""

from typing import NamedTuple

import numpy as np

from secateur.kernels._jit import kernel

UNREACHABLE = 2_000_000_000
"""The label of what cannot reach the exit."""


class Network(NamedTuple):
    """Nodes 0 to n − 1, parents before children, and items n to n + m − 1; edge e says that a node needs an item."""

    parent: np.ndarray
    first_child: np.ndarray
    next_child: np.ndarray
    edge_start: np.ndarray
    edge_item: np.ndarray
    edge_node: np.ndarray
    item_start: np.ndarray
    item_edge: np.ndarray


class Preflow(NamedTuple):
    """What flows: from each node to its parent (up) and to items (flow), what still can leave (room), what waits."""

    excess: np.ndarray
    up: np.ndarray
    flow: np.ndarray
    capacity: np.ndarray
    label: np.ndarray
    current: np.ndarray
    queue: np.ndarray
    queued: np.ndarray


@kernel
def empty_network(n: int, m: int, n_edges: int) -> Network:
    """Return the memory of a network of n nodes and m items."""
    return Network(
        np.empty(n, np.int32),
        np.empty(n, np.int32),
        np.empty(n, np.int32),
        np.empty(n + 1, np.int64),
        np.empty(n_edges, np.int32),
        np.empty(n_edges, np.int32),
        np.empty(m + 1, np.int64),
        np.empty(n_edges, np.int32),
    )


@kernel
def empty_preflow(n: int, m: int, n_edges: int) -> Preflow:
    """Return the memory of a preflow in such a network."""
    return Preflow(
        np.empty(n + m, np.int64),
        np.empty(n, np.int64),
        np.empty(n_edges, np.int64),
        np.empty(n + m, np.int64),
        np.empty(n + m, np.int32),
        np.empty(n + m, np.int32),
        np.empty(n + m, np.int32),
        np.empty(n + m, np.bool_),
    )


@kernel
def saturate(net: Network, pre: Preflow) -> int:
    """Let flow out what can; return how much is left.

    `excess` of nodes and `capacity` of all must be set, everything else 0. Afterwards `queued` marks the smallest best
    closure.
    """
    n_vertices = len(pre.excess)
    fill(net, pre)
    while True:
        relabel_all(net, pre)
        waiting = 0
        for v in range(n_vertices):
            pre.current[v] = 0
            pre.queued[v] = pre.excess[v] > 0 and pre.label[v] < UNREACHABLE
            if pre.queued[v]:
                pre.queue[waiting] = v
                waiting += 1
        if waiting == 0:
            break
        discharge(net, pre, waiting)
    return _mark_closure(net, pre)


@kernel
def _mark_closure(net: Network, pre: Preflow) -> int:
    """Mark what can be reached from where something is left, and return how much that is."""
    n = len(net.parent)
    marked, queue = pre.queued, pre.queue
    left, end = 0, 0
    for v in range(len(marked)):
        marked[v] = pre.excess[v] > 0
        if marked[v]:
            left += pre.excess[v]
            queue[end] = v
            end += 1
    begin = 0
    while begin < end:
        v = queue[begin]
        begin += 1
        if v >= n:
            for q in range(net.item_start[v - n], net.item_start[v - n + 1]):
                e = net.item_edge[q]
                if pre.flow[e] > 0:
                    end = _mark(net.edge_node[e], marked, queue, end)
            continue
        for e in range(net.edge_start[v], net.edge_start[v + 1]):
            end = _mark(n + net.edge_item[e], marked, queue, end)
        if net.parent[v] != -1:
            end = _mark(net.parent[v], marked, queue, end)
        child = net.first_child[v]
        while child != -1:
            if pre.up[child] > 0:
                end = _mark(child, marked, queue, end)
            child = net.next_child[child]
    return left


@kernel
def _mark(v: int, marked: np.ndarray, queue: np.ndarray, end: int) -> int:
    """Mark v and put it into the queue, unless it was there; return where the queue ends."""
    if marked[v]:
        return end
    marked[v] = True
    queue[end] = v
    return end + 1


@kernel
def fill(net: Network, pre: Preflow) -> None:
    """From the leaves up, let each node fill what room its items have, and hand the rest to its parent."""
    n = len(net.parent)
    for v in range(n - 1, -1, -1):
        rest = pre.excess[v]
        if rest == 0:
            continue
        out = min(rest, pre.capacity[v])
        pre.capacity[v] -= out
        rest -= out
        for e in range(net.edge_start[v], net.edge_start[v + 1]):
            if rest == 0:
                break
            item = n + net.edge_item[e]
            out = min(rest, pre.capacity[item])
            pre.flow[e] += out
            pre.capacity[item] -= out
            rest -= out
        if net.parent[v] != -1:
            pre.up[v] += rest
            pre.excess[net.parent[v]] += rest
            rest = 0
        pre.excess[v] = rest


@kernel
def relabel_all(net: Network, pre: Preflow) -> None:
    """Set all labels to the number of steps to the exit, by breadth-first search from there."""
    n = len(net.parent)
    label, queue = pre.label, pre.queue
    end = 0
    for v in range(len(label)):
        label[v] = UNREACHABLE
        if pre.capacity[v] > 0:
            label[v] = 1
            queue[end] = v
            end += 1
    begin = 0
    while begin < end:
        v = queue[begin]
        begin += 1
        step = label[v] + 1
        if v >= n:
            for q in range(net.item_start[v - n], net.item_start[v - n + 1]):
                h = net.edge_node[net.item_edge[q]]
                if label[h] == UNREACHABLE:
                    label[h] = step
                    queue[end] = h
                    end += 1
            continue
        child = net.first_child[v]
        while child != -1:
            if label[child] == UNREACHABLE:
                label[child] = step
                queue[end] = child
                end += 1
            child = net.next_child[child]
        above = net.parent[v]
        if above != -1 and pre.up[v] > 0 and label[above] == UNREACHABLE:
            label[above] = step
            queue[end] = above
            end += 1
        for e in range(net.edge_start[v], net.edge_start[v + 1]):
            item = n + net.edge_item[e]
            if pre.flow[e] > 0 and label[item] == UNREACHABLE:
                label[item] = step
                queue[end] = item
                end += 1


@kernel
def discharge(net: Network, pre: Preflow, waiting: int) -> None:
    """Push what waits towards the exit until nothing does, or it has taken as long as setting all labels anew."""
    n, n_vertices = len(net.parent), len(pre.excess)
    begin, end = 0, waiting % n_vertices
    work, enough = 0, len(net.edge_item) + 4 * n_vertices
    while waiting > 0 and work < enough:
        v = pre.queue[begin]
        begin = (begin + 1) % n_vertices
        waiting -= 1
        pre.queued[v] = False
        while pre.excess[v] > 0 and pre.label[v] < UNREACHABLE:
            if pre.label[v] == 1 and pre.capacity[v] > 0:
                out = min(pre.capacity[v], pre.excess[v])
                pre.capacity[v] -= out
                pre.excess[v] -= out
                continue
            used, target = _push_node(net, pre, v) if v < n else _push_item(net, pre, v)
            work += used
            if target == -1:
                work += _relabel_node(net, pre, v) if v < n else _relabel_item(net, pre, v)
            elif not pre.queued[target] and pre.excess[target] > 0:
                pre.queued[target] = True
                pre.queue[end] = target
                end = (end + 1) % n_vertices
                waiting += 1


@kernel
def _push_node(net: Network, pre: Preflow, v: int) -> tuple[int, int]:
    """Push along the next edge of a node that leads closer to the exit; return the work and where to, −1 for nowhere.

    Edges come in the order items, parent, children; `current` says how many of the items are done with.
    """
    n = len(net.parent)
    label, excess = pre.label, pre.excess
    closer = label[v] - 1
    first = net.edge_start[v]
    degree = net.edge_start[v + 1] - first
    begin = pre.current[v]
    for k in range(begin, degree):
        e = first + k
        item = n + net.edge_item[e]
        if label[item] != closer:
            continue
        if closer == 1:
            if pre.capacity[item] == 0:  # it was filled since labels were set
                _relabel_item(net, pre, item)
                continue
            out = min(pre.capacity[item], excess[v])  # straight out, without a stop at the item
            pre.flow[e] += out
            pre.capacity[item] -= out
            excess[v] -= out
            if excess[v] == 0:
                pre.current[v] = k
                return k - begin + 1, v
            continue
        pre.flow[e] += excess[v]
        excess[item] += excess[v]
        excess[v] = 0
        pre.current[v] = k
        return k - begin + 1, item
    pre.current[v] = degree
    above = net.parent[v]
    if above != -1 and label[above] == closer:
        pre.up[v] += excess[v]
        excess[above] += excess[v]
        excess[v] = 0
        return degree - begin + 1, above
    child = net.first_child[v]
    while child != -1:
        if pre.up[child] > 0 and label[child] == closer:
            out = min(pre.up[child], excess[v])
            pre.up[child] -= out
            excess[child] += out
            excess[v] -= out
            return degree - begin + 2, child
        child = net.next_child[child]
    return degree - begin + 2, -1


@kernel
def _push_item(net: Network, pre: Preflow, v: int) -> tuple[int, int]:
    """Push back along the next edge of an item that leads closer to the exit; return the work and where to."""
    item = v - len(net.parent)
    closer = pre.label[v] - 1
    first = net.item_start[item]
    begin = pre.current[v]
    for k in range(begin, net.item_start[item + 1] - first):
        e = net.item_edge[first + k]
        h = net.edge_node[e]
        if pre.flow[e] > 0 and pre.label[h] == closer:
            out = min(pre.flow[e], pre.excess[v])
            pre.flow[e] -= out
            pre.excess[h] += out
            pre.excess[v] -= out
            pre.current[v] = k
            return k - begin + 1, h
    pre.current[v] = net.item_start[item + 1] - first
    return pre.current[v] - begin + 1, -1


@kernel
def _relabel_node(net: Network, pre: Preflow, v: int) -> int:
    """Set the label of a node to one more than the lowest it can push to; return the work."""
    n, label = len(net.parent), pre.label
    lowest = 0 if pre.capacity[v] > 0 else UNREACHABLE
    for e in range(net.edge_start[v], net.edge_start[v + 1]):
        lowest = min(lowest, label[n + net.edge_item[e]])
    if net.parent[v] != -1:
        lowest = min(lowest, label[net.parent[v]])
    child = net.first_child[v]
    while child != -1:
        if pre.up[child] > 0:
            lowest = min(lowest, label[child])
        child = net.next_child[child]
    _set_label(pre, v, lowest)
    return net.edge_start[v + 1] - net.edge_start[v] + 2


@kernel
def _relabel_item(net: Network, pre: Preflow, v: int) -> int:
    """Set the label of an item to one more than the lowest it can push back to; return the work."""
    item = v - len(net.parent)
    lowest = 0 if pre.capacity[v] > 0 else UNREACHABLE
    for q in range(net.item_start[item], net.item_start[item + 1]):
        e = net.item_edge[q]
        if pre.flow[e] > 0:
            lowest = min(lowest, pre.label[net.edge_node[e]])
    _set_label(pre, v, lowest)
    return net.item_start[item + 1] - net.item_start[item]


@kernel
def _set_label(pre: Preflow, v: int, lowest: int) -> None:
    """Label a vertex above the lowest it can push to; no way to the exit is as long as there are vertices."""
    pre.current[v] = 0
    pre.label[v] = lowest + 1 if lowest < len(pre.label) else UNREACHABLE
