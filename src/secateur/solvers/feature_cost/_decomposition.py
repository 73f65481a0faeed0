"""Pruning with feature cost in real numbers: what nodes add as leaves, what rows buy where, and what that proves.

With s_h = 1 where node h stays a split, the problem of Nan, Wang and Saligrama 2016 is, in units of one wrong label,

    min Σ_leaves errors + penalty · Σ_items price · max over the splits h that need the item of s_h.

A *need* is an item, a resource bought for a row, at the first split of a tree that asks for it: w_ki^(t) of the paper.
If the price of every item is shared out among its needs, each tree can be pruned alone, and the sum of what the trees
cost then is a lower bound for all prunings together, whatever the shares.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from os import cpu_count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.forest import Forest
from secateur.forest.node_sums import class_stats
from secateur.kernels.feature_cost.tree_prices import cheapest_trees
from secateur.problem import Problem
from secateur.solvers.feature_cost._base import judged_by, weights_of_classes

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
_EPS = float(np.finfo(np.float64).eps)
_FEW = 100_000
"""Needs that are priced sooner than a thread starts."""
_MOST_LEVELS = 100
"""How many roundings of a fractional solution are tried at most."""


@dataclass(frozen=True, eq=False)
class DecomposedProblem:
    """Errors, needs and prices.

    Attributes
    ----------
    forest : Forest
    leaves : (n_trees, n_rows)
        Where rows end, as in a LocalRows.
    errors : (n_nodes,)
        What each node adds as a leaf: wrong labels, in rows of average weight.
    start, item : (n_nodes + 1,), (n_needs,)
        Splits v need the items `item[start[v] : start[v + 1]]` first.
    row : (n_items,)
        The row an item is bought for.
    price : (n_items,)
        What an item adds at penalty 1, in the unit of the errors.
    unit : float
        What one wrong label of a row of average weight adds to the risk.
    """

    forest: Forest
    leaves: NDArray[np.unsignedinteger]
    errors: Floats
    start: NDArray[np.int64]
    item: NDArray[np.int32]
    row: NDArray[np.int64]
    price: Floats
    unit: float

    @property
    def node(self) -> NDArray[np.intp]:
        """The split of each need, (n_needs,)."""
        return np.repeat(np.arange(self.forest.n_nodes), np.diff(self.start))

    def keep(self, split: Bools) -> Bools:
        """Return the nodes that are there if these are the splits, (n_nodes,)."""
        above = self.forest.parent
        return (above == -1) | split[above]

    def bought(self, split: Bools) -> Bools:
        """Return the items that splits need, (n_items,)."""
        bought = np.zeros(len(self.price), bool)
        bought[self.item[np.repeat(split, np.diff(self.start))]] = True
        return bought

    def value(self, split: Bools) -> tuple[float, float]:
        """Return errors and price of a pruning."""
        return float(self.errors[self.keep(split) & ~split].sum()), float(self.price[self.bought(split)].sum())

    def objective(self, split: Bools, penalty: float) -> float:
        """Return errors + penalty · price of a pruning."""
        errors, price = self.value(split)
        return errors + penalty * price


class DecomposedSolution(NamedTuple):
    """A pruning for one penalty.

    Attributes
    ----------
    split : (n_nodes,) bool
    bound : float
        No pruning has errors + penalty · price below it.
    integral : bool
        Whether the solution of the linear program was a pruning as it stood.
    iterations : int
    """

    split: Bools
    bound: float
    integral: bool
    iterations: int


def ask(problem: Problem, errors: str, class_weight: object, *, apart: bool = False) -> DecomposedProblem:
    """Return the question; `apart` makes each tree pay for itself. Items without a price are left out."""
    forest, sample = problem.forest, problem.sample
    labels, of_class = judged_by(problem, errors), weights_of_classes(problem, class_weight)
    mean = sample.total_weight / len(sample)
    error_weight = sample.weight * of_class[sample.y[:, 0]] / mean
    counts = class_stats(forest, sample.leaves, sample.y, error_weight).counts
    wrong = np.maximum(counts.sum(axis=1) - counts[np.arange(forest.n_nodes), labels], 0.0)
    resources, prices = problem.price_table
    n_resources = prices.shape[1]
    every = np.arange(forest.n_nodes, dtype=np.int32)
    rows = (sample.leaves, forest.tree_start, forest.parent, forest.feature, every, resources)
    n_needs = kernels.price_needs(*rows, np.ones((1, n_resources), np.int64), forest.n_nodes)
    start = np.concatenate([[0], np.cumsum(n_needs)])
    item, key = kernels.list_needs(*rows, n_resources, start)
    if apart:
        item, key = np.arange(len(item), dtype=np.int32), key[item]
    else:
        key, place = np.unique(key, return_inverse=True)  # items in the order of rows and resources
        item = place.astype(np.int32)[item]
    row, resource = np.divmod(key, max(n_resources, 1))
    price = prices[row if len(prices) > 1 else 0, resource] * sample.weight[row] / mean * forest.n_trees
    unit = 1 / (len(sample) * max(forest.n_trees, 1))
    question = DecomposedProblem(forest, sample.leaves, wrong, start, item, row, price, unit)
    return _without(question, price <= 0)


def _without(question: DecomposedProblem, free: Bools) -> DecomposedProblem:
    """Return the question without some items."""
    number = np.cumsum(~free, dtype=np.int32) - 1
    stays = ~free[question.item]
    start = np.concatenate([[0], np.cumsum(stays)])[question.start]
    return replace(
        question, start=start, item=number[question.item[stays]], row=question.row[~free], price=question.price[~free]
    )


def merged(question: DecomposedProblem) -> DecomposedProblem:
    """Return the question with one item in place of all that the same splits need."""
    of, n_classes = kernels.equal_items(len(question.price), question.start, question.item)
    first = np.full(n_classes, -1, np.int64)
    first[of[::-1]] = np.arange(len(of))[::-1]
    price = np.bincount(of, question.price, n_classes).astype(np.float64)
    rest = np.ones(len(of), bool)
    rest[first] = False
    return replace(_without(question, rest), price=price)  # classes are numbered in the order of their first items


def cheapest(question: DecomposedProblem, price: Floats) -> tuple[Floats, Bools]:
    """Return what the cheapest pruning of each tree costs if its needs have these prices, and the splits of all.

    Trees are pruned side by side.
    """
    forest = question.forest
    split = np.empty(forest.n_nodes, bool)
    arrays = (forest.tree_start, forest.parent, forest.right, question.errors, question.start, price, split)
    n_parts = min(forest.n_trees, cpu_count() or 1)
    if n_parts < 2 or len(price) < _FEW:
        return cheapest_trees(0, forest.n_trees, *arrays), split
    cuts = np.linspace(0, forest.n_trees, n_parts + 1).astype(int).tolist()
    with ThreadPoolExecutor(n_parts) as pool:
        worth = list(pool.map(lambda first, stop: cheapest_trees(first, stop, *arrays), cuts[:-1], cuts[1:]))
    return np.concatenate(worth), split


def share_out(question: DecomposedProblem, penalty: float, wish: Floats) -> Floats:
    """Return prices of the needs, (n_needs,), in proportion to a wish, that add up to the price of every item."""
    wish = np.maximum(wish, 0.0)
    n_items = len(question.price)
    total = np.bincount(question.item, wish, n_items)
    number = np.bincount(question.item, minlength=n_items)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(total[question.item] > 0, wish / total[question.item], 1 / number[question.item])
    return penalty * question.price[question.item] * share


def lower_bound(question: DecomposedProblem, worth: Floats) -> float:
    """Return a bound on errors + penalty · price from what the trees cost, with room for all rounding on the way.

    Everything summed is at least 0, so that every addition is wrong by at most a share of 2⁻⁵³ of its result.
    """
    n_additions = np.diff(question.start).max(initial=0) + np.diff(question.forest.tree_start).max(initial=0)
    n_shares = np.bincount(question.item).max(initial=0)
    return float(worth.sum()) * (1 - _EPS * float(n_additions + n_shares + len(worth) + 8))


def tidied(question: DecomposedProblem, split: Bools) -> Bools:
    """Return the smallest of the best prunings that need nothing more than this one."""
    missing = ~question.bought(split)[question.item]
    return cheapest(question, np.where(missing, np.inf, 0.0))[1]


def is_integral(stays: Floats) -> bool:
    """Return whether all splits stay or go, within 1e-6."""
    return bool((np.minimum(stays, 1 - stays) <= 1e-6).all())


def rounded(question: DecomposedProblem, stays: Floats, penalty: float) -> Bools:
    """Return the best of the prunings that keep the splits above a level, from shares between 0 and 1.

    Shares do not rise from a split to those below it, so every level is a pruning; and the objective is, as a function
    of the shares, the average over all levels, so one of them is no worse than the shares themselves.
    """
    levels = np.unique(stays[stays > 1e-6].round(9))
    levels = np.append(levels[np.linspace(0, len(levels) - 1, min(len(levels), _MOST_LEVELS)).astype(int)], 2.0)
    prunings = [stays >= level - 1e-7 for level in levels]
    return min(prunings, key=lambda split: question.objective(split, penalty))


def largest_penalty(question: DecomposedProblem, solve: Callable[[float], DecomposedSolution]) -> float:
    """Return the penalty from which on nothing is bought, 0 if nothing is worth a price: Newton's method on ratios."""
    nothing = question.value(tidied(question, np.zeros(question.forest.n_nodes, bool)))[0]
    errors, price = question.value(tidied(question, question.forest.is_split))
    penalty = 0.0
    while price > 0 and (nothing - errors) / price > penalty * (1 + 1e-9):
        penalty = (nothing - errors) / price
        errors, price = question.value(solve(penalty).split)
    return penalty
