"""Solve the maximum closure of one partition, and price sets of splits on its rows.

The callables of this module are sent to the partitions and read only their rows; no result has an entry per row. A
partition caches its closure problem between passes. If the cache is lost, the problem is rebuilt with the same result.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.costs import Cost
from secateur.data.rows import LocalRows
from secateur.forest import Forest
from secateur.forest.node_sums import node_weight
from secateur.solvers.feature_cost._partition_integers import ErrorCounter
from secateur.solvers.feature_cost.closure import merge_items

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_MAX_CACHED_EDGES = 30_000_000
_MAX_PRICE = 2.0**60
_EPS = 2.220446049250313e-16


@dataclass(frozen=True, eq=False)
class PartitionProblem:
    """The facts common to all passes.

    Attributes
    ----------
    token : str
        Identifies the problem; cached closures with another token are dropped.
    error_counter : ErrorCounter
    cost : Cost
    split_index : (n_nodes,) int32
        The number of each split, −1 for dropped ones; splits with the same number are kept or removed together.
    """

    token: str
    error_counter: ErrorCounter
    cost: Cost
    split_index: NDArray[np.int32]


class PartitionClosure(NamedTuple):
    """The closure problem of a partition, as in `Closure`.

    It contains only splits that the partition's rows reach; `reached` has their numbers.
    """

    reached: NDArray[np.int32]
    parent: NDArray[np.int32]
    profit: Integers
    start: Integers
    need: NDArray[np.int32]
    price: Floats


_CACHE: dict[tuple[str, int], PartitionClosure] = {}


def cached_closure(problem: PartitionProblem, forest: Forest, sample: LocalRows, number: int) -> PartitionClosure:
    """Return the closure problem of a partition, from the cache or rebuilt."""
    key = problem.token, number
    if key not in _CACHE:
        if any(token != problem.token for token, _ in _CACHE):
            clear_cache()
        closure = build_closure(problem, forest, sample)
        if sum(len(other.need) for other in _CACHE.values()) + len(closure.need) > _MAX_CACHED_EDGES:
            return closure
        _CACHE[key] = closure
    return _CACHE[key]


def clear_cache() -> None:
    """Clear the closure problems cached in this process."""
    _CACHE.clear()


def build_closure(problem: PartitionProblem, forest: Forest, sample: LocalRows) -> PartitionClosure:
    """Return the closure problem of a partition; prices are lowered to absorb rounding errors."""
    split_index = problem.split_index
    n = int(split_index.max(initial=-1)) + 1
    has_rows = node_weight(forest, sample.leaves, np.ones(len(sample))) > 0
    # In preorder the first node of each number is an ancestor of the others.
    number, head = np.unique(split_index, return_index=True)
    head = head[number >= 0]
    reached = np.flatnonzero(has_rows[head]).astype(np.int32)
    # The extra last entry is what index −1 reads.
    local = np.full(n + 1, -1, np.int32)
    local[reached] = np.arange(len(reached))
    local_split = local[split_index]
    above = forest.parent[head[reached]]
    parent = np.where(above == -1, -1, local_split[above]).astype(np.int32)
    resources, prices = problem.cost.price_table(forest, sample)
    rows = (sample.leaves, forest.tree_start, forest.parent, forest.feature)
    unit_prices = np.ones((1, prices.shape[1]), np.int64)
    size = kernels.price_needs(*rows, local_split, resources, unit_prices, len(reached))
    start = np.concatenate([[0], np.cumsum(size)])
    need, key = kernels.list_needs(*rows, local_split, resources, prices.shape[1], start)
    row, resource = np.divmod(key, max(prices.shape[1], 1))
    item_price = prices[row if len(prices) > 1 else 0, resource] * sample.weight[row]
    start, need, price, n_merged = merge_items(start, need, item_price)
    price = price * (1 - _EPS * (n_merged + 8))
    return PartitionClosure(
        reached, parent, _profits(problem, forest, sample, local_split, len(reached)), start, need, price
    )


def _profits(
    problem: PartitionProblem, forest: Forest, sample: LocalRows, split_index: NDArray[np.int32], n: int
) -> Integers:
    """Return the reduction of the partition's errors by the splits of each number, (n,)."""
    errors = problem.error_counter.errors(forest, sample)
    split = np.flatnonzero(split_index >= 0)
    profit = np.zeros(n, np.int64)
    np.add.at(profit, split_index[split], errors[split] - errors[split + 1] - errors[forest.right[split]])
    return profit


@dataclass(frozen=True, eq=False)
class FirstPass:
    """Report the splits that a partition's rows reach, and their costs with item prices split equally."""

    problem: PartitionProblem

    def __call__(self, forest: Forest, sample: LocalRows, number: int) -> tuple[int, NDArray[np.int32], Floats]:
        """Return the number of the partition, its splits (n_held,), and the price each pays (n_held,)."""
        closure = cached_closure(self.problem, forest, sample, number)
        equal_price = closure.price / np.maximum(np.bincount(closure.need, minlength=len(closure.price)), 1)
        node = np.repeat(np.arange(len(closure.reached)), np.diff(closure.start))
        return number, closure.reached, sums_by(node, equal_price[closure.need], len(closure.reached))


def sums_by(number: NDArray[np.integer], values: NDArray[Any], n: int) -> Floats:
    """Return the sums of the values by number, (n,)."""
    return np.bincount(number, values, n).astype(np.float64)


class PartitionSolution(NamedTuple):
    """The result of a partition in a pass.

    Attributes
    ----------
    number : int
        The number of the partition.
    gain : int
        The gain of its best closure, times the factor of the pass.
    inside : (n_held / 8,) uint8
        Which of its splits are in the closure, as packed bits.
    paid : list of (n_levels,)
        The cost of each nested set of splits on its rows.
    """

    number: int
    gain: int
    inside: NDArray[np.uint8]
    paid: list[Floats]


@dataclass(frozen=True, eq=False)
class Pass:
    """Solve a partition's closure at a penalty with moved profits, and price nested sets of splits on its rows.

    Attributes
    ----------
    problem : PartitionProblem
    factor : int
        Multiplies the profits, so that they can be moved in fine integer steps.
    rate : float, optional
        Multiplies the prices. Rounding lowers prices and so can only raise the gain of a closure. If None, no closure
        is computed.
    moved : dict of (n_held,)
        The profit moved off the splits of each partition.
    levels : list of (n,), int
        Nested sets of splits, and their number, as in `cost_of_levels`.
    """

    problem: PartitionProblem
    factor: int
    rate: float | None
    moved: Mapping[int, Integers]
    levels: list[tuple[NDArray[np.uint8], int]]

    def __call__(self, forest: Forest, sample: LocalRows, number: int) -> PartitionSolution:
        """Return the partition's solution."""
        closure = cached_closure(self.problem, forest, sample, number)
        edges = closure.start, closure.need
        gain, inside = 0, np.zeros(len(closure.reached), np.bool_)
        if self.rate is not None:
            profit = closure.profit * self.factor - self.moved[number]
            price = np.minimum(np.floor(closure.price * self.rate), _MAX_PRICE).astype(np.int64)
            gain, inside = kernels.best_closure(closure.parent, profit, price, *edges)
        paid = [kernels.cost_of_levels(level[closure.reached], closure.price, *edges, n) for level, n in self.levels]
        return PartitionSolution(number, int(gain), np.packbits(inside), paid)
