"""Convert errors and prices to the same integers in all partitions, from sums over the partitions."""

from dataclasses import dataclass
from math import ceil, floor, log2
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.costs import SharedCost
from secateur.data.row_source import RowSource
from secateur.data.rows import LocalRows
from secateur.forest import Forest
from secateur.problem import Problem
from secateur.solvers.feature_cost._base import judged_by, weights_of_classes
from secateur.solvers.feature_cost._integers import as_whole
from secateur.solvers.feature_cost.closure import Closure, Counts, Reduced, own_items, reduce_splits, same, wrong_weight

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
ClassWeight = Literal["balanced"] | tuple[float, ...] | None
_MOST = 2.0**61
_LARGEST_WEIGHT = 2**20
_MANY_WEIGHTS = 10_000


@dataclass(frozen=True)
class Quantizer:
    """Round values to the nearest multiple of a unit, or down where no common unit represents all of them."""

    unit: float
    down: bool

    def whole(self, values: Floats) -> Whole:
        """Return nonnegative values in units, as integers."""
        found = np.floor(values / self.unit * (1 - 1e-15)) if self.down else np.rint(values / self.unit)
        return found.astype(np.int64)


@dataclass(frozen=True, eq=False)
class ErrorCounter:
    """Count weighted errors of nodes, given the labels they predict.

    Attributes
    ----------
    labels : (n_nodes,)
    class_weight : (n_classes,)
    quantizer : Quantizer
    """

    labels: NDArray[np.integer]
    class_weight: Floats
    quantizer: Quantizer

    def error_weight(self, sample: LocalRows) -> Floats:
        """Return the weight of an error for each row, (n_rows,)."""
        return sample.weight * self.class_weight[sample.y[:, 0]]

    def errors(self, forest: Forest, sample: LocalRows) -> Whole:
        """Return the error of each node as a leaf, in integer units, (n_nodes,)."""
        whole = self.quantizer.whole(self.error_weight(sample)).astype(np.float64)
        return wrong_weight(forest, sample, self.labels, whole).astype(np.int64)

    def wrong(self, forest: Forest, sample: LocalRows) -> Floats:
        """Return the error of each node as a leaf before rounding, (n_nodes,)."""
        return wrong_weight(forest, sample, self.labels, self.error_weight(sample))


@dataclass(frozen=True, eq=False)
class Counted:
    """The errors over all rows, in units of `judge.quantizer.unit`, and the reduced set of splits.

    Attributes
    ----------
    judge : ErrorCounter
    cost : SharedCost
    errors : (n_nodes,)
    wrong : (n_nodes,)
        The errors before rounding, in units of weight.
    splits : Reduced
    exact : bool
        Whether no value was rounded.
    """

    judge: ErrorCounter
    cost: SharedCost
    errors: Whole
    wrong: Floats
    splits: Reduced
    exact: bool


def count_in_parts(problem: Problem, row_source: RowSource, errors: str, class_weight: ClassWeight) -> Counted:
    """Return the errors over all rows and the reduced splits, from sums over the partitions."""
    forest, cost = problem.forest, problem.cost
    if not isinstance(cost, SharedCost):
        raise TypeError(f"The cost {cost.name} is paid node by node; nothing is bought for rows.")
    judge, exact = judge_of(problem, row_source, errors, class_weight)
    total = row_source.total(forest, judge.errors)
    wrong = total.astype(np.float64) * judge.quantizer.unit if exact else row_source.total(forest, judge.wrong)
    splits, _ = reduce_splits(
        forest, total, lambda place, n: row_source.total(forest, NeedCount(cost, place.copy(), n))
    )
    return Counted(judge, cost, total, wrong, splits, exact)


def judge_of(
    problem: Problem, row_source: RowSource, errors: str, class_weight: ClassWeight
) -> tuple[ErrorCounter, bool]:
    """Return the error counter, the same for all partitions, and whether it needs no rounding."""
    forest = problem.forest
    weights = weights_of_classes(problem, class_weight)
    found = row_source.each(forest, weights_found)
    error_weight = np.concatenate([weight * weights[classes] for classes, weight, _ in found])
    quantizer, exact = ruler_for(np.unique(error_weight), complete=all(complete for _, _, complete in found))
    labels = judged_by(problem, errors).astype(np.min_scalar_type(forest.n_classes[0]))
    return ErrorCounter(labels, weights, quantizer), exact


def pose_apart(problem: Problem, errors: str, class_weight: ClassWeight) -> tuple[Counts, Closure]:
    """Return the closure problem in which each tree pays for its own features.

    The result is that of `pose(apart=True)`, computed from sums over rows alone.
    """
    forest, row_source = problem.forest, problem.row_source
    counted = count_in_parts(problem, row_source, errors, class_weight)
    splits = counted.splits
    no_rows = LocalRows(np.empty((forest.n_trees, 0), np.uint8), np.empty((0, 1), np.intp), np.empty(0))
    at_most = float(counted.cost.price_table(forest, no_rows).prices.sum()) * problem.total_weight * forest.n_trees
    scale = 2.0 ** floor(log2(_MOST / 2 / at_most)) if at_most else 1.0
    price = row_source.total(forest, NeedPrice(counted.cost, splits.place, len(splits.parent), scale))
    common = int(np.gcd.reduce(price)) or 1
    price //= common
    most = float(counted.errors[forest.root].sum()) * float(price.sum())
    shift = max(0, ceil(log2(max(most, 1.0) / _MOST)))
    closure = Closure(splits.group, splits.parent, splits.profit, *own_items(price >> shift))
    nothing = np.empty((forest.n_features, 0), np.int32), np.empty((1, 0), np.int64)
    unit = common / scale * 2.0**shift
    exact = counted.exact and shift == 0
    return Counts(counted.errors, counted.wrong, counted.judge.quantizer.unit, *nothing, unit, exact), closure


def weights_found(forest: Forest, sample: LocalRows, number: int) -> tuple[NDArray[np.intp], Floats, bool]:
    """Return the distinct pairs of class and weight of the rows, and True.

    With more than `_MANY_WEIGHTS` pairs, return the largest weight of each class, and False.
    """
    classes = sample.y[:, 0].astype(np.intp)
    pairs = np.unique(np.stack([classes.astype(np.float64), sample.weight]), axis=1)
    if pairs.shape[1] <= _MANY_WEIGHTS:
        return pairs[0].astype(np.intp), pairs[1], True
    largest = np.zeros(forest.n_classes[0])
    np.maximum.at(largest, classes, sample.weight)
    return np.arange(len(largest)), largest, False


def ruler_for(values: Floats, *, complete: bool) -> tuple[Quantizer, bool]:
    """Return a quantizer for values, and whether it rounds none of them.

    Unless `complete`, there are further values, none larger than the largest given.
    """
    if complete:
        whole, unit = as_whole(values, _LARGEST_WEIGHT)
        nearest = Quantizer(unit, down=False)
        if np.array_equal(nearest.whole(values), whole):
            return nearest, same(whole, unit, values)
        return Quantizer(unit, down=True), False
    return Quantizer(float(values.max()) / _LARGEST_WEIGHT, down=True), False


@dataclass(frozen=True, eq=False)
class NeedCount:
    """Count the items that rows first need at each place; `place` (n_nodes,) numbers the splits."""

    cost: SharedCost
    place: NDArray[np.int32]
    n: int

    def __call__(self, forest: Forest, sample: LocalRows) -> Whole:
        """Return the counts, (n,)."""
        resources, prices = self.cost.price_table(forest, sample)
        one_each = np.ones((1, prices.shape[1]), np.int64)
        rows = (sample.leaves, forest.tree_start, forest.parent, forest.feature)
        return kernels.price_needs(*rows, self.place, resources, one_each, self.n)


@dataclass(frozen=True, eq=False)
class NeedPrice:
    """Sum the prices of the items that rows first need at each place, as if each tree paid for its own features.

    Prices are multiplied by `scale` and rounded down to integers.
    """

    cost: SharedCost
    place: NDArray[np.int32]
    n: int
    scale: float

    def __call__(self, forest: Forest, sample: LocalRows) -> Whole:
        """Return the summed prices, (n,)."""
        resources, prices = self.cost.price_table(forest, sample)
        whole = np.floor(prices * sample.weight[:, None] * self.scale).astype(np.int64)
        rows = (sample.leaves, forest.tree_start, forest.parent, forest.feature)
        return kernels.price_needs(*rows, self.place, resources, whole, self.n)
