"""Route rows to leaves and compute raw scores, bit for bit as the model's library does."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.forest import Forest, Leaves
from secateur.forest.small_trees import rank_splits
from secateur.forest.subforest import Decision, apply_decision, kept_trees, kept_values
from secateur.kernels import CategoryLists, SplitArrays

ZERO = np.float32(1e-35)
"""The largest absolute value that counts as zero for features in `zero_is_missing`, as in LightGBM."""


def route(forest: Forest, X: NDArray[np.floating]) -> Leaves:
    """Return the leaf each row reaches in each tree.

    Parameters
    ----------
    forest : Forest
    X : (n_rows, n_features) array
        Cast to the forest's `input_dtype` before any comparison, as the library does.

    Returns
    -------
    (n_trees, n_rows) array of the smallest unsigned type that fits
        Node ids relative to the root of their tree.
    """
    # Values beyond the range of float32 become infinite.
    with np.errstate(over="ignore"):
        X = np.ascontiguousarray(X, dtype=forest.input_dtype)
    if forest.zero_is_missing:
        X = without_zeros(X, forest.zero_is_missing)
    leaves = np.empty((forest.n_trees, len(X)), leaf_type(forest))
    # Without splits X may have no columns at all.
    if not forest.is_split.any():
        leaves[:] = 0
        return leaves
    splits = splits_of(forest)
    ranked = rank_splits(forest, splits, len(X)) if leaves.dtype == np.uint8 else None
    if ranked is not None:
        kernels.route_small_trees(X, forest.tree_start, *ranked, leaves)
    elif len(forest.categories.row):
        kernels.route_categorical(X, forest.tree_start, splits, category_lists(forest), leaves)
    else:
        kernels.route_numeric(X, forest.tree_start, splits, leaves)
    return leaves


def splits_of(forest: Forest) -> SplitArrays:
    """Return the splits as the kernels take them, with thresholds for `<=`."""
    return SplitArrays(forest.right, forest.feature, inclusive_threshold(forest), forest.default_left)


def category_lists(forest: Forest) -> CategoryLists:
    """Return the categorical splits as the kernels take them."""
    lists = forest.categories
    return CategoryLists(lists.row, lists.start, lists.code, lists.left, lists.other_left)


def without_zeros(X: NDArray[np.floating], columns: tuple[int, ...]) -> NDArray[np.floating]:
    """Return X with NaN instead of zeros in some columns."""
    X = X.copy()
    for column in columns:
        X[np.abs(X[:, column]) <= ZERO, column] = np.nan
    return X


def leaf_type(forest: Forest) -> np.dtype[Any]:
    """Return the smallest unsigned dtype that holds the node ids of every tree."""
    return np.min_scalar_type(int(np.diff(forest.tree_start).max(initial=1)) - 1)


def inclusive_threshold(forest: Forest) -> NDArray[np.float64]:
    """Return thresholds for `<=` that are equivalent to the comparison of the forest.

    x < t is equivalent to x <= the largest float below t. For t = −inf there is no such float; the threshold is NaN,
    which routes no row to the left.
    """
    if forest.comparison == "<=":
        return forest.threshold
    return np.where(forest.threshold == -np.inf, np.nan, np.nextafter(forest.threshold, -np.inf))


def raw_scores(
    forest: Forest,
    leaves: Leaves,
    decision: Decision | None = None,
    offset: NDArray[np.float64] | None = None,
    voters: NDArray[np.bool_] | None = None,
    kept_value: NDArray[np.float64] | None = None,
) -> NDArray[np.floating]:
    """Return the raw scores of a forest, before its link, (n_rows, n_outputs), in its `sum_dtype`.

    Parameters
    ----------
    forest : Forest
    leaves : (n_trees, n_rows)
        Leaves of the unpruned forest.
    decision : Decision, optional
        Return the scores of the pruned forest without building it. The decision must not raise nodes.
    offset : (n_rows, n_outputs), optional
        Initial score of each row, for example from boosting on top of another model.
    voters : (n_trees, n_rows), optional
        Which trees of a mean contribute to a row, for example its out-of-bag trees. Rows without a tree get NaN.
    kept_value : (n_kept, width), optional
        Values of the nodes that the decision keeps, instead of those of the decision.
    """
    keep, value = np.ones(forest.n_nodes, bool), forest.value
    lifted = kernels.lift_to_kept(forest.parent, keep if decision is None else decision.keep)
    if decision is not None:
        keep, value = decision.keep, kept_values(forest, decision, kept_value)
        forest = apply_decision(forest, replace(decision, value=None))
    if forest.aggregation == "median":
        return _weighted_median(forest, leaves, lifted, value, kept_trees(forest, keep))
    base = forest.base.astype(forest.sum_dtype)
    weight = forest.tree_weight
    scaled = forest.addition == "scaled" and len(weight) > 0 and bool((weight == weight[0]).all())
    out = np.tile(np.zeros_like(base) if forest.addition == "scaled" else base, (leaves.shape[1], 1))
    if offset is not None:
        out += offset.astype(forest.sum_dtype)
    if forest.addition == "fours":
        kernels.add_trees_by_fours(leaves, forest.tree_start, lifted, value, weight, out)
    else:
        kernels.add_trees(
            leaves,
            forest.tree_start,
            lifted,
            _around_base(forest, np.flatnonzero(keep), value) if forest.addition == "around_base" else value,
            np.ones_like(weight) if scaled else weight,
            forest.tree_output,
            np.empty((0, 0), bool) if voters is None else voters,
            out,
        )
    if scaled:
        out *= weight[0]
    if forest.addition == "scaled":
        out += base
    if forest.aggregation != "mean":
        return out
    if voters is not None:
        voter_weight = (forest.tree_weight * kept_trees(forest, keep)) @ voters
        with np.errstate(invalid="ignore"):
            return out / (forest.unit * voter_weight)[:, None]
    # The divisor is 0 for an isolation forest grown on single rows; the score is then that of a certain outlier.
    return out / forest.divisor if forest.divisor else np.ones_like(out)


def _around_base(forest: Forest, nodes: NDArray[np.intp], value: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (base + value) − base for the values of some nodes, rounded in `sum_dtype`, (n, width)."""
    tree = np.searchsorted(forest.tree_start, nodes, side="right") - 1
    output = forest.tree_output[tree]
    base = np.where(output[:, None] < 0, forest.base, forest.base[np.maximum(output, 0)][:, None])
    base = base[:, : value.shape[1]].astype(forest.sum_dtype)
    return ((base + value.astype(forest.sum_dtype)) - base).astype(np.float64)


def _weighted_median(
    forest: Forest,
    leaves: Leaves,
    lifted: NDArray[np.int32],
    value: NDArray[np.float64],
    kept: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Return the weighted lower median of the tree values for each row, (n_rows, 1)."""
    trees = np.flatnonzero(kept)
    nodes = lifted[forest.root[trees, None] + leaves[trees]]
    values = value[nodes, 0].T
    order = np.argsort(values, axis=1)
    weight = np.cumsum(forest.tree_weight[trees][order], axis=1)
    # The first value at which the cumulative weight reaches half of the total.
    middle = (weight >= 0.5 * weight[:, -1:]).argmax(axis=1)
    rows = np.arange(len(values))
    return values[rows, order[rows, middle]][:, None]
