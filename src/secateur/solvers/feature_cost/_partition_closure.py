"""Pruning by feature cost, as it is asked of a part of the rows: its own best closure, and what sets of splits pay.

What is here is sent to where rows are, and answers for them alone: no answer has an entry for a row. The closure of a
part is posed once and kept where it was, for passes to come; if it is gone, it is posed again, and nothing changes.
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
    """What all passes have in common.

    Attributes
    ----------
    token : str
        Names the question: what was posed under another name is forgotten.
    judge : ErrorCounter
    cost : SharedCost
    place : (n_nodes,) int32
        The number of each split, −1 for those left out; those with the same number stay or leave together.
    """

    token: str
    judge: ErrorCounter
    cost: SharedCost
    place: NDArray[np.int32]


class Posed(NamedTuple):
    """The closure of a part: see `Closure`. Only splits its rows come to are in it; `held` has their numbers."""

    held: NDArray[np.int32]
    parent: NDArray[np.int32]
    profit: Whole
    start: Whole
    need: NDArray[np.int32]
    price: Floats


_POSED: dict[tuple[str, int], Posed] = {}


def posed(question: PartitionProblem, forest: Forest, sample: LocalRows, number: int) -> Posed:
    """Return the closure of a part: the one that was kept, or the same anew."""
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
    """Let go of all closures kept in this process."""
    _POSED.clear()


def pose_part(question: PartitionProblem, forest: Forest, sample: LocalRows) -> Posed:
    """Return the closure of a part of the rows; prices are rounded down, if at all."""
    place = question.place
    n = int(place.max(initial=-1)) + 1
    came = node_weight(forest, sample.leaves, np.ones(len(sample))) > 0
    number, head = np.unique(place, return_index=True)  # the first node of each number is above the others
    head = head[number >= 0]
    held = np.flatnonzero(came[head]).astype(np.int32)
    local = np.full(n + 1, -1, np.int32)  # the last is for −1
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
    """Return by how much the splits of each place lower the errors of the part, (n,)."""
    errors = question.judge.errors(forest, sample)
    split = np.flatnonzero(place >= 0)
    profit = np.zeros(n, np.int64)
    np.add.at(profit, place[split], errors[split] - errors[split + 1] - errors[forest.right[split]])
    return profit


@dataclass(frozen=True, eq=False)
class FirstLook:
    """Asks a part which splits its rows come to, and what they would pay if all that need an item shared its price."""

    question: PartitionProblem

    def __call__(self, forest: Forest, sample: LocalRows, number: int) -> tuple[int, NDArray[np.int32], Floats]:
        """Return the number of the part, the splits and what they pay."""
        closure = posed(self.question, forest, sample, number)
        share = closure.price / np.maximum(np.bincount(closure.need, minlength=len(closure.price)), 1)
        node = np.repeat(np.arange(len(closure.held)), np.diff(closure.start))
        return number, closure.held, sums_by(node, share[closure.need], len(closure.held))


def sums_by(number: NDArray[np.integer], values: NDArray[Any], n: int) -> Floats:
    """Return the sums of the values that have each number, (n,)."""
    return np.bincount(number, values, n).astype(np.float64)


class PartitionSolution(NamedTuple):
    """What a part says in a pass: the worth of its best closure, which of its splits are in it, and what levels pay."""

    number: int
    worth: int
    inside: NDArray[np.uint8]
    paid: list[Floats]


@dataclass(frozen=True, eq=False)
class Pass:
    """Asks a part for its best closure at a penalty and moved profits, and what sets of splits would pay there.

    Attributes
    ----------
    question : Question
    factor : int
        What profits are multiplied by, so that what is moved is fine enough.
    rate : float, optional
        What prices are multiplied by. Rounding makes them lower, and closures worth more. Without one, no closure is
        asked for.
    moved : dict of (n_held,)
        By how much the profits of each part are lowered.
    levels : list of (n,), int
        Nested sets of splits, and how many, as in `cost_of_levels`.
    """

    question: PartitionProblem
    factor: int
    rate: float | None
    moved: Mapping[int, Whole]
    levels: list[tuple[NDArray[np.uint8], int]]

    def __call__(self, forest: Forest, sample: LocalRows, number: int) -> PartitionSolution:
        """Return what the part says."""
        closure = posed(self.question, forest, sample, number)
        edges = closure.start, closure.need
        worth, inside = 0, np.zeros(len(closure.held), np.bool_)
        if self.rate is not None:
            profit = closure.profit * self.factor - self.moved[number]
            price = np.minimum(np.floor(closure.price * self.rate), _HIGHEST_PRICE).astype(np.int64)
            worth, inside = kernels.best_closure(closure.parent, profit, price, *edges)
        paid = [kernels.cost_of_levels(level[closure.held], closure.price, *edges, n) for level, n in self.levels]
        return PartitionSolution(number, int(worth), np.packbits(inside), paid)
