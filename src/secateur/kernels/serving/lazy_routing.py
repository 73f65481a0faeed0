"""Route rows down all trees as far as the acquired columns allow, and choose the next column to buy.

A *column* is the unit of purchase.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from secateur.kernels._jit import kernel
from secateur.kernels.forest.routing import CategoryLists, SplitArrays, category_goes_left

ARRIVED, REQUESTED = 1, 2
_ROUNDING = 1e-12
"""Relative tolerance of the price limit.

A sum of n prices has a relative rounding error of at most n · 2⁻⁵³, so 1e-12 covers 9000 purchases per row.
"""
NOTHING, UNAFFORDABLE, WAITING = -1, -2, -3
"""Codes that `next_column` writes instead of a column.

NOTHING: all trees are at leaves. UNAFFORDABLE: trees need columns, but none is affordable. WAITING: no other column can
be bought until a requested one arrives.
"""


class Subtrees(NamedTuple):
    """What lazy routing knows of the subtree below each node.

    Attributes
    ----------
    split_column : (n_nodes,)
        The column that a split needs, −1 at a leaf.
    settled : (n_nodes,)
        The node that routing continues from, a leaf if all leaves below the node are known to be equal.
    low, high : (n_nodes, width)
        The smallest and the largest contribution of the leaves.
    width : (n_nodes,)
        The range of contributions, summed over outputs.
    """

    split_column: NDArray[np.int32]
    settled: NDArray[np.int32]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    width: NDArray[np.float64]


class Progress(NamedTuple):
    """How far rows have been routed; the kernels update the arrays in place.

    Attributes
    ----------
    state : (n_rows, n_columns)
        0 if a column was not requested, `REQUESTED` if it was requested, `ARRIVED` if its value is in X.
    at : (n_rows, n_trees)
        The node reached in each tree.
    needed : (n_rows, n_trees)
        The column that the split at this node needs, −1 at a leaf.
    gain : (n_rows, n_columns)
        The sum of `width` of the nodes reached over the trees that need the column.
    lower, upper : (n_rows, n_outputs)
        Bounds of the scores.
    """

    state: NDArray[np.uint8]
    at: NDArray[np.int32]
    needed: NDArray[np.int32]
    gain: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


@kernel
def leaves_below(
    right: np.ndarray, term: np.ndarray, bits: np.ndarray, low: np.ndarray, high: np.ndarray, settled: np.ndarray
) -> None:
    """Compute the range of the leaf contributions below each node, and the subtrees with identical leaf values.

    `term` (n_nodes, width) is the contribution of a node, `bits` (n_nodes, width) the bit pattern of its value.
    `settled[v]` is a leaf below v if all leaves below v have bit-identical values, and v itself otherwise.
    """
    # Invariant: reverse preorder visits children before their parents, so low, high and settled are final for all
    # nodes after v.
    for v in range(right.shape[0] - 1, -1, -1):
        settled[v] = v
        if right[v] == -1:
            low[v], high[v] = term[v], term[v]
            continue
        a, b = settled[v + 1], settled[right[v]]
        equal = right[a] == -1 and right[b] == -1
        for k in range(term.shape[1]):
            low[v, k] = min(low[v + 1, k], low[right[v], k])
            high[v, k] = max(high[v + 1, k], high[right[v], k])
            equal = equal and bits[a, k] == bits[b, k]
        if equal:
            settled[v] = a


@kernel
def advance(
    rows: np.ndarray,
    X: np.ndarray,
    progress: Progress,
    splits: SplitArrays,
    categories: CategoryLists,
    subtrees: Subtrees,
    tree_output: np.ndarray,
) -> None:
    """Advance each of the rows in each tree to a leaf, or to a split whose column has not arrived.

    Missing values follow `default_left`. The progress is updated in place, except for `state`.
    """
    state, at, needed, gain, lower, upper = progress
    split_column, settled, low, high, width = subtrees
    # Invariant: before and after each tree, gain[i], lower[i] and upper[i] are the sums over all trees of the
    # quantities at the nodes at[i]; moving a tree from `first` to v changes them by the difference of these two nodes.
    categorical = len(categories.row) > 0
    for i in rows:
        for tree in range(at.shape[1]):
            column = needed[i, tree]
            if column == -1 or state[i, column] != ARRIVED:
                continue
            first = at[i, tree]
            v = first
            while split_column[v] != -1 and state[i, split_column[v]] == ARRIVED:
                x = X[i, splits.feature[v]]
                if np.isnan(x):
                    left = splits.default_left[v]
                elif not categorical or categories.row[v] == -1:
                    left = x <= splits.threshold[v]
                else:
                    left = category_goes_left(x, categories.row[v], categories)
                v = settled[v + 1 if left else splits.right[v]]
            at[i, tree], needed[i, tree] = v, split_column[v]
            gain[i, column] -= width[first]
            if split_column[v] != -1:
                gain[i, split_column[v]] += width[v]
            output = tree_output[tree]
            for k in range(low.shape[1]):
                target = k if output < 0 else output
                lower[i, target] += low[v, k] - low[first, k]
                upper[i, target] += high[v, k] - high[first, k]


@kernel
def next_column(
    rows: np.ndarray,
    state: np.ndarray,
    needed: np.ndarray,
    gain: np.ndarray,
    resources: np.ndarray,
    prices: np.ndarray,
    owned: np.ndarray,
    paid: np.ndarray,
    max_cost: float,
    chosen: np.ndarray,
) -> None:
    """Write to `chosen[j]` the column to buy next for row `rows[j]`.

    It is the affordable column with the largest gain per price. A column is affordable if `paid` plus its price is at
    most `max_cost`, up to a relative rounding error of 1e-12. Free columns come first, and ties go to the column with
    the lowest number. `resources` and `prices` are those of a `PriceTable`; `owned` (n_rows, n_resources) marks the
    resources already paid for. The complexity is O(n_trees) per row.
    """
    n_columns = state.shape[1]
    # Prices that sum to the limit may exceed it by rounding: 0.1 + 0.2 > 0.3.
    limit = max_cost * (1.0 + _ROUNDING)
    # considered_for[c] == j if column c was already considered for row j.
    considered_for = np.full(n_columns, -1, np.int64)
    for j in range(rows.shape[0]):
        i = rows[j]
        # Invariant: best is the best affordable column among those considered, UNAFFORDABLE if none was affordable,
        # NOTHING if none was considered. waiting is True if a needed column was requested and has not arrived.
        best, best_rate, best_free, waiting = NOTHING, -np.inf, False, False
        for tree in range(needed.shape[1]):
            column = needed[i, tree]
            if column == -1 or considered_for[column] == j:
                continue
            considered_for[column] = j
            if state[i, column] == REQUESTED:
                waiting = True
                continue
            if best == NOTHING:
                best = UNAFFORDABLE
            price = _price(resources[column], prices[i if prices.shape[0] > 1 else 0], owned[i])
            if paid[i] + price > limit:
                continue
            free = price == 0.0
            rate = gain[i, column] if free else gain[i, column] / price
            better = rate > best_rate or (rate == best_rate and column < best)
            if best < 0 or (free and not best_free) or (free == best_free and better):
                best, best_rate, best_free = column, rate, free
        chosen[j] = WAITING if waiting and best < 0 else best


@kernel
def _price(resources: np.ndarray, prices: np.ndarray, owned: np.ndarray) -> float:
    """Return the total price of the resources not owned yet."""
    total = 0.0
    for resource in resources:
        if resource != -1 and not owned[resource]:
            total += prices[resource]
    return total
