"""Read the split conditions of a Spark model: thresholds and lists of categories."""

import numpy as np
from numpy.typing import NDArray

from secateur.forest import Categories, Forest
from secateur.libraries.spark.arrow import Floats, Ints
from secateur.libraries.spark.read_nodes import NodeTable
from secateur.libraries.spark.saved_model import damaged


def thresholds(nodes: NodeTable) -> Floats:
    """Return the threshold of each numeric split, 0 at other nodes, (n_nodes,)."""
    numeric = np.flatnonzero(~nodes.leaf & (nodes.n_categories == -1))
    if (np.diff(nodes.first)[numeric] != 1).any():
        raise damaged("A numeric split does not have exactly one threshold")
    threshold = np.zeros(len(nodes.right))
    threshold[numeric] = nodes.listed[nodes.first[numeric]]
    return threshold


def categories(nodes: NodeTable) -> Categories:
    """Return the category lists: for each categorical split the shorter side, as Spark keeps it.

    Spark checks whether the value equals a category on the shorter side. An unknown value is therefore routed to the
    longer side: right, if at most half of the categories are routed left.
    """
    split = np.flatnonzero(nodes.n_categories != -1)
    if not len(split):
        return Categories()
    n_left, n_all = np.diff(nodes.first)[split], nodes.n_categories[split]
    entry = np.repeat(np.arange(len(split)), n_left)
    code = nodes.listed[ranges(nodes.first[split], n_left)]
    known = (code == np.trunc(code)) & (code >= 0) & (code < n_all[entry])
    if not known.all() or (n_all < 1).any():
        raise damaged("A categorical split lists a value that is not one of its categories")
    # If more than half of the categories are routed left, list those routed right instead.
    other_left = n_left > n_all // 2
    rest, codes = _complement(entry, code.astype(np.int64), np.where(other_left, n_all, 0))
    entry, codes = (
        np.concatenate([entry[~other_left[entry]], rest]),
        np.concatenate([code[~other_left[entry]].astype(np.int64), codes]),
    )
    order = np.lexsort((codes, entry))
    entry, codes = entry[order], codes[order]
    row = np.full(len(nodes.right), -1, np.int32)
    row[split] = np.arange(len(split))
    start = np.concatenate([[0], np.cumsum(np.bincount(entry, minlength=len(split)))]).astype(np.int64)
    return Categories(row, start, codes.astype(np.int32), ~other_left[entry], other_left)


def _complement(entry: Ints, code: Ints, size: Ints) -> tuple[Ints, Ints]:
    """Return the categories below `size` that are not listed: the split and the code of each."""
    first = np.concatenate([[0], np.cumsum(size)])
    listed = np.zeros(first[-1], bool)
    needed = size[entry] > 0
    listed[first[:-1][entry[needed]] + code[needed]] = True
    unlisted = np.flatnonzero(~listed)
    owner = np.searchsorted(first, unlisted, side="right") - 1
    return owner, unlisted - first[owner]


def ranges(start: Ints, length: Ints) -> Ints:
    """Return the concatenated ranges start[i], ..., start[i] + length[i] - 1."""
    before = np.cumsum(length) - length
    result: Ints = np.arange(length.sum()) + np.repeat(start - before, length)
    return result


def check_features(forest: Forest, row: NDArray[np.int32]) -> None:
    """Raise DamagedFileError if a feature has both numeric and categorical splits."""
    numeric = np.unique(forest.feature[forest.is_split & (row == -1)])
    mixed = np.intersect1d(numeric, forest.feature[row != -1])
    if len(mixed):
        raise damaged(f"Feature {mixed[0]} has both numeric and categorical splits")
