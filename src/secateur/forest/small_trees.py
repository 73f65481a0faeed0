"""Prepare small trees for routing many rows: thresholds and categories become ranks, which are small integers."""

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from secateur.forest import Forest
from secateur.kernels import Cuts, RankedSplits, SplitArrays

A = TypeVar("A", bound=np.generic)
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_MOST_CUTS = 2**16 - 3
"""Largest number of cuts of a feature: there is one more interval, and two ranks are for missing and for no values."""
_MOST_WORDS = 16
"""Largest number of 64-bit words for the ranks that a categorical split routes left; each word is a pass over rows."""
_ROWS_PER_SPLIT = 32
"""The rows that a tree needs per split so that sorting the thresholds takes little of the time."""


class _Codes(NamedTuple):
    """The listed categories of the categorical splits; `owner` is the position of their split among all splits."""

    owner: Ints
    code: Floats
    left: NDArray[np.bool_]


def rank_splits(forest: Forest, splits: SplitArrays, n_rows: int) -> tuple[RankedSplits, Cuts] | None:
    """Return the splits as sets of ranks, and the cuts that define the ranks.

    The forest must have a split, and no tree more than 256 nodes, so that node ids fit into a byte. Returns None if
    following each row is probably faster, because there are too few rows for sorting the thresholds, or too few trees
    for ranking the features of a row. Returns None also if a feature has too many thresholds or categories.
    """
    if n_rows * forest.n_trees < _ROWS_PER_SPLIT * (forest.n_nodes - forest.n_trees) // 2:
        return None
    node = np.flatnonzero(forest.is_split)
    categorical = forest.categories.row[node] != -1 if len(forest.categories.row) else np.zeros(len(node), bool)
    codes = _listed_codes(forest, node, categorical)
    # A feature that has splits of both kinds has two columns of ranks. Categorical splits have no threshold.
    key = 2 * splits.feature[node].astype(np.int64) + categorical
    threshold = np.where(categorical, np.nan, splits.threshold[node])
    keys, numbers = [key, key[codes.owner], key[codes.owner]], [threshold, *_edges(codes.code)]
    column, rank, cuts = _rank(np.concatenate(keys), np.concatenate(numbers))
    n_cuts = np.diff(cuts.start)
    n_words = np.where(categorical, (n_cuts[column[: len(node)]] + 3 + 63) // 64, 0)
    if len(n_cuts) > forest.n_trees or n_cuts.max() > _MOST_CUTS or n_words.max() > _MOST_WORDS:
        return None
    first_word = np.cumsum(n_words) - n_words
    flags = _default_flags(forest, node[categorical], 64 * n_words[categorical])
    # A category has the rank that follows the cut below it.
    flags[64 * first_word[codes.owner] + rank[len(node) : len(node) + len(codes.owner)] + 1] = codes.left
    low = ~splits.default_left[node]
    root = np.repeat(forest.root, np.diff(forest.tree_start))
    n_nodes = forest.n_nodes
    ranked = RankedSplits(
        right=np.where(forest.is_split, forest.right - root, 0).astype(np.uint8),
        column=_at_nodes(node, column[: len(node)], np.zeros(n_nodes, np.int32)),
        flags_at=_at_nodes(node, np.where(categorical, first_word, -1), np.zeros(n_nodes, np.int32)),
        low=_at_nodes(node, low, np.zeros(n_nodes, np.uint16)),
        width=_at_nodes(node, np.where(categorical, n_words, rank[: len(node)] - low), np.zeros(n_nodes, np.uint16)),
        flags=np.packbits(flags, bitorder="little").view("<u8").astype(np.uint64),
    )
    return ranked, cuts


def _listed_codes(forest: Forest, node: Ints, categorical: NDArray[np.bool_]) -> _Codes:
    """Return the lists of all categorical splits."""
    lists, splits = forest.categories, np.flatnonzero(categorical)
    row = lists.row[node[splits]]
    length = lists.start[row + 1] - lists.start[row]
    at = np.arange(length.sum()) + np.repeat(lists.start[row] - (np.cumsum(length) - length), length)
    return _Codes(np.repeat(splits, length), lists.code[at].astype(np.float64), lists.left[at])


def _edges(code: Floats) -> tuple[Floats, Floats]:
    """Return cuts below and above each category: numbers x with trunc(x) == code are above the first only."""
    low = np.where(code > 0, np.nextafter(code, -np.inf), code - 1)
    return low, np.where(code >= 0, np.nextafter(code + 1, -np.inf), code)


def _rank(key: Ints, number: Floats) -> tuple[Ints, Ints, Cuts]:
    """Return the column of each number, the largest rank of numbers up to it, and the cuts.

    Numbers of one key form a column. NaN defines no cut and gets rank 1, which no number has.
    """
    order = np.lexsort((number, key))
    key, number = key[order], number[order]
    is_cut = ~np.isnan(number)
    new_key = _differs(key)
    new_cut = (new_key | _differs(number)) & is_cut
    column = np.cumsum(new_key) - 1
    n_cuts = np.bincount(column[new_cut], minlength=int(column[-1]) + 1)
    start = np.concatenate([[0], np.cumsum(n_cuts)])
    rank = np.where(is_cut, np.cumsum(new_cut) + 1 - start[column], 1)
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return column[back], rank[back], Cuts(key[new_key] // 2, start, number[new_cut])


def _differs(values: NDArray[np.generic]) -> NDArray[np.bool_]:
    """Return whether each value differs from the one before it."""
    return np.concatenate([[True], values[1:] != values[:-1]])


def _default_flags(forest: Forest, node: Ints, n_flags: Ints) -> NDArray[np.bool_]:
    """Return for each rank of each categorical split whether it is routed left, as if no category were listed."""
    flags = np.repeat(forest.categories.other_left[forest.categories.row[node]], n_flags)
    flags[np.cumsum(n_flags) - n_flags] = forest.default_left[node]
    return flags


def _at_nodes(node: Ints, values: NDArray[np.generic], out: NDArray[A]) -> NDArray[A]:
    """Return `out` with the values of some nodes."""
    out[node] = values
    return out
