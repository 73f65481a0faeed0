"""Pose pruning under feature cost, (IP3) of Nan, Wang and Saligrama (2016), as a maximum-weight closure in integers.

A split h that is kept lowers the number of wrong labels by its profit, requires its parent, and requires the items that
its rows first need there. An item is a feature, or a price group, bought for a row. The objective of (IP3) is

    Σ_trees errors / (rows · trees) + penalty · Σ_items price / rows,

and its constraints are s_h ≤ s_parent(h) and s_h ≤ w_item, which makes it a closure problem. Errors and prices are
integers; where they have to be rounded they are rounded down, so the optimum is a lower bound for the original problem.

References
----------
Nan, Wang, Saligrama (2016): Optimally Pruning Decision Tree Ensembles With Feature Cost.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.costs import PriceTable
from secateur.data.rows import LocalRows
from secateur.forest import Forest
from secateur.forest.node_sums import class_stats
from secateur.problem import Problem
from secateur.solvers.feature_cost._integers import to_integers

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_MAX_PRODUCT = 2**61
_LARGEST_WEIGHT = 2**20
_LARGEST_PRICE = 2**30


@dataclass(frozen=True, eq=False)
class Counts:
    """Errors and prices as integers.

    Attributes
    ----------
    errors : (n_nodes,)
        The error of each node as a leaf, in units of `error_unit`.
    wrong : (n_nodes,)
        The same before rounding, in units of weight.
    error_unit, price_unit : float
    resources : (n_features, 2)
        The resources a feature needs, as in a PriceTable.
    prices : (n_rows or 1, n_resources)
        The price of a resource for a row, times the weight of the row, in units of `price_unit`.
    exact : bool
        Whether no value was rounded.
    """

    errors: Integers
    wrong: Floats
    error_unit: float
    resources: NDArray[np.int32]
    prices: Integers
    price_unit: float
    exact: bool

    @property
    def price_table(self) -> PriceTable:
        """The resources and their integer prices, as floats."""
        return PriceTable(self.resources, self.prices.astype(np.float64))


@dataclass(frozen=True, eq=False)
class Closure:
    """A closure problem: nodes with profits, parents before children, and the items they require.

    Attributes
    ----------
    group : (n_splits,)
        The closure node of each split, −1 for splits that do not pay off even at penalty 0.
    parent, profit : (n,)
    start, need : (n + 1,), (n_edges,)
        Node h requires the items `need[start[h] : start[h + 1]]`.
    price : (m,)
    """

    group: NDArray[np.int32]
    parent: NDArray[np.int32]
    profit: Integers
    start: Integers
    need: NDArray[np.int32]
    price: Integers


def count(problem: Problem, labels: NDArray[np.intp], class_weight: Floats, *, per_tree: bool = False) -> Counts:
    """Return errors and prices as integers, for nodes that predict `labels` (n_nodes,).

    If products of total errors and total prices could overflow, prices are rounded down until they cannot. `per_tree`:
    each tree pays for its own features, so that an item can be paid for once per tree.
    """
    forest, sample = problem.forest, problem.sample
    error_weight = sample.weight * class_weight[sample.y[:, 0]]
    error_units, error_unit = to_integers(error_weight, _LARGEST_WEIGHT)
    errors = wrong_weight(forest, sample, labels, error_units.astype(np.float64)).astype(np.int64)
    rounded = not is_exact(error_units, error_unit, error_weight)
    wrong = wrong_weight(forest, sample, labels, error_weight) if rounded else errors.astype(np.float64) * error_unit
    weight, weight_unit = to_integers(sample.weight, _LARGEST_WEIGHT)
    price_table = problem.price_table
    price, price_unit = to_integers(price_table.prices, _LARGEST_PRICE)
    if (sample.weight == sample.weight[0]).all():
        prices, price_unit, exact_prices = price, price_unit * sample.weight[0], price_table.prices * sample.weight[0]
    else:
        prices, price_unit = price * weight[:, None], price_unit * weight_unit
        exact_prices = price_table.prices * sample.weight[:, None]
    n_same = (len(sample) if len(prices) == 1 else 1) * (forest.n_trees if per_tree else 1)
    most = float(errors[forest.root].sum()) * float(prices.sum(dtype=np.float64)) * n_same
    shift = max(0, ceil(log2(max(most, 1.0) / _MAX_PRODUCT)))
    exact = shift == 0 and not rounded and is_exact(prices, price_unit, exact_prices)
    return Counts(errors, wrong, error_unit, price_table.resources, prices >> shift, price_unit * 2.0**shift, exact)


def wrong_weight(forest: Forest, sample: LocalRows, labels: NDArray[np.integer], weight: Floats) -> Floats:
    """Return the weight of the rows at each node whose label differs from the node's, (n_nodes,)."""
    counts = class_stats(forest, sample.leaves, sample.y, weight).counts
    return counts.sum(axis=1) - counts[np.arange(len(labels)), labels]


def is_exact(integers: Integers, unit: float, exact_prices: Floats) -> bool:
    """Return whether integers times the unit equal the wanted values, within a relative tolerance of 1e-11."""
    return bool((np.abs(integers * unit - exact_prices) <= 1e-11 * exact_prices).all())


@dataclass(frozen=True, eq=False)
class Reduced:
    """The splits after presolve: those that can never pay off are removed, those that always leave together are merged.

    Attributes
    ----------
    group : (n_splits,)
        As in Closure.
    split_index : (n_nodes of the forest,) int32
        The closure node of each node of the forest, −1 also for leaves.
    parent, profit : (n,)
    """

    group: NDArray[np.int32]
    split_index: NDArray[np.int32]
    parent: NDArray[np.int32]
    profit: Integers


def reduce_splits(
    forest: Forest, errors: Integers, count_needs: Callable[[NDArray[np.int32], int], Integers]
) -> tuple[Reduced, Integers]:
    """Presolve: return the reduced splits and the number of items each of them needs. The reduction is exact.

    `count_needs(split_index, n)` returns the number of items that rows first need at each of n places.
    """
    split = np.flatnonzero(forest.is_split)
    split_index = np.full(forest.n_nodes, -1, np.int32)
    split_index[split] = np.arange(len(split))
    profit = errors[split] - errors[split + 1] - errors[forest.right[split]]
    kept = np.flatnonzero(kernels.profitable_splits(_parents(forest, split_index, split), profit))
    split_index[:] = -1
    split_index[split[kept]] = np.arange(len(kept))
    n_needs = count_needs(split_index, len(kept))
    above = _parents(forest, split_index, split[kept])
    heads, kept_group = np.unique(kernels.inseparable(above, profit[kept], n_needs), return_inverse=True)
    split_index[split[kept]] = kept_group
    group = np.full(len(split), -1, np.int32)
    group[kept] = kept_group
    total = np.zeros(len(heads), np.int64)
    np.add.at(total, kept_group, profit[kept])
    size = np.bincount(kept_group, n_needs, len(heads)).astype(np.int64)
    return Reduced(group, split_index, _parents(forest, split_index, split[kept][heads]), total), size


def pose(problem: Problem, counts: Counts, *, per_tree: bool = False) -> Closure:
    """Return the closure problem after an exact presolve that removes and merges splits and merges items.

    `per_tree`: each tree pays for its own features. The items of a node are then needed by no other node and are merged
    into one.
    """
    forest, sample = problem.forest, problem.sample
    rows = (sample.leaves, forest.tree_start, forest.parent, forest.feature)
    unit_prices = np.ones((1, counts.prices.shape[1]), np.int64)

    def count_needs(split_index: NDArray[np.int32], n: int) -> Integers:
        return kernels.price_needs(*rows, split_index, counts.resources, unit_prices, n)

    splits, size = reduce_splits(forest, counts.errors, count_needs)
    if per_tree:
        needs = private_items(
            kernels.price_needs(*rows, splits.split_index, counts.resources, counts.prices, len(size))
        )
    else:
        start = np.concatenate([[0], np.cumsum(size)])
        need, key = kernels.list_needs(*rows, splits.split_index, counts.resources, counts.prices.shape[1], start)
        row, resource = np.divmod(key, max(counts.prices.shape[1], 1))
        start, need, price, _ = merge_items(start, need, counts.prices[row if len(counts.prices) > 1 else 0, resource])
        needs = start, need, price
    return Closure(splits.group, splits.parent, splits.profit, *needs)


def _parents(forest: Forest, split_index: NDArray[np.int32], nodes: NDArray[np.intp]) -> NDArray[np.int32]:
    """Return the places of the parents of nodes, −1 for none."""
    return np.where(forest.parent[nodes] == -1, -1, split_index[forest.parent[nodes]]).astype(np.int32)


def private_items(price: Integers) -> tuple[Integers, NDArray[np.int32], Integers]:
    """Return edges and prices with one private item for each node that has a price."""
    priced = price > 0
    start = np.concatenate([[0], np.cumsum(priced)])
    return start, np.arange(np.count_nonzero(priced), dtype=np.int32), price[priced]


def merge_items(
    start: Integers, need: NDArray[np.int32], price: NDArray[Any]
) -> tuple[Integers, NDArray[np.int32], NDArray[Any], Integers]:
    """Merge the items that the same nodes need, and drop free ones.

    Returns
    -------
    start, need, price
        As in Closure.
    size : (m,)
        The number of original items in each.
    """
    item_class, n_classes = kernels.equal_items(len(price), start, need)
    total = np.zeros(n_classes, price.dtype)
    np.add.at(total, item_class, price)
    first = np.full(n_classes, -1, np.int64)
    first[item_class[::-1]] = np.arange(len(item_class))[::-1]
    first[total == 0] = -1
    number = np.full(len(price), -1, np.int32)
    number[first[first >= 0]] = np.arange(np.count_nonzero(first >= 0))
    is_kept = number[need] >= 0
    n_kept_before = np.concatenate([[0], np.cumsum(is_kept)])
    size = np.bincount(item_class, minlength=n_classes)
    return n_kept_before[start], number[need[is_kept]], total[first >= 0], size[first >= 0]


def critical_penalties(closure: Closure) -> tuple[Integers, Integers, Integers]:
    """Return for each split the critical penalty from which on it is removed, as numerator and denominator, and counts.

    Splits that do not pay off even for free have the critical penalty 0. Splits that need nothing are never removed;
    their critical penalty is 1 over 0.
    """
    numerator, denominator, counts = kernels.closure_path(
        closure.parent, closure.profit, closure.price, closure.start, closure.need
    )
    # Group −1 indexes the appended entry, the penalty 0.
    numerator, denominator = np.append(numerator, 0), np.append(denominator, 1)
    return numerator[closure.group], denominator[closure.group], counts
