"""Price, count and collapse the splits of trees in a descent where trees share the features bought for a row.

`counts` (n_rows, n_resources) is the number of trees in which a row needs a resource. `price_fraction[j]` is the
fraction of the price that a tree pays for a resource that j other trees need: 1, 0, 0, … is the true cost, and a slower
decay lets trees drop a feature together. The rows that first need a resource at a split are listed once: those of slot
s of node v begin at `begin[2 v + s]` of `listed`. The rest of the state is that of
`secateur.kernels.ensemble.block_descent`.
"""

import numpy as np

from secateur.kernels._jit import kernel
from secateur.kernels.ensemble.block_descent import move_rows
from secateur.kernels.feature_cost.row_items import first_needs


@kernel
def list_rows(
    leaves: np.ndarray,
    tree_start: np.ndarray,
    parent: np.ndarray,
    feature: np.ndarray,
    resources: np.ndarray,
    n_resources: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return where the rows of each node and slot begin, and the rows that first need its resource there."""
    n_nodes = parent.shape[0]
    begin = np.zeros(2 * n_nodes + 1, np.int64)
    listed = np.empty(0, np.int32)
    every = np.zeros(n_nodes, np.int8)
    at = np.empty(n_resources, np.int64)
    found = np.empty(n_resources, np.int64)
    # The first pass counts the rows of each slot, the second writes them. During the second, begin[slot] is the next
    # free position of the slot.
    for filling in range(2):
        seen = np.full(n_resources, -1, np.int64)
        for tree in range(leaves.shape[0]):
            for i in range(leaves.shape[1]):
                v = parent[tree_start[tree] + leaves[tree, i]]
                n_found = first_needs(v, tree * leaves.shape[1] + i, parent, feature, every, resources, seen, at, found)
                for k in range(n_found):
                    u = at[found[k]]
                    slot = 2 * u if resources[feature[u], 0] == found[k] else 2 * u + 1
                    if filling == 0:
                        begin[slot + 1] += 1
                    else:
                        listed[begin[slot]] = i
                        begin[slot] += 1
        if filling == 0:
            for slot in range(2 * n_nodes):
                begin[slot + 1] += begin[slot]
            listed = np.empty(begin[-1], np.int32)
    # After filling, begin[slot] is the end of the slot: shift by one to get the starts back.
    for slot in range(2 * n_nodes, 0, -1):
        begin[slot] = begin[slot - 1]
    begin[0] = 0
    return begin, listed


@kernel
def count_tree(
    start: int,
    stop: int,
    step: int,
    feature: np.ndarray,
    resources: np.ndarray,
    prices: np.ndarray,
    reach: np.ndarray,
    begin: np.ndarray,
    listed: np.ndarray,
    status: np.ndarray,
    counts: np.ndarray,
) -> float:
    """Add `step`, 1 or −1, to the counts for the needs of a tree; return the increase of the price over all rows."""
    paid = 0.0
    price_per_row = prices.shape[0] > 1
    for v in range(start, stop):
        if status[v] != 1:
            continue
        for s in range(2):
            resource = resources[feature[v], s]
            for e in range(begin[2 * v + s], begin[2 * v + s + 1]):
                i = listed[e]
                before = counts[i, resource]
                counts[i, resource] = before + step
                if before == 0 or before + step == 0:
                    paid += step * reach[i] * prices[i if price_per_row else 0, resource]
    return paid


@kernel
def price_tree(
    start: int,
    stop: int,
    penalty: float,
    per_split: float,
    right: np.ndarray,
    feature: np.ndarray,
    banned: np.ndarray,
    resources: np.ndarray,
    prices: np.ndarray,
    reach: np.ndarray,
    begin: np.ndarray,
    listed: np.ndarray,
    counts: np.ndarray,
    price_fraction: np.ndarray,
    as_split: np.ndarray,
) -> None:
    """Write the costs of the splits of a tree to `as_split`; the tree's needs must not be in the counts.

    Splits on banned features cost infinity.
    """
    price_per_row = prices.shape[0] > 1
    for v in range(start, stop):
        if right[v] == -1:
            continue
        if banned[feature[v]]:
            as_split[v] = np.inf
            continue
        total = 0.0
        for s in range(2):
            resource = resources[feature[v], s]
            first, last = begin[2 * v + s], begin[2 * v + s + 1]
            if price_per_row:
                for e in range(first, last):
                    i = listed[e]
                    total += reach[i] * price_fraction[counts[i, resource]] * prices[i, resource]
            elif last > first:
                fraction = 0.0
                for e in range(first, last):
                    i = listed[e]
                    fraction += reach[i] * price_fraction[counts[i, resource]]
                total += fraction * prices[0, resource]
        as_split[v] = penalty * total + per_split


@kernel
def collapse_features(
    leaves: np.ndarray,
    weight: np.ndarray,
    neg_gradient: np.ndarray,
    probability: np.ndarray,
    tree_start: np.ndarray,
    tree_output: np.ndarray,
    end: np.ndarray,
    mean: np.ndarray,
    status: np.ndarray,
    contribution: np.ndarray,
    feature: np.ndarray,
    banned: np.ndarray,
    resources: np.ndarray,
    prices: np.ndarray,
    reach: np.ndarray,
    begin: np.ndarray,
    listed: np.ndarray,
    counts: np.ndarray,
) -> float:
    """Collapse every split on a banned feature to a leaf; return the change of the price.

    The new leaf has the `mean` of the leaves below. A tree whose root is collapsed is dropped: its contribution is 0.
    """
    width = contribution.shape[1]
    largest = (tree_start[1:] - tree_start[:-1]).max() if leaves.shape[0] > 0 else 1
    new_contribution = np.empty((largest, width))
    paid = 0.0
    for tree in range(leaves.shape[0]):
        start, stop = tree_start[tree], tree_start[tree + 1]
        affected = False
        for v in range(start, stop):
            if status[v] == 1 and banned[feature[v]]:
                affected = True
                break
        if not affected:
            continue
        paid += count_tree(start, stop, -1, feature, resources, prices, reach, begin, listed, status, counts)
        new_contribution[: stop - start] = contribution[start:stop]
        # Invariant: nodes before v are final. After a collapse the whole subtree is skipped.
        v = start
        while v < stop:
            if status[v] == 1 and banned[feature[v]]:
                for u in range(v, end[v]):
                    status[u] = 0
                    new_contribution[u - start] = mean[v] if v > start else 0.0 * mean[v]
                if v > start:
                    status[v] = 2
                v = end[v]
            else:
                v += 1
        move_rows(
            leaves[tree],
            weight,
            neg_gradient,
            probability,
            max(tree_output[tree], 0),
            start,
            width,
            contribution,
            new_contribution,
        )
        contribution[start:stop] = new_contribution[: stop - start]
        paid += count_tree(start, stop, 1, feature, resources, prices, reach, begin, listed, status, counts)
    return paid


@kernel
def shifts_without(
    leaves: np.ndarray,
    tree_start: np.ndarray,
    tree_output: np.ndarray,
    parent: np.ndarray,
    mean: np.ndarray,
    status: np.ndarray,
    contribution: np.ndarray,
    feature: np.ndarray,
    set_index: np.ndarray,
    n_outputs: int,
    n_sets: int,
) -> np.ndarray:
    """Return the change of the raw predictions when all splits on a feature collapse, (n_asked, n_rows, n_outputs).

    `set_index` (n_features,) numbers the features to collapse, −1 for others; features with the same number collapse
    together.
    """
    n_rows, width = leaves.shape[1], contribution.shape[1]
    shift = np.zeros((n_sets, n_rows, n_outputs))
    at = np.empty(n_sets, np.int64)
    found = np.empty(n_sets, np.int64)
    seen = np.full(n_sets, -1, np.int64)
    for tree in range(leaves.shape[0]):
        start = tree_start[tree]
        if status[start] != 1:
            continue
        column = max(tree_output[tree], 0)
        for i in range(n_rows):
            leaf = start + leaves[tree, i]
            # Walk up to the root; at[k] ends as the topmost split on feature k, where the row stops after the collapse.
            v, n_found = parent[leaf], 0
            while v != -1:
                if status[v] == 1:
                    k = set_index[feature[v]]
                    if k != -1:
                        if seen[k] != tree * n_rows + i:
                            seen[k] = tree * n_rows + i
                            found[n_found] = k
                            n_found += 1
                        at[k] = v
                v = parent[v]
            for f in range(n_found):
                k = found[f]
                u = at[k]
                for j in range(width):
                    new = mean[u, j] if u != start else 0.0
                    shift[k, i, column + j] += new - contribution[leaf, j]
    return shift
