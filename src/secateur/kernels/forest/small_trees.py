"""Route rows through small trees split by split: one split is applied to many rows at once.

Following a row from the root needs one dependent memory access per level. Here every split is applied to a whole block
of rows instead, which takes more comparisons, but compilers turn them into vector instructions on 8- and 16-bit
integers. Features are replaced by ranks for that, among the thresholds and categories of the forest.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from secateur.kernels._jit import kernel

_BLOCK = 1024
"""Rows per block: their ranks stay in the processor's cache while all trees are applied to them."""

_LOG_BITS, _LAST_BIT, _ONE = np.uint16(6), np.uint16(63), np.uint64(1)


class Cuts(NamedTuple):
    """The numbers that define ranks, for each column of ranks.

    Attributes
    ----------
    feature : (n_columns,) int64
        The feature of each column. A feature with numeric and categorical splits has two columns.
    start : (n_columns + 1,) int64
        Column k has the cuts `value[start[k]:start[k + 1]]`.
    value : (n_cuts,) float64
        Sorted within each column.
    """

    feature: NDArray[np.int64]
    start: NDArray[np.int64]
    value: NDArray[np.float64]


class RankedSplits(NamedTuple):
    """Splits as sets of ranks, all but `flags` (n_nodes,).

    A missing value has rank 0, and a number 2 plus the number of cuts below it. A numeric split routes a row left if
    `low <= rank <= low + width`, a categorical one if bit `rank` of its flags is set.

    Attributes
    ----------
    right : uint8
        The right child, counted from the root of the tree; 0 at a leaf.
    column : int32
        The column of ranks.
    flags_at : int32
        The first word of the flags of a categorical split, -1 at a numeric one.
    low, width : uint16
        The interval of a numeric split; `width` of a categorical split is its number of words.
    flags : uint64
        64 flags per word, the lowest bit first.
    """

    right: NDArray[np.uint8]
    column: NDArray[np.int32]
    flags_at: NDArray[np.int32]
    low: NDArray[np.uint16]
    width: NDArray[np.uint16]
    flags: NDArray[np.uint64]


@kernel
def route_small_trees(
    X: np.ndarray, tree_start: np.ndarray, splits: RankedSplits, cuts: Cuts, leaves: np.ndarray
) -> None:
    """Write to `leaves[t, i]`, of uint8, the leaf that row i reaches in tree t, counted from the root of the tree."""
    n_rows = X.shape[0]
    rank = np.empty((cuts.feature.shape[0], min(_BLOCK, n_rows)), np.uint16)
    x, position = np.empty(rank.shape[1]), np.empty(rank.shape[1], np.uint64)
    for first in range(0, n_rows, _BLOCK):
        last = min(first + _BLOCK, n_rows)
        for k in range(cuts.feature.shape[0]):
            feature = cuts.feature[k]
            for i in range(first, last):
                x[i - first] = X[i, feature]
            rank_values(x[: last - first], cuts.value[cuts.start[k] : cuts.start[k + 1]], position, rank[k])
        for tree in range(tree_start.shape[0] - 1):
            descend_block(tree_start[tree], tree_start[tree + 1], splits, rank, leaves[tree, first:last])


@kernel
def rank_values(x: np.ndarray, cuts: np.ndarray, position: np.ndarray, rank: np.ndarray) -> None:
    """Write to `rank[i]` 2 plus the number of sorted `cuts` below x[i], or 0 if x[i] is NaN.

    All values are bisected in step, without branches. `position` is scratch memory.
    """
    one, two = np.uint64(1), np.uint64(2)
    for i in range(x.shape[0]):
        position[i] = np.uint64(0)
    size = np.uint64(cuts.shape[0])
    # Invariant: the number of cuts below x[i] is between position[i] and position[i] + size.
    while size > 0:
        half = size - size // two
        for i in range(x.shape[0]):
            at = position[i]
            position[i] = at + half if cuts[at + half - one] < x[i] else at
        size -= half
    for i in range(x.shape[0]):
        rank[i] = np.uint16(0) if x[i] != x[i] else np.uint16(position[i] + two)


@kernel
def descend_block(root: int, end: int, splits: RankedSplits, rank: np.ndarray, at: np.ndarray) -> None:
    """Write to `at[i]` the leaf of the tree of nodes `root:end` that row i of the block reaches."""
    for i in range(at.shape[0]):
        at[i] = 0
    # Invariant: at[i] is the first node from v on that lies on the row's path.
    for v in range(root, end):
        right, column, width = splits.right[v], np.uint64(splits.column[v]), splits.width[v]
        if right == 0:
            continue
        here = np.uint8(v - root)
        left = np.uint8(here + 1)
        if splits.flags_at[v] == -1:
            low = splits.low[v]
            for i in range(at.shape[0]):
                # Unsigned: ranks below `low` wrap around and are larger than any width.
                below = left if np.uint16(rank[column, i] - low) <= width else right
                at[i] = below if at[i] == here else at[i]
        else:
            for k in range(width):
                route_word(splits.flags[splits.flags_at[v] + k], k, here, right, rank, column, at)


@kernel
def route_word(
    word: np.uint64, k: int, here: np.uint8, right: np.uint8, rank: np.ndarray, column: np.uint64, at: np.ndarray
) -> None:
    """Route rows at the categorical split `here` whose rank is one of the 64 ranks that word k has flags for."""
    left, part = np.uint8(here + 1), np.uint16(k)
    for i in range(at.shape[0]):
        found = rank[column, i]
        below = left if (word >> np.uint64(found & _LAST_BIT)) & _ONE else right
        at[i] = below if (at[i] == here) & (np.uint16(found >> _LOG_BITS) == part) else at[i]
