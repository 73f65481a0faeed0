"""Price, count and collapse the splits of trees in a descent where trees share the features bought for a row.

The rows that first need a resource at a split are listed once, in a `PurchaseTable`. `counts` (n_rows, n_resources) is
the number of trees in which a row needs a resource. The rest of the state is that of
`secateur.kernels.ensemble.arrays`.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from secateur.kernels._jit import kernel
from secateur.kernels.ensemble.arrays import BlockProblem, Prices, RoutedRows, State, Trees, empty_scratch
from secateur.kernels.ensemble.block_descent import move_intercept, move_rows, update_tree
from secateur.kernels.ensemble.mean_arrays import MeanArrays, MeanProblem, MeanRows, MeanScratch, MeanTrees, Range
from secateur.kernels.ensemble.mean_descent import update_mean_tree
from secateur.kernels.feature_cost.row_items import first_needs

Floats = NDArray[np.float64]


class PurchaseTable(NamedTuple):
    """The purchases that rows can make.

    Attributes
    ----------
    feature : (n_nodes,)
        The feature of each split.
    resources : (n_features, 2)
        The resources a feature needs, −1 for none.
    prices : (n_rows or 1, n_resources)
        The price of each resource, by row or for all rows.
    reach : (n_rows,)
        Row weights that sum to 1.
    begin, listed : (2 n_nodes + 1,), (n_listed,)
        The rows that first need the resource of slot s of node v begin at `begin[2 v + s]` of `listed`.
    """

    feature: NDArray[np.int32]
    resources: NDArray[np.int32]
    prices: Floats
    reach: Floats
    begin: NDArray[np.int64]
    listed: NDArray[np.int32]


class Pricing(NamedTuple):
    """How the splits of a tree are priced.

    Attributes
    ----------
    penalty, per_split : float
        A split costs `penalty` times the average price that rows pay there, plus `per_split`.
    price_fraction : (n_trees + 1,)
        The fraction of its price that a tree pays for a resource that j other trees need: 1, 0, 0, … is the true cost,
        and a slower decay lets trees drop a feature together.
    banned : (n_features,) bool
        Features whose splits cost infinity.
    """

    penalty: float
    per_split: float
    price_fraction: Floats
    banned: NDArray[np.bool_]


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
    every = np.zeros(n_nodes, np.int32)
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
def sweep_priced_blocks(
    rows: RoutedRows,
    trees: Trees,
    prices: Prices,
    state: State,
    problem: BlockProblem,
    purchases: PurchaseTable,
    counts: np.ndarray,
    pricing: Pricing,
    spent: float,
    budget: float,
) -> tuple[float, float, float]:
    """Update each tree in turn, then the intercept.

    Returns the gain, the part of it that is penalty and ridge, and the average price that a row then pays. `spent` is
    that price before the sweep. No more trees are updated when it is at most `budget`. The prices of the
    splits, the counts and the state are updated in place.
    """
    scratch, no_sums = empty_scratch(trees, state), np.empty((0, 0))
    gain, saved = 0.0, 0.0
    # Loop invariant: the counts are those of the current trees, and `spent` is the price of what they need.
    for tree in range(len(trees.tree_output)):
        start, stop = trees.tree_start[tree], trees.tree_start[tree + 1]
        # While a tree is priced, the counts exclude its needs: it pays only for what no other tree needs.
        spent += count_tree(start, stop, -1, purchases, state.status, counts)
        price_tree(start, stop, trees.right, purchases, counts, pricing, prices.as_split)
        more, less = update_tree(tree, rows, trees, prices, state, problem, scratch, no_sums)
        gain += more
        saved += less
        spent += count_tree(start, stop, 1, purchases, state.status, counts)
        if spent <= budget:
            break
    return gain + move_intercept(rows.weight, state), saved, spent


@kernel
def sweep_priced_means(
    rows: MeanRows,
    trees: MeanTrees,
    bounds: Range,
    state: MeanArrays,
    scratch: MeanScratch,
    problem: MeanProblem,
    purchases: PurchaseTable,
    counts: np.ndarray,
    pricing: Pricing,
    spent: float,
    budget: float,
) -> tuple[float, float]:
    """Update each tree of a mean of trees in turn; return the gain and the average price that a row then pays.

    As `sweep_priced_blocks`.
    """
    gain = 0.0
    for tree in range(len(trees.start) - 1):
        start, stop = trees.start[tree], trees.start[tree + 1]
        spent += count_tree(start, stop, -1, purchases, state.status, counts)
        price_tree(start, stop, trees.right, purchases, counts, pricing, trees.as_split)
        gain += update_mean_tree(tree, rows, trees, bounds, state, scratch, problem)
        spent += count_tree(start, stop, 1, purchases, state.status, counts)
        if spent <= budget:
            break
    return gain, spent


@kernel
def count_tree(
    start: int, stop: int, step: int, purchases: PurchaseTable, status: np.ndarray, counts: np.ndarray
) -> float:
    """Add `step`, 1 or −1, to the counts for the needs of a tree; return the increase of the price over all rows."""
    feature, resources, prices, begin = purchases.feature, purchases.resources, purchases.prices, purchases.begin
    paid = 0.0
    price_per_row = prices.shape[0] > 1
    for v in range(start, stop):
        if status[v] != 1:
            continue
        for s in range(2):
            resource = resources[feature[v], s]
            for e in range(begin[2 * v + s], begin[2 * v + s + 1]):
                i = purchases.listed[e]
                before = counts[i, resource]
                counts[i, resource] = before + step
                if before == 0 or before + step == 0:
                    paid += step * purchases.reach[i] * prices[i if price_per_row else 0, resource]
    return paid


@kernel
def price_tree(
    start: int,
    stop: int,
    right: np.ndarray,
    purchases: PurchaseTable,
    counts: np.ndarray,
    pricing: Pricing,
    as_split: np.ndarray,
) -> None:
    """Write the costs of the splits of a tree to `as_split`; the tree's needs must not be in the counts."""
    feature, resources, prices, begin = purchases.feature, purchases.resources, purchases.prices, purchases.begin
    listed, reach, price_fraction = purchases.listed, purchases.reach, pricing.price_fraction
    price_per_row = prices.shape[0] > 1
    for v in range(start, stop):
        if right[v] == -1:
            continue
        if pricing.banned[feature[v]]:
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
        as_split[v] = pricing.penalty * total + pricing.per_split


@kernel
def collapse_features(
    rows: RoutedRows,
    trees: Trees,
    state: State,
    end: np.ndarray,
    mean: np.ndarray,
    purchases: PurchaseTable,
    counts: np.ndarray,
    banned: np.ndarray,
) -> float:
    """Collapse every split on a banned feature to a leaf; return the change of the price.

    The new leaf has the `mean` of the leaves below. A tree whose root is collapsed is dropped: its contribution is 0.
    """
    status, contribution, feature = state.status, state.contribution, purchases.feature
    width = contribution.shape[1]
    new_contribution = empty_scratch(trees, state).contribution
    paid = 0.0
    for tree in range(len(trees.tree_output)):
        start, stop = trees.tree_start[tree], trees.tree_start[tree + 1]
        v = start
        while v < stop and not (status[v] == 1 and banned[feature[v]]):
            v += 1
        if v == stop:
            continue
        paid += count_tree(start, stop, -1, purchases, status, counts)
        for u in range(start, stop):
            for k in range(width):
                new_contribution[u - start, k] = contribution[u, k]
        # Invariant: nodes before v are final. After a collapse the whole subtree is skipped.
        while v < stop:
            if status[v] == 1 and banned[feature[v]]:
                for u in range(v, end[v]):
                    status[u] = 0
                    for k in range(width):
                        new_contribution[u - start, k] = mean[v, k] if v > start else 0.0 * mean[v, k]
                if v > start:
                    status[v] = 2
                v = end[v]
            else:
                v += 1
        move_rows(tree, rows, trees, state, new_contribution)
        for u in range(start, stop):
            for k in range(width):
                contribution[u, k] = new_contribution[u - start, k]
        paid += count_tree(start, stop, 1, purchases, status, counts)
    return paid


@kernel
def shifts_without(
    rows: RoutedRows,
    trees: Trees,
    state: State,
    parent: np.ndarray,
    mean: np.ndarray,
    feature: np.ndarray,
    set_index: np.ndarray,
    n_sets: int,
) -> np.ndarray:
    """Return the change of the raw predictions when all splits on a feature collapse, (n_sets, n_rows, n_outputs).

    A collapsed split predicts its `mean`. `set_index` (n_features,) numbers the features to collapse, −1 for others;
    features with the same number collapse together.
    """
    leaves, status, contribution = rows.leaves, state.status, state.contribution
    n_outputs, n_rows = state.neg_gradient.shape
    shift = np.zeros((n_sets, n_rows, n_outputs))
    at = np.empty(n_sets, np.int64)
    found = np.empty(n_sets, np.int64)
    seen = np.full(n_sets, -1, np.int64)
    for tree in range(leaves.shape[0]):
        start = trees.tree_start[tree]
        if status[start] != 1:
            continue
        column = max(trees.tree_output[tree], 0)
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
                for j in range(contribution.shape[1]):
                    shift[k, i, column + j] += mean[u, j] - contribution[leaf, j]
    return shift
