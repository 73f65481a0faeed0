"""Compute a maximum closure of splits and items by the push-relabel algorithm of Goldberg and Tarjan (1988).

A node can be taken only together with its parent and all items it needs; it has a profit, an item has a price. Profit
flows from nodes to the items they need and to their parents, over arcs of infinite capacity. It leaves the network to
the sink through items, up to their price, and through nodes of negative profit. The excess that cannot reach the sink
is the value of the maximum closure. The vertices that this excess reaches in the residual network are the smallest
maximum closure. All numbers are integers, so the result is exact.

The variant is FIFO push-relabel with global relabelling by breadth-first search. Only the first phase is run, which
suffices for a minimum cut.

References
----------
Goldberg, Tarjan (1988): A New Approach to the Maximum-Flow Problem. Journal of the ACM 35(4).
"""

from typing import NamedTuple

import numpy as np

from secateur.kernels._jit import kernel

UNREACHABLE = 2_000_000_000
"""The label of vertices that cannot reach the sink."""


class Network(NamedTuple):
    """A closure network: nodes 0 to n − 1, parents before children, and items n to n + m − 1.

    Attributes
    ----------
    parent, first_child, next_child : (n,)
        The forest of nodes, −1 for none.
    edge_start, edge_item : (n + 1,), (n_edges,)
        Node v needs the items `edge_item[edge_start[v] : edge_start[v + 1]]`, counted from 0.
    edge_node : (n_edges,)
        The node of each edge.
    item_start, item_edge : (m + 1,), (n_edges,)
        The edges of item i are `item_edge[item_start[i] : item_start[i + 1]]`.
    """

    parent: np.ndarray
    first_child: np.ndarray
    next_child: np.ndarray
    edge_start: np.ndarray
    edge_item: np.ndarray
    edge_node: np.ndarray
    item_start: np.ndarray
    item_edge: np.ndarray


class Preflow(NamedTuple):
    """A preflow in a network, and the buffers of the algorithm.

    Attributes
    ----------
    excess : (n + m,)
        Inflow less outflow.
    up : (n,)
        The flow from each node to its parent.
    flow : (n_edges,)
        The flow from nodes to items.
    capacity : (n + m,)
        The residual capacity to the sink.
    label : (n + m,)
        A lower bound on the distance to the sink in the residual network.
    current : (n + m,)
        The number of edges that need no longer be scanned at this label.
    queue, queued : (n + m,)
        The FIFO queue of active vertices, and whether each is in it.
    """

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
    """Allocate the buffers of a network of n nodes and m items."""
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
    """Allocate the buffers of a preflow in such a network."""
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
    """Compute a maximum preflow; return the excess that cannot reach the sink, the value of the maximum closure.

    On entry `excess` of the nodes and `capacity` of all vertices are set, and all flows are 0. On return `queued`
    marks the smallest maximum closure.
    """
    n_vertices = len(pre.excess)
    fill(net, pre)
    # Invariant: excess ≥ 0 everywhere, and labels are lower bounds on the distance to the sink. The loop ends when no
    # vertex with excess can reach the sink.
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
    """Mark the vertices reachable from remaining excess in the residual network; return the total excess."""
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
    """Mark v and append it to the queue unless it is marked; return the end of the queue."""
    if marked[v]:
        return end
    marked[v] = True
    queue[end] = v
    return end + 1


@kernel
def fill(net: Network, pre: Preflow) -> None:
    """Initialise the flow bottom-up: each node saturates its own items and sends the rest to its parent."""
    n = len(net.parent)
    # Children come after parents: when v is visited, its excess includes the flow from all its children.
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
    """Set all labels to exact distances to the sink, by breadth-first search in the reverse residual network."""
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
    """Push excess towards the sink until no vertex is active, or the work equals that of a global relabelling."""
    n, n_vertices = len(net.parent), len(pre.excess)
    begin, end = 0, waiting % n_vertices
    work, enough = 0, len(net.edge_item) + 4 * n_vertices
    # Invariant: the queue is a ring buffer with all active vertices, `waiting` of them from position `begin` on.
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
    """Push along the next admissible arc of a node; return the work and the target, −1 for none.

    Arcs are scanned in the order items, parent, children; `current` is the number of items already scanned. The
    target is the node itself if its excess went to the sink through items.
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
            # The item was saturated after its label was set.
            if pre.capacity[item] == 0:
                _relabel_item(net, pre, item)
                continue
            # Push through the item to the sink at once.
            out = min(pre.capacity[item], excess[v])
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
    """Push back along the next admissible arc of an item; return the work and the target, −1 for none."""
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
    """Set the label of a node to one more than the lowest label it can push to; return the work."""
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
    """Set the label of an item to one more than the lowest label it can push back to; return the work."""
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
    """Set a label to `lowest` + 1 and restart the arc scan.

    A distance to the sink cannot exceed the number of vertices; beyond it the vertex cannot reach the sink.
    """
    pre.current[v] = 0
    pre.label[v] = lowest + 1 if lowest < len(pre.label) else UNREACHABLE
