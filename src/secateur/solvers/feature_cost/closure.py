"""Pruning by feature cost as a maximum-weight closure, in whole numbers: (IP3) of Nan, Wang and Saligrama 2016.

A split h that stays lowers the number of wrong labels by its profit, needs its parent, and needs what the rows that
come to it look at first there: items, a feature (or a group of them) bought for a row. The objective of (IP3) is

    Σ_trees errors / (rows · trees) + penalty · Σ_items price / rows,

and s_h ≤ s_parent(h), s_h ≤ w_item are all its constraints. Everything is counted in whole numbers, rounded down where
that takes rounding, so that no pruning can be better than what is found for them.
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
from secateur.solvers.feature_cost._integers import as_whole

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
_MOST = 2**61
_LARGEST_WEIGHT = 2**20
_LARGEST_PRICE = 2**30


@dataclass(frozen=True, eq=False)
class Counts:
    """Errors and prices as whole numbers.

    Attributes
    ----------
    errors : (n_nodes,)
        What each node adds as a leaf, in units of `error_unit`.
    wrong : (n_nodes,)
        The same as it was before rounding.
    error_unit, price_unit : float
    resources : (n_features, 2)
        What a feature needs, as in a PriceTable.
    prices : (n_rows or 1, n_resources)
        What it costs for a row, times the weight of the row, in units of `price_unit`.
    exact : bool
        Whether nothing was rounded.
    """

    errors: Whole
    wrong: Floats
    error_unit: float
    resources: NDArray[np.int32]
    prices: Whole
    price_unit: float
    exact: bool

    @property
    def price_table(self) -> PriceTable:
        """The resources and their whole prices, as real numbers."""
        return PriceTable(self.resources, self.prices.astype(np.float64))


@dataclass(frozen=True, eq=False)
class Closure:
    """A closure problem: nodes with profits, parents before children, and the items they need.

    Attributes
    ----------
    group : (n_splits,)
        The node that stands for each split, −1 for those that are not worth their while even for free.
    parent, profit : (n,)
    start, need : (n + 1,), (n_edges,)
        Node h needs the items `need[start[h] : start[h + 1]]`.
    price : (m,)
    """

    group: NDArray[np.int32]
    parent: NDArray[np.int32]
    profit: Whole
    start: Whole
    need: NDArray[np.int32]
    price: Whole


def count(problem: Problem, labels: NDArray[np.intp], class_weight: Floats, *, apart: bool = False) -> Counts:
    """Return errors and prices as whole numbers, for nodes that say `labels` (n_nodes,).

    If all of them together could be too large for the arithmetic, prices are rounded down until they are not; `apart`
    says that each tree will pay for itself, so that an item may be paid for as often as there are trees.
    """
    forest, sample = problem.forest, problem.sample
    error_weight = sample.weight * class_weight[sample.y[:, 0]]
    of_errors, error_unit = as_whole(error_weight, _LARGEST_WEIGHT)
    errors = wrong_weight(forest, sample, labels, of_errors.astype(np.float64)).astype(np.int64)
    rounded = not same(of_errors, error_unit, error_weight)
    wrong = wrong_weight(forest, sample, labels, error_weight) if rounded else errors.astype(np.float64) * error_unit
    weight, weight_unit = as_whole(sample.weight, _LARGEST_WEIGHT)
    price_table = problem.price_table
    price, price_unit = as_whole(price_table.prices, _LARGEST_PRICE)
    if (sample.weight == sample.weight[0]).all():
        prices, price_unit, wanted = price, price_unit * sample.weight[0], price_table.prices * sample.weight[0]
    else:
        prices, price_unit = price * weight[:, None], price_unit * weight_unit
        wanted = price_table.prices * sample.weight[:, None]
    n_same = (len(sample) if len(prices) == 1 else 1) * (forest.n_trees if apart else 1)
    most = float(errors[forest.root].sum()) * float(prices.sum(dtype=np.float64)) * n_same
    shift = max(0, ceil(log2(max(most, 1.0) / _MOST)))
    exact = shift == 0 and not rounded and same(prices, price_unit, wanted)
    return Counts(errors, wrong, error_unit, price_table.resources, prices >> shift, price_unit * 2.0**shift, exact)


def wrong_weight(forest: Forest, sample: LocalRows, labels: NDArray[np.integer], weight: Floats) -> Floats:
    """Return the weight of the rows at each node that have another label, (n_nodes,)."""
    counts = class_stats(forest, sample.leaves, sample.y, weight).counts
    return counts.sum(axis=1) - counts[np.arange(len(labels)), labels]


def same(whole: Whole, unit: float, wanted: Floats) -> bool:
    """Return whether nothing was rounded."""
    return bool((np.abs(whole * unit - wanted) <= 1e-11 * wanted).all())


@dataclass(frozen=True, eq=False)
class Reduced:
    """Splits without those that are never worth their while, and those that always go together as one.

    Attributes
    ----------
    group : (n_splits,)
        As in Closure.
    place : (n_nodes of the forest,) int32
        The same for all nodes, −1 also for leaves.
    parent, profit : (n,)
    """

    group: NDArray[np.int32]
    place: NDArray[np.int32]
    parent: NDArray[np.int32]
    profit: Whole


def reduce_splits(
    forest: Forest, errors: Whole, count_needs: Callable[[NDArray[np.int32], int], Whole]
) -> tuple[Reduced, Whole]:
    """Return the splits that matter, and how many items each of them needs.

    `count_needs(place, n)` returns how many items the rows at each of n places need there first.
    """
    split = np.flatnonzero(forest.is_split)
    place = np.full(forest.n_nodes, -1, np.int32)
    place[split] = np.arange(len(split))
    profit = errors[split] - errors[split + 1] - errors[forest.right[split]]
    kept = np.flatnonzero(kernels.worthwhile(_parents(forest, place, split), profit))
    place[:] = -1
    place[split[kept]] = np.arange(len(kept))
    n_needs = count_needs(place, len(kept))
    above = _parents(forest, place, split[kept])
    heads, of_kept = np.unique(kernels.inseparable(above, profit[kept], n_needs), return_inverse=True)
    place[split[kept]] = of_kept
    group = np.full(len(split), -1, np.int32)
    group[kept] = of_kept
    total = np.zeros(len(heads), np.int64)
    np.add.at(total, of_kept, profit[kept])
    size = np.bincount(of_kept, n_needs, len(heads)).astype(np.int64)
    return Reduced(group, place, _parents(forest, place, split[kept][heads]), total), size


def pose(problem: Problem, counts: Counts, *, apart: bool = False) -> Closure:
    """Return the closure problem, made smaller without loss: what is never worth its while, or always goes together.

    `apart` makes each tree pay for itself, so that a node's items are its own, and one will do for all of them.
    """
    forest, sample = problem.forest, problem.sample
    rows = (sample.leaves, forest.tree_start, forest.parent, forest.feature)
    one_each = np.ones((1, counts.prices.shape[1]), np.int64)

    def count_needs(place: NDArray[np.int32], n: int) -> Whole:
        return kernels.price_needs(*rows, place, counts.resources, one_each, n)

    splits, size = reduce_splits(forest, counts.errors, count_needs)
    if apart:
        needs = own_items(kernels.price_needs(*rows, splits.place, counts.resources, counts.prices, len(size)))
    else:
        start = np.concatenate([[0], np.cumsum(size)])
        need, key = kernels.list_needs(*rows, splits.place, counts.resources, counts.prices.shape[1], start)
        row, resource = np.divmod(key, max(counts.prices.shape[1], 1))
        start, need, price, _ = merge_items(start, need, counts.prices[row if len(counts.prices) > 1 else 0, resource])
        needs = start, need, price
    return Closure(splits.group, splits.parent, splits.profit, *needs)


def _parents(forest: Forest, place: NDArray[np.int32], nodes: NDArray[np.intp]) -> NDArray[np.int32]:
    """Return the places of the parents of some nodes, −1 for none."""
    return np.where(forest.parent[nodes] == -1, -1, place[forest.parent[nodes]]).astype(np.int32)


def own_items(price: Whole) -> tuple[Whole, NDArray[np.int32], Whole]:
    """Return edges and prices with one item for each node that has a price."""
    priced = price > 0
    start = np.concatenate([[0], np.cumsum(priced)])
    return start, np.arange(np.count_nonzero(priced), dtype=np.int32), price[priced]


def merge_items(
    start: Whole, need: NDArray[np.int32], price: NDArray[Any]
) -> tuple[Whole, NDArray[np.int32], NDArray[Any], Whole]:
    """Return edges and prices with one item in place of all that the same nodes need, and without free ones.

    The last result is how many items each is made of.
    """
    of, n_classes = kernels.equal_items(len(price), start, need)
    total = np.zeros(n_classes, price.dtype)
    np.add.at(total, of, price)
    first = np.full(n_classes, -1, np.int64)
    first[of[::-1]] = np.arange(len(of))[::-1]
    first[total == 0] = -1
    number = np.full(len(price), -1, np.int32)
    number[first[first >= 0]] = np.arange(np.count_nonzero(first >= 0))
    stays = number[need] >= 0
    passed = np.concatenate([[0], np.cumsum(stays)])
    size = np.bincount(of, minlength=n_classes)
    return passed[start], number[need[stays]], total[first >= 0], size[first >= 0]


def critical_penalties(closure: Closure) -> tuple[Whole, Whole, Whole]:
    """Return for each split the penalty, as a fraction of whole numbers, from which on it is left out, and counts.

    Splits that are not worth their while are left out from 0 on; those that need nothing never, which is 1 over 0.
    """
    over, under, counts = kernels.closure_path(
        closure.parent, closure.profit, closure.price, closure.start, closure.need
    )
    over, under = np.append(over, 0), np.append(under, 1)  # group −1 finds the last
    return over[closure.group], under[closure.group], counts
