"""Convert errors and prices to the same integers in all partitions, from sums over the partitions."""

from dataclasses import dataclass
from math import ceil, floor, log2
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.costs import Cost
from secateur.data.row_source import RowSource
from secateur.data.rows import LocalRows
from secateur.forest import Forest
from secateur.problem import Problem
from secateur.solvers.feature_cost._base import class_weights, node_labels
from secateur.solvers.feature_cost._integers import to_integers
from secateur.solvers.feature_cost.closure import (
    Closure,
    Counts,
    Reduced,
    is_exact,
    private_items,
    reduce_splits,
    wrong_weight,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
ClassWeight = Literal["balanced"] | tuple[float, ...] | None
_MAX_PRODUCT = 2.0**61
_LARGEST_WEIGHT = 2**20
_MAX_DISTINCT_WEIGHTS = 10_000


@dataclass(frozen=True)
class Quantizer:
    """Round values to the nearest multiple of a unit, or down where no common unit represents all of them."""

    unit: float
    down: bool

    def to_integers(self, values: Floats) -> Integers:
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

    def errors(self, forest: Forest, sample: LocalRows) -> Integers:
        """Return the error of each node as a leaf, in integer units, (n_nodes,)."""
        integers = self.quantizer.to_integers(self.error_weight(sample)).astype(np.float64)
        return wrong_weight(forest, sample, self.labels, integers).astype(np.int64)

    def wrong(self, forest: Forest, sample: LocalRows) -> Floats:
        """Return the error of each node as a leaf before rounding, (n_nodes,)."""
        return wrong_weight(forest, sample, self.labels, self.error_weight(sample))


@dataclass(frozen=True, eq=False)
class Counted:
    """The errors over all rows, in units of `error_counter.quantizer.unit`, and the reduced set of splits.

    Attributes
    ----------
    error_counter : ErrorCounter
    cost : Cost
    errors : (n_nodes,)
    wrong : (n_nodes,)
        The errors before rounding, in units of weight.
    splits : Reduced
    exact : bool
        Whether no value was rounded.
    """

    error_counter: ErrorCounter
    cost: Cost
    errors: Integers
    wrong: Floats
    splits: Reduced
    exact: bool


def count_in_parts(problem: Problem, row_source: RowSource, errors: str, class_weight: ClassWeight) -> Counted:
    """Return the errors over all rows and the reduced splits, from sums over the partitions."""
    forest, cost = problem.forest, problem.cost
    error_counter, exact = make_error_counter(problem, row_source, errors, class_weight)
    total = row_source.total(forest, error_counter.errors)
    wrong = (
        total.astype(np.float64) * error_counter.quantizer.unit
        if exact
        else row_source.total(forest, error_counter.wrong)
    )
    splits, _ = reduce_splits(
        forest, total, lambda split_index, n: row_source.total(forest, NeedCount(cost, split_index.copy(), n))
    )
    return Counted(error_counter, cost, total, wrong, splits, exact)


def make_error_counter(
    problem: Problem, row_source: RowSource, errors: str, class_weight: ClassWeight
) -> tuple[ErrorCounter, bool]:
    """Return the error counter, the same for all partitions, and whether it needs no rounding."""
    forest = problem.forest
    weights = class_weights(problem, class_weight)
    found = row_source.each(forest, distinct_weights)
    error_weight = np.concatenate([weight * weights[classes] for classes, weight, _ in found])
    quantizer, exact = fit_quantizer(np.unique(error_weight), complete=all(complete for _, _, complete in found))
    labels = node_labels(problem, errors).astype(np.min_scalar_type(forest.n_classes[0]))
    return ErrorCounter(labels, weights, quantizer), exact


def pose_per_tree(problem: Problem, errors: str, class_weight: ClassWeight) -> tuple[Counts, Closure]:
    """Return the closure problem in which each tree pays for its own features.

    The result is that of `pose(per_tree=True)`, computed from sums over rows alone.
    """
    forest, row_source = problem.forest, problem.row_source
    counted = count_in_parts(problem, row_source, errors, class_weight)
    splits = counted.splits
    no_rows = LocalRows(np.empty((forest.n_trees, 0), np.uint8), np.empty((0, 1), np.intp), np.empty(0))
    max_total = float(counted.cost.price_table(forest, no_rows).prices.sum()) * problem.total_weight * forest.n_trees
    scale = 2.0 ** floor(log2(_MAX_PRODUCT / 2 / max_total)) if max_total else 1.0
    price = row_source.total(forest, NeedPrice(counted.cost, splits.split_index, len(splits.parent), scale))
    common = int(np.gcd.reduce(price)) or 1
    price //= common
    most = float(counted.errors[forest.root].sum()) * float(price.sum())
    shift = max(0, ceil(log2(max(most, 1.0) / _MAX_PRODUCT)))
    closure = Closure(splits.group, splits.parent, splits.profit, *private_items(price >> shift))
    empty_table = np.empty((forest.n_features, 0), np.int32), np.empty((1, 0), np.int64)
    unit = common / scale * 2.0**shift
    exact = counted.exact and shift == 0
    error_unit = counted.error_counter.quantizer.unit
    return Counts(counted.errors, counted.wrong, error_unit, *empty_table, unit, exact), closure


def distinct_weights(forest: Forest, sample: LocalRows, number: int) -> tuple[NDArray[np.intp], Floats, bool]:
    """Return the distinct pairs of class and weight of the rows, and True.

    With more than `_MAX_DISTINCT_WEIGHTS` pairs, return the largest weight of each class, and False.
    """
    classes = sample.y[:, 0].astype(np.intp)
    pairs = np.unique(np.stack([classes.astype(np.float64), sample.weight]), axis=1)
    if pairs.shape[1] <= _MAX_DISTINCT_WEIGHTS:
        return pairs[0].astype(np.intp), pairs[1], True
    largest = np.zeros(forest.n_classes[0])
    np.maximum.at(largest, classes, sample.weight)
    return np.arange(len(largest)), largest, False


def fit_quantizer(values: Floats, *, complete: bool) -> tuple[Quantizer, bool]:
    """Return a quantizer for values, and whether it rounds none of them.

    Unless `complete`, there are further values, none larger than the largest given.
    """
    if complete:
        integers, unit = to_integers(values, _LARGEST_WEIGHT)
        nearest = Quantizer(unit, down=False)
        if np.array_equal(nearest.to_integers(values), integers):
            return nearest, is_exact(integers, unit, values)
        return Quantizer(unit, down=True), False
    return Quantizer(float(values.max()) / _LARGEST_WEIGHT, down=True), False


@dataclass(frozen=True, eq=False)
class NeedCount:
    """Count the items that rows first need at each place; `split_index` (n_nodes,) numbers the splits."""

    cost: Cost
    split_index: NDArray[np.int32]
    n: int

    def __call__(self, forest: Forest, sample: LocalRows) -> Integers:
        """Return the counts, (n,)."""
        resources, prices = self.cost.price_table(forest, sample)
        unit_prices = np.ones((1, prices.shape[1]), np.int64)
        rows = (sample.leaves, forest.tree_start, forest.parent, forest.feature)
        return kernels.price_needs(*rows, self.split_index, resources, unit_prices, self.n)


@dataclass(frozen=True, eq=False)
class NeedPrice:
    """Sum the prices of the items that rows first need at each place, as if each tree paid for its own features.

    Prices are multiplied by `scale` and rounded down to integers.
    """

    cost: Cost
    split_index: NDArray[np.int32]
    n: int
    scale: float

    def __call__(self, forest: Forest, sample: LocalRows) -> Integers:
        """Return the summed prices, (n,)."""
        resources, prices = self.cost.price_table(forest, sample)
        integers = np.floor(prices * sample.weight[:, None] * self.scale).astype(np.int64)
        rows = (sample.leaves, forest.tree_start, forest.parent, forest.feature)
        return kernels.price_needs(*rows, self.split_index, resources, integers, self.n)
