"""Prepare small trees for routing many rows: thresholds become ranks, which are compared as small integers."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from secateur.forest import Forest
from secateur.kernels import Cuts, RankedSplits, SplitArrays

A = TypeVar("A", bound=np.generic)

_MOST_CUTS = 2**16 - 2
"""Largest number of thresholds of a feature: two of the 16-bit ranks are for missing values, and for no value."""
_ROWS_PER_SPLIT = 32
"""The rows that a tree needs per split so that sorting the thresholds takes little of the time."""


def rank_splits(forest: Forest, splits: SplitArrays, n_rows: int) -> tuple[RankedSplits, Cuts] | None:
    """Return the splits as intervals of ranks, and the thresholds that define the ranks.

    The forest must have a split, and no tree more than 256 nodes, so that node ids fit into a byte. Returns None if
    following each row is probably faster, because there are too few rows for sorting the thresholds, or too few trees
    for ranking the features of a row. Returns None also if a feature has too many thresholds for 16-bit ranks.
    """
    n_splits = (forest.n_nodes - forest.n_trees) // 2
    if n_rows * forest.n_trees < _ROWS_PER_SPLIT * n_splits:
        return None
    node = np.flatnonzero(forest.is_split)
    node = node[np.lexsort((splits.threshold[node], splits.feature[node]))]
    feature, threshold = splits.feature[node], splits.threshold[node]
    new_feature = _differs(feature)
    # A threshold that is NaN routes no number to the left. It is sorted last and defines no rank.
    number = ~np.isnan(threshold)
    new_cut = (new_feature | _differs(threshold)) & number
    column = np.cumsum(new_feature) - 1
    n_cuts = np.bincount(column[new_cut], minlength=int(column[-1]) + 1)
    if len(n_cuts) > forest.n_trees or n_cuts.max() > _MOST_CUTS:
        return None
    start = np.concatenate([[0], np.cumsum(n_cuts)])
    # The largest rank that is routed left; rank 1 is that of no value.
    high = np.where(number, np.cumsum(new_cut) + 1 - start[column], 1)
    low = ~splits.default_left[node]
    root = np.repeat(forest.root, np.diff(forest.tree_start))
    ranked = RankedSplits(
        np.where(forest.is_split, splits.right - root, 0).astype(np.uint8),
        _at(node, column, np.zeros(forest.n_nodes, np.int32)),
        _at(node, low, np.zeros(forest.n_nodes, np.uint16)),
        _at(node, high - low, np.zeros(forest.n_nodes, np.uint16)),
    )
    return ranked, Cuts(feature[new_feature].astype(np.int64), start, threshold[new_cut])


def _differs(sorted_values: NDArray[np.generic]) -> NDArray[np.bool_]:
    """Return whether each value differs from the one before it."""
    return np.concatenate([[True], sorted_values[1:] != sorted_values[:-1]])


def _at(node: NDArray[np.intp], values: NDArray[np.generic], out: NDArray[A]) -> NDArray[A]:
    """Return `out` with the values of some nodes."""
    out[node] = values
    return out
