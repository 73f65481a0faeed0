"""Find the resources that rows need, and the splits at which each is first needed.

A *resource* is a feature with its own price, or the shared price of a group of features. `resources` (n_features, 2)
lists what a feature needs, −1 for nothing. A row buys a resource once, at the first split of any tree that tests it.
"""

import numpy as np

from secateur.kernels._jit import kernel

_BLOCK = 64
"""Rows processed together, so that the leaves of a tree are read contiguously."""


@kernel
def cost_of_points(
    leaves: np.ndarray,
    tree_start: np.ndarray,
    parent: np.ndarray,
    feature: np.ndarray,
    until: np.ndarray,
    resources: np.ndarray,
    prices: np.ndarray,
    weight: np.ndarray,
    n_points: int,
) -> np.ndarray:
    """Return the total price that all rows pay at each point of a path, (n_points,).

    `until` (n_nodes,) is the first point at which a node is not a split, 0 for one that never is. `prices` has one
    row per row, or one for all, and a column per resource.
    """
    n_trees, n_rows = leaves.shape
    n_resources = prices.shape[1]
    # paid[p] is the price of what is bought at all points before p and at none from p on.
    paid = np.zeros(n_points + 1)
    last = np.zeros((_BLOCK, n_resources), np.int32)
    for first in range(0, n_rows, _BLOCK):
        n_here = min(_BLOCK, n_rows - first)
        for tree in range(n_trees):
            for j in range(n_here):
                leaf = tree_start[tree] + leaves[tree, first + j]
                _note_needs(leaf, parent, feature, until, resources, last[j])
        for j in range(n_here):
            i = first + j
            for resource in range(n_resources):
                price = prices[i if prices.shape[0] > 1 else 0, resource]
                paid[last[j, resource]] += weight[i] * price
                last[j, resource] = 0
    total = np.zeros(n_points)
    running = 0.0
    # After each step, running is the price of what is bought at `point`.
    for point in range(n_points - 1, -1, -1):
        running += paid[point + 1]
        total[point] = running
    return total


@kernel
def needed_until(
    leaves: np.ndarray,
    tree_start: np.ndarray,
    parent: np.ndarray,
    feature: np.ndarray,
    until: np.ndarray,
    resources: np.ndarray,
    n_resources: int,
) -> np.ndarray:
    """Return the first point at which each row no longer needs each resource, (n_rows, n_resources).

    `until` is as in `cost_of_points`.
    """
    n_trees, n_rows = leaves.shape
    last = np.zeros((n_rows, n_resources), np.int32)
    for tree in range(n_trees):
        for i in range(n_rows):
            _note_needs(tree_start[tree] + leaves[tree, i], parent, feature, until, resources, last[i])
    return last


@kernel
def _note_needs(
    leaf: int, parent: np.ndarray, feature: np.ndarray, until: np.ndarray, resources: np.ndarray, last: np.ndarray
) -> None:
    """Raise `last` (n_resources,) to the points until which the ancestors of a leaf need each resource."""
    v = parent[leaf]
    while v != -1:
        for k in range(2):
            resource = resources[feature[v], k]
            if resource != -1 and until[v] > last[resource]:
                last[resource] = until[v]
        v = parent[v]


@kernel
def price_needs(
    leaves: np.ndarray,
    tree_start: np.ndarray,
    parent: np.ndarray,
    feature: np.ndarray,
    split_index: np.ndarray,
    resources: np.ndarray,
    prices: np.ndarray,
    n_nodes: int,
) -> np.ndarray:
    """Return the price of the resources that rows first need at each node, counted per tree, (n_nodes,) int64.

    `split_index` (n_nodes of the forest,) numbers the splits considered, −1 for others; ancestors of such a split are
    considered too. `prices` are integers, with one row per row or one for all. With prices of 1 the results are
    counts.
    """
    price = np.zeros(n_nodes, np.int64)
    n_resources = prices.shape[1]
    seen = np.full(n_resources, -1, np.int64)
    at = np.empty(n_resources, np.int64)
    found = np.empty(n_resources, np.int64)
    for tree in range(leaves.shape[0]):
        for i in range(leaves.shape[1]):
            v = parent[tree_start[tree] + leaves[tree, i]]
            n_found = first_needs(
                v, tree * leaves.shape[1] + i, parent, feature, split_index, resources, seen, at, found
            )
            for k in range(n_found):
                price[split_index[at[found[k]]]] += prices[i if prices.shape[0] > 1 else 0, found[k]]
    return price


@kernel
def list_needs(
    leaves: np.ndarray,
    tree_start: np.ndarray,
    parent: np.ndarray,
    feature: np.ndarray,
    split_index: np.ndarray,
    resources: np.ndarray,
    n_resources: int,
    start: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the items that rows first need at each node, and the key of each item.

    An item is a resource bought for a row; its key is row · n_resources + resource. The needs of node h begin at
    `start[h]`, the cumulated counts of `price_needs`.
    """
    n_rows = leaves.shape[1]
    need = np.empty(start[-1], np.int32)
    position = start[:-1].copy()
    number = np.full(n_rows * n_resources, -1, np.int32)
    key = np.empty(min(start[-1], n_rows * n_resources), np.int64)
    n_items = 0
    seen = np.full(n_resources, -1, np.int64)
    at = np.empty(n_resources, np.int64)
    found = np.empty(n_resources, np.int64)
    for tree in range(leaves.shape[0]):
        for i in range(n_rows):
            v = parent[tree_start[tree] + leaves[tree, i]]
            n_found = first_needs(v, tree * n_rows + i, parent, feature, split_index, resources, seen, at, found)
            for k in range(n_found):
                item_key = i * n_resources + found[k]
                if number[item_key] == -1:
                    number[item_key] = n_items
                    key[n_items] = item_key
                    n_items += 1
                h = split_index[at[found[k]]]
                need[position[h]] = number[item_key]
                position[h] += 1
    return need, key[:n_items].copy()


@kernel
def first_needs(
    v: int,
    stamp: int,
    parent: np.ndarray,
    feature: np.ndarray,
    split_index: np.ndarray,
    resources: np.ndarray,
    seen: np.ndarray,
    at: np.ndarray,
    found: np.ndarray,
) -> int:
    """Return the number of resources needed on the path from the root to v.

    `found` receives the resources and `at` the first split of each. `stamp` must differ between calls: `seen` holds the
    stamp of the last call that found a resource, so it needs no reset.
    """
    n_found = 0
    # The walk goes up, so the last split written to at[resource] is the one closest to the root.
    while v != -1:
        if split_index[v] != -1:
            for k in range(2):
                resource = resources[feature[v], k]
                if resource == -1:
                    continue
                if seen[resource] != stamp:
                    seen[resource] = stamp
                    found[n_found] = resource
                    n_found += 1
                at[resource] = v
        v = parent[v]
    return n_found


@kernel
def equal_items(n_items: int, start: np.ndarray, need: np.ndarray) -> tuple[np.ndarray, int]:
    """Return a class for each item, equal for items that the same nodes need, and the number of classes.

    By partition refinement: every node splits the classes of its items into those it needs and the rest. Exact,
    O(needs).
    """
    item_class = np.zeros(n_items, np.int32)
    size = np.zeros(n_items + 1, np.int32)
    size[0] = n_items
    split_by = np.full(n_items + 1, -1, np.int64)
    new = np.zeros(n_items + 1, np.int32)
    # Numbers of classes that have lost all their items, for reuse.
    free = np.empty(n_items + 1, np.int32)
    n_free, n_used = 0, 1
    # Invariant: two items are in the same class if and only if the same nodes before h need them.
    for h in range(start.shape[0] - 1):
        for e in range(start[h], start[h + 1]):
            item = need[e]
            old = item_class[item]
            if split_by[old] != h:
                split_by[old] = h
                if n_free > 0:
                    n_free -= 1
                    new[old] = free[n_free]
                else:
                    new[old] = n_used
                    n_used += 1
                split_by[new[old]] = -1
            item_class[item] = new[old]
            size[new[old]] += 1
            size[old] -= 1
            if size[old] == 0:
                split_by[old] = -1
                free[n_free] = old
                n_free += 1
    # Renumber the classes without gaps, in the order of the items.
    number = np.full(n_items + 1, -1, np.int32)
    n_classes = 0
    for item in range(n_items):
        if number[item_class[item]] == -1:
            number[item_class[item]] = n_classes
            n_classes += 1
        item_class[item] = number[item_class[item]]
    return item_class, n_classes
