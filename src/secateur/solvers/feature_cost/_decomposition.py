"""Define pruning under feature cost in floating point, and decompose it by tree.

With s_h = 1 where node h stays a split, the problem of Nan, Wang and Saligrama (2016) is, in units of one wrong label,

    min Σ_leaves errors + penalty · Σ_items price · max over the splits h that need the item of s_h.

An *item* is a resource bought for a row. A *need* is an item at the first split of a tree that tests it: w_ki^(t) of
the paper. If the price of every item is split among its needs, each tree can be pruned separately, and the sum of the
trees' optimal values is a lower bound on the objective of every pruning, for any split of the prices.

References
----------
Nan, Wang, Saligrama (2016): Optimally Pruning Decision Tree Ensembles With Feature Cost.
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
from secateur.solvers.feature_cost._base import class_weights, node_labels

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
_EPS = float(np.finfo(np.float64).eps)
_MIN_NEEDS_FOR_THREADS = 100_000
"""Below this number of needs, starting threads takes longer than the computation."""
_MAX_LEVELS = 100
"""Maximum number of thresholds tried when rounding a fractional solution."""


@dataclass(frozen=True, eq=False)
class DecomposedProblem:
    """The errors, needs and prices of a pruning problem.

    Attributes
    ----------
    forest : Forest
    leaves : (n_trees, n_rows)
        The leaf of each row in each tree, as in LocalRows.
    errors : (n_nodes,)
        The error of each node as a leaf: wrong labels, in rows of average weight.
    start, item : (n_nodes + 1,), (n_needs,)
        Split v is the first of its tree to need the items `item[start[v] : start[v + 1]]`.
    row : (n_items,)
        The row an item is bought for.
    price : (n_items,)
        The cost of an item at penalty 1, in the unit of the errors.
    unit : float
        The risk of one wrong label of a row of average weight.
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
        """Return the nodes that remain if `split` are the splits, (n_nodes,)."""
        above = self.forest.parent
        return (above == -1) | split[above]

    def bought(self, split: Bools) -> Bools:
        """Return the items that the splits need, (n_items,)."""
        bought = np.zeros(len(self.price), bool)
        bought[self.item[np.repeat(split, np.diff(self.start))]] = True
        return bought

    def value(self, split: Bools) -> tuple[float, float]:
        """Return the errors and the price of a pruning."""
        return float(self.errors[self.keep(split) & ~split].sum()), float(self.price[self.bought(split)].sum())

    def objective(self, split: Bools, penalty: float) -> float:
        """Return errors + penalty · price of a pruning."""
        errors, price = self.value(split)
        return errors + penalty * price


class DecomposedSolution(NamedTuple):
    """A pruning for one penalty, with a certificate.

    Attributes
    ----------
    split : (n_nodes,) bool
    bound : float
        A lower bound on errors + penalty · price of every pruning.
    integral : bool
        Whether the solution of the linear program was a pruning without rounding.
    iterations : int
    """

    split: Bools
    bound: float
    integral: bool
    iterations: int


def decompose(problem: Problem, errors: str, class_weight: object, *, per_tree: bool = False) -> DecomposedProblem:
    """Return the decomposed problem, without items that have no price.

    With `per_tree` each tree pays for its own features.
    """
    forest, sample = problem.forest, problem.sample
    labels, error_weight_of_class = node_labels(problem, errors), class_weights(problem, class_weight)
    mean = sample.total_weight / len(sample)
    error_weight = sample.weight * error_weight_of_class[sample.y[:, 0]] / mean
    counts = class_stats(forest, sample.leaves, sample.y, error_weight).counts
    wrong = np.maximum(counts.sum(axis=1) - counts[np.arange(forest.n_nodes), labels], 0.0)
    resources, prices = problem.price_table
    n_resources = prices.shape[1]
    all_nodes = np.arange(forest.n_nodes, dtype=np.int32)
    rows = (sample.leaves, forest.tree_start, forest.parent, forest.feature, all_nodes, resources)
    n_needs = kernels.price_needs(*rows, np.ones((1, n_resources), np.int64), forest.n_nodes)
    start = np.concatenate([[0], np.cumsum(n_needs)])
    item, key = kernels.list_needs(*rows, n_resources, start)
    if per_tree:
        item, key = np.arange(len(item), dtype=np.int32), key[item]
    else:
        # Sort the items by row and resource.
        key, index = np.unique(key, return_inverse=True)
        item = index.astype(np.int32)[item]
    row, resource = np.divmod(key, max(n_resources, 1))
    price = prices[row if len(prices) > 1 else 0, resource] * sample.weight[row] / mean * forest.n_trees
    unit = 1 / (len(sample) * max(forest.n_trees, 1))
    decomposed = DecomposedProblem(forest, sample.leaves, wrong, start, item, row, price, unit)
    return _without(decomposed, price <= 0)


def _without(decomposed: DecomposedProblem, free: Bools) -> DecomposedProblem:
    """Return the problem without the items marked in `free` (n_items,)."""
    number = np.cumsum(~free, dtype=np.int32) - 1
    kept = ~free[decomposed.item]
    start = np.concatenate([[0], np.cumsum(kept)])[decomposed.start]
    return replace(
        decomposed,
        start=start,
        item=number[decomposed.item[kept]],
        row=decomposed.row[~free],
        price=decomposed.price[~free],
    )


def merged(decomposed: DecomposedProblem) -> DecomposedProblem:
    """Return the problem with items that the same splits need merged into one."""
    item_class, n_classes = kernels.equal_items(len(decomposed.price), decomposed.start, decomposed.item)
    first = np.full(n_classes, -1, np.int64)
    first[item_class[::-1]] = np.arange(len(item_class))[::-1]
    price = np.bincount(item_class, decomposed.price, n_classes).astype(np.float64)
    rest = np.ones(len(item_class), bool)
    rest[first] = False
    # Classes are numbered in the order of their first items, so `price` is aligned with the remaining items.
    return replace(_without(decomposed, rest), price=price)


def cheapest(decomposed: DecomposedProblem, price: Floats) -> tuple[Floats, Bools]:
    """Return the cost of the cheapest pruning of each tree at these prices of its needs, and the splits of all trees.

    Trees are pruned in parallel threads if there are many needs.
    """
    forest = decomposed.forest
    split = np.empty(forest.n_nodes, bool)
    arrays = (forest.tree_start, forest.parent, forest.right, decomposed.errors, decomposed.start, price, split)
    n_parts = min(forest.n_trees, cpu_count() or 1)
    if n_parts < 2 or len(price) < _MIN_NEEDS_FOR_THREADS:
        return cheapest_trees(0, forest.n_trees, *arrays), split
    cuts = np.linspace(0, forest.n_trees, n_parts + 1).astype(int).tolist()
    with ThreadPoolExecutor(n_parts) as pool:
        tree_costs = list(pool.map(lambda first, stop: cheapest_trees(first, stop, *arrays), cuts[:-1], cuts[1:]))
    return np.concatenate(tree_costs), split


def split_prices(decomposed: DecomposedProblem, penalty: float, proportion: Floats) -> Floats:
    """Return prices of the needs, (n_needs,), that sum to the price of every item, split by `proportion`.

    Items whose proportions are all 0 are split equally.
    """
    proportion = np.maximum(proportion, 0.0)
    n_items = len(decomposed.price)
    total = np.bincount(decomposed.item, proportion, n_items)
    number = np.bincount(decomposed.item, minlength=n_items)
    with np.errstate(divide="ignore", invalid="ignore"):
        fraction = np.where(
            total[decomposed.item] > 0, proportion / total[decomposed.item], 1 / number[decomposed.item]
        )
    return penalty * decomposed.price[decomposed.item] * fraction


def lower_bound(decomposed: DecomposedProblem, tree_costs: Floats) -> float:
    """Return a lower bound on errors + penalty · price from the trees' optimal values, corrected for rounding.

    All summands are nonnegative, so each addition has a relative error of at most 2⁻⁵³.
    """
    n_additions = np.diff(decomposed.start).max(initial=0) + np.diff(decomposed.forest.tree_start).max(initial=0)
    n_shares = np.bincount(decomposed.item).max(initial=0)
    return float(tree_costs.sum()) * (1 - _EPS * float(n_additions + n_shares + len(tree_costs) + 8))


def reoptimised(decomposed: DecomposedProblem, split: Bools) -> Bools:
    """Return the smallest of the best prunings that need no item beyond those of this pruning."""
    missing = ~decomposed.bought(split)[decomposed.item]
    return cheapest(decomposed, np.where(missing, np.inf, 0.0))[1]


def is_integral(kept_fraction: Floats) -> bool:
    """Return whether every split is kept or removed, within 1e-6."""
    return bool((np.minimum(kept_fraction, 1 - kept_fraction) <= 1e-6).all())


def rounded(decomposed: DecomposedProblem, kept_fraction: Floats, penalty: float) -> Bools:
    """Return the best pruning among the thresholds of a fractional solution `kept_fraction` in [0, 1], (n_nodes,).

    `kept_fraction` does not increase from a split to its children, so the splits above any threshold form a pruning.
    The objective of `kept_fraction` is the average of the objectives over all thresholds, so some threshold is at least
    as good. At most `_MAX_LEVELS` thresholds are tried.
    """
    levels = np.unique(kept_fraction[kept_fraction > 1e-6].round(9))
    levels = np.append(levels[np.linspace(0, len(levels) - 1, min(len(levels), _MAX_LEVELS)).astype(int)], 2.0)
    prunings = [kept_fraction >= level - 1e-7 for level in levels]
    return min(prunings, key=lambda split: decomposed.objective(split, penalty))


def largest_penalty(decomposed: DecomposedProblem, solve: Callable[[float], DecomposedSolution]) -> float:
    """Return the penalty from which on nothing is bought, or 0 if nothing is worth buying.

    By Newton's method on the ratio of errors saved to price (Dinkelbach's method).
    """
    errors_at_roots = decomposed.value(reoptimised(decomposed, np.zeros(decomposed.forest.n_nodes, bool)))[0]
    errors, price = decomposed.value(reoptimised(decomposed, decomposed.forest.is_split))
    penalty = 0.0
    while price > 0 and (errors_at_roots - errors) / price > penalty * (1 + 1e-9):
        penalty = (errors_at_roots - errors) / price
        errors, price = decomposed.value(solve(penalty).split)
    return penalty
