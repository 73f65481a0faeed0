"""Check exactly whether the trees of a forest keep its monotonic constraints.

A sum, mean or median of trees is monotone in a feature if every tree is. A tree is monotone if the values of two leaves
are in order whenever a change of the feature alone can move a row from one to the other: their regions share a value
of every other feature, be it a number, a category or a missing value. Missing values of the constrained feature are
not ordered. Leaves that no row can reach do not count.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.forest import Forest, check_forest
from secateur.forest.ranks import infinite_ranks, last_left, ranks
from secateur.forest.routing import ZERO


@dataclass(frozen=True)
class MonotonicityViolation:
    """Describe how a tree violates the constraint on a feature.

    Attributes
    ----------
    feature, tree : int
    size : float
        The largest change of the tree's contribution (tree weight times leaf value) in the wrong direction.
    """

    feature: int
    tree: int
    size: float


@dataclass(frozen=True)
class MonotonicityCheck:
    """Hold the result of `check_monotonic`.

    Attributes
    ----------
    features : tuple of int
        The constrained features; empty if the model has no constraints.
    violations : tuple of MonotonicityViolation
        One for each tree and feature that violate a constraint, the largest first.
    """

    features: tuple[int, ...]
    violations: tuple[MonotonicityViolation, ...]

    @property
    def holds(self) -> bool:
        """Whether every tree keeps every constraint."""
        return not self.violations


def check_monotonicity(forest: Forest) -> MonotonicityCheck:
    """Check every tree of a forest against the constraints in `forest.monotone`.

    The order of categories has no meaning, so a constraint on a feature with categorical splits is not checked. Of a
    binary classifier with two outputs the second is checked, of all other forests every output.

    The check takes O(n_leaves²) per tree at most, and O(n_leaves · depth) if the leaves on both sides of every
    constrained split do not overlap in value.
    """
    check_forest(forest)
    sign = np.zeros(forest.n_features, np.int8) if forest.monotone is None else forest.monotone.copy()
    categorical = forest.is_categorical
    sign[forest.feature[categorical]] = 0
    excess = np.zeros(forest.n_nodes)
    if sign.any():
        tests = _split_tests(forest)
        region = _whole_space(forest, np.unique(forest.feature[categorical]))
        for value in _contributions(forest):
            excess = np.maximum(excess, kernels.order_violations(tests, region, sign, value))
    return MonotonicityCheck(tuple(np.flatnonzero(sign).tolist()), _violations(forest, excess))


def _contributions(forest: Forest) -> NDArray[np.float64]:
    """Return tree weight times value of every node, one row for each output that is checked, (n_rows, n_nodes)."""
    value = forest.value[:, 1:] if forest.n_classes == (2,) and forest.value.shape[1] == 2 else forest.value
    weight = np.repeat(forest.tree_weight, np.diff(forest.tree_start))
    return np.ascontiguousarray((weight[:, None] * value).T)


def _split_tests(forest: Forest) -> kernels.SplitTests:
    last, lists = last_left(forest), forest.categories
    # No number from -ZERO to ZERO reaches a feature for which zeros are missing, so a threshold among them separates
    # the numbers below from those above.
    zero = int(ranks(np.array([ZERO], forest.input_dtype))[0])
    snapped = np.isin(forest.feature, forest.zero_is_missing) & (last >= -zero) & (last <= zero)
    return kernels.SplitTests(
        forest.tree_start,
        forest.right,
        forest.parent,
        forest.feature,
        forest.default_left,
        np.where(snapped, -zero - 1, last),
        kernels.CategoryLists(
            lists.row if len(lists.row) else np.full(forest.n_nodes, -1, np.int32),
            lists.start,
            lists.code,
            lists.left,
            lists.other_left,
        ),
    )


def _whole_space(forest: Forest, categorical: NDArray[np.int32]) -> kernels.Region:
    """Return the region of all rows; `categorical` are the features with categorical splits."""
    low, high = infinite_ranks(forest)
    probes = [_probes(forest, feature) for feature in categorical.tolist()]
    probe = np.concatenate([np.empty(0, forest.input_dtype), *probes])
    sizes = np.zeros(forest.n_features + 1, np.int64)
    sizes[categorical + 1] = [len(numbers) for numbers in probes]
    return kernels.Region(
        low=np.full(forest.n_features, low, np.int64),
        high=np.full(forest.n_features, high, np.int64),
        missing=np.ones(forest.n_features, bool),
        probe_start=np.cumsum(sizes),
        probe=probe.astype(np.float64),
        probe_rank=ranks(probe),
        violated=np.zeros(len(probe), np.int64),
        saved_low=np.empty(forest.n_nodes, np.int64),
        saved_high=np.empty(forest.n_nodes, np.int64),
        saved_missing=np.empty(forest.n_nodes, bool),
    )


def _probes(forest: Forest, feature: int) -> NDArray[np.floating]:
    """Return at least one number of each set that all splits on a feature with categorical splits route alike.

    Such sets are bounded by thresholds and by the first and last number of each listed category; the largest number of
    every set is returned.
    """
    lists, dtype, infinity = forest.categories, np.dtype(forest.input_dtype), np.array(np.inf, forest.input_dtype)
    on_feature = forest.feature == feature
    used = np.isin(np.arange(len(lists.start) - 1), lists.row[on_feature])
    code = np.unique(lists.code[np.repeat(used, np.diff(lists.start))]).astype(np.float64)
    # The numbers of category k end before k + 1 if k >= 0, else at k. Those of category k - 1 end before its first.
    category = np.concatenate([code, code - 1])
    last = np.where(category >= 0, np.nextafter((category + 1).astype(dtype), -infinity), category.astype(dtype))
    with np.errstate(over="ignore"):
        threshold = forest.threshold[on_feature & (lists.row == -1)].astype(dtype)
    before_zero = np.nextafter(-ZERO.astype(dtype), -infinity)
    probes = [code.astype(dtype), last, threshold, np.nextafter(threshold, -infinity), [before_zero, infinity]]
    numbers: NDArray[np.floating] = np.unique(np.concatenate(probes))
    return numbers[np.abs(numbers) > ZERO] if feature in forest.zero_is_missing else numbers


def _violations(forest: Forest, excess: NDArray[np.float64]) -> tuple[MonotonicityViolation, ...]:
    """Return the largest violation of each feature in each tree."""
    sizes: dict[tuple[int, int], float] = {}
    for v in np.flatnonzero(excess > 0).tolist():
        key = int(forest.feature[v]), int(np.searchsorted(forest.tree_start, v, side="right")) - 1
        sizes[key] = max(sizes.get(key, 0.0), float(excess[v]))
    found = [MonotonicityViolation(feature, tree, size) for (feature, tree), size in sizes.items()]
    return tuple(sorted(found, key=lambda violation: -violation.size))
