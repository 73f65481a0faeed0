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
from secateur.costs import SharedCost
from secateur.data.rows import LocalRows
from secateur.forest import Forest
from secateur.forest.node_sums import node_weight
from secateur.solvers.feature_cost._partition_integers import ErrorCounter
from secateur.solvers.feature_cost.closure import merge_items

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
_MOST_EDGES = 30_000_000
_HIGHEST_PRICE = 2.0**60
_EPS = 2.220446049250313e-16


@dataclass(frozen=True, eq=False)
class PartitionProblem:
    """The facts common to all passes.

    Attributes
    ----------
    token : str
        Identifies the problem; cached closures with another token are dropped.
    judge : ErrorCounter
    cost : SharedCost
    place : (n_nodes,) int32
        The number of each split, −1 for dropped ones; splits with the same number are kept or removed together.
    """

    token: str
    judge: ErrorCounter
    cost: SharedCost
    place: NDArray[np.int32]


class Posed(NamedTuple):
    """The closure problem of a partition, as in `Closure`.

    It contains only splits that the partition's rows reach; `held` has their numbers.
    """

    held: NDArray[np.int32]
    parent: NDArray[np.int32]
    profit: Whole
    start: Whole
    need: NDArray[np.int32]
    price: Floats


_POSED: dict[tuple[str, int], Posed] = {}


def posed(question: PartitionProblem, forest: Forest, sample: LocalRows, number: int) -> Posed:
    """Return the closure problem of a partition, from the cache or rebuilt."""
    key = question.token, number
    if key not in _POSED:
        if any(token != question.token for token, _ in _POSED):
            forget()
        closure = pose_part(question, forest, sample)
        if sum(len(other.need) for other in _POSED.values()) + len(closure.need) > _MOST_EDGES:
            return closure
        _POSED[key] = closure
    return _POSED[key]


def forget() -> None:
    """Clear the closure problems cached in this process."""
    _POSED.clear()


def pose_part(question: PartitionProblem, forest: Forest, sample: LocalRows) -> Posed:
    """Return the closure problem of a partition; prices are lowered to absorb rounding errors."""
    place = question.place
    n = int(place.max(initial=-1)) + 1
    came = node_weight(forest, sample.leaves, np.ones(len(sample))) > 0
    # In preorder the first node of each number is an ancestor of the others.
    number, head = np.unique(place, return_index=True)
    head = head[number >= 0]
    held = np.flatnonzero(came[head]).astype(np.int32)
    # The extra last entry is what index −1 reads.
    local = np.full(n + 1, -1, np.int32)
    local[held] = np.arange(len(held))
    here = local[place]
    above = forest.parent[head[held]]
    parent = np.where(above == -1, -1, here[above]).astype(np.int32)
    resources, prices = question.cost.price_table(forest, sample)
    rows = (sample.leaves, forest.tree_start, forest.parent, forest.feature)
    one_each = np.ones((1, prices.shape[1]), np.int64)
    size = kernels.price_needs(*rows, here, resources, one_each, len(held))
    start = np.concatenate([[0], np.cumsum(size)])
    need, key = kernels.list_needs(*rows, here, resources, prices.shape[1], start)
    row, resource = np.divmod(key, max(prices.shape[1], 1))
    dear = prices[row if len(prices) > 1 else 0, resource] * sample.weight[row]
    start, need, price, n_merged = merge_items(start, need, dear)
    price = price * (1 - _EPS * (n_merged + 8))
    return Posed(held, parent, _profits(question, forest, sample, here, len(held)), start, need, price)


def _profits(question: PartitionProblem, forest: Forest, sample: LocalRows, place: NDArray[np.int32], n: int) -> Whole:
    """Return the reduction of the partition's errors by the splits of each number, (n,)."""
    errors = question.judge.errors(forest, sample)
    split = np.flatnonzero(place >= 0)
    profit = np.zeros(n, np.int64)
    np.add.at(profit, place[split], errors[split] - errors[split + 1] - errors[forest.right[split]])
    return profit


@dataclass(frozen=True, eq=False)
class FirstLook:
    """Report the splits that a partition's rows reach, and their costs with item prices split equally."""

    question: PartitionProblem

    def __call__(self, forest: Forest, sample: LocalRows, number: int) -> tuple[int, NDArray[np.int32], Floats]:
        """Return the number of the partition, its splits (n_held,), and the price each pays (n_held,)."""
        closure = posed(self.question, forest, sample, number)
        share = closure.price / np.maximum(np.bincount(closure.need, minlength=len(closure.price)), 1)
        node = np.repeat(np.arange(len(closure.held)), np.diff(closure.start))
        return number, closure.held, sums_by(node, share[closure.need], len(closure.held))


def sums_by(number: NDArray[np.integer], values: NDArray[Any], n: int) -> Floats:
    """Return the sums of the values by number, (n,)."""
    return np.bincount(number, values, n).astype(np.float64)


class PartitionSolution(NamedTuple):
    """The result of a partition in a pass.

    Attributes
    ----------
    number : int
        The number of the partition.
    worth : int
        The gain of its best closure, times the factor of the pass.
    inside : (n_held / 8,) uint8
        Which of its splits are in the closure, as packed bits.
    paid : list of (n_levels,)
        The cost of each nested set of splits on its rows.
    """

    number: int
    worth: int
    inside: NDArray[np.uint8]
    paid: list[Floats]


@dataclass(frozen=True, eq=False)
class Pass:
    """Solve a partition's closure at a penalty with moved profits, and price nested sets of splits on its rows.

    Attributes
    ----------
    question : PartitionProblem
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

    question: PartitionProblem
    factor: int
    rate: float | None
    moved: Mapping[int, Whole]
    levels: list[tuple[NDArray[np.uint8], int]]

    def __call__(self, forest: Forest, sample: LocalRows, number: int) -> PartitionSolution:
        """Return the partition's solution."""
        closure = posed(self.question, forest, sample, number)
        edges = closure.start, closure.need
        worth, inside = 0, np.zeros(len(closure.held), np.bool_)
        if self.rate is not None:
            profit = closure.profit * self.factor - self.moved[number]
            price = np.minimum(np.floor(closure.price * self.rate), _HIGHEST_PRICE).astype(np.int64)
            worth, inside = kernels.best_closure(closure.parent, profit, price, *edges)
        paid = [kernels.cost_of_levels(level[closure.held], closure.price, *edges, n) for level, n in self.levels]
        return PartitionSolution(number, int(worth), np.packbits(inside), paid)
