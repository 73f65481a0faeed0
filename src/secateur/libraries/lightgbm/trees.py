"""Read the trees of a LightGBM model into arrays, all trees at once.

The text numbers splits and leaves separately: a child c >= 0 is split c, a negative one is leaf ~c. Here the nodes of
a tree are its splits followed by its leaves ("native order"), and `order` maps from there to preorder.
"""

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.errors import UnsupportedModelError
from secateur.libraries.lightgbm.text_file import damaged

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Trees = Sequence[dict[str, str]]
_CATEGORICAL, _DEFAULT_LEFT = 1, 2
_MISSING_NONE, _MISSING_ZERO = 0, 1
_DECIMAL = re.compile(r"-?[0-9]{1,30}(\.[0-9]{1,30})?(e[+-]?[0-9]{1,3})?")
_CHARACTERS = b"0123456789+-.eE infa"


@dataclass(frozen=True, eq=False)
class Bitsets:
    """Hold the category sets of all trees.

    Set s has the words `word[start[s]:start[s + 1]]`; bit b of its word w stands for category 32 w + b.
    """

    word: NDArray[np.uint32]
    start: Ints


@dataclass(frozen=True, eq=False)
class Splits:
    """Hold the split conditions of all trees, tree by tree, in native order."""

    feature: Ints
    threshold: Floats
    default_left: NDArray[np.bool_]
    bitset: Ints
    """The category set of each split, -1 at a numeric split."""
    zero_missing: NDArray[np.bool_]
    """Whether zeros are routed like NaN."""


@dataclass(frozen=True, eq=False)
class LightGBMNodes:
    """Hold all nodes, tree by tree, each tree in preorder.

    Attributes
    ----------
    order : (n_nodes,) int64
        The position of each node in native order.
    weight, count : (n_nodes,) float64, and int64 or None
        The training weight, and the number of training rows, at each node.
    """

    tree_start: Ints
    order: Ints
    right: NDArray[np.int32]
    feature: NDArray[np.int32]
    threshold: Floats
    default_left: NDArray[np.bool_]
    value: Floats
    weight: Floats
    count: Ints | None
    bitset: Ints
    bitsets: Bitsets
    zero_is_missing: tuple[int, ...]


def read_nodes(trees: Trees, n_features: int) -> LightGBMNodes:
    """Return the nodes of all trees.

    Raises
    ------
    DamagedFileError
        If arrays are missing, are not numeric, or do not form trees.
    UnsupportedModelError
        If a leaf value is not finite, or splits on a feature disagree about zeros.
    """
    n_leaves = np.array([int(tree["num_leaves"]) for tree in trees])
    value = _numbers(trees, "leaf_value", n_leaves, np.float64)
    if not np.isfinite(value).all():
        raise UnsupportedModelError("A leaf value is NaN or infinite, but it must be finite. Train the model again.")
    tree_start = np.concatenate([[0], np.cumsum(2 * n_leaves - 1)])
    is_split = np.repeat(np.tile([True, False], len(trees)), np.column_stack([n_leaves - 1, n_leaves]).ravel())
    order, right = _preorder(trees, n_leaves, tree_start, is_split)
    bitsets, first_set = _read_bitsets(trees)
    splits = _read_splits(trees, n_leaves, first_set, n_features)
    weight, count = _covers(trees, n_leaves)
    _check_unused(trees, n_leaves)
    return LightGBMNodes(
        tree_start=tree_start,
        order=order,
        right=right,
        feature=_scatter(is_split, splits.feature, -1)[order].astype(np.int32),
        threshold=_scatter(is_split, splits.threshold, 0.0)[order],
        default_left=_scatter(is_split, splits.default_left, False)[order],
        value=_scatter(~is_split, value, 0.0)[order],
        weight=_summed(right, _scatter(~is_split, weight, 0.0)[order]),
        count=None if count is None else _summed(right, _scatter(~is_split, count, 0.0)[order]).astype(np.int64),
        bitset=_scatter(is_split, splits.bitset, -1)[order],
        bitsets=bitsets,
        zero_is_missing=_zero_is_missing(splits, bitsets),
    )


def _preorder(
    trees: Trees, n_leaves: Ints, tree_start: Ints, is_split: NDArray[np.bool_]
) -> tuple[Ints, NDArray[np.int32]]:
    """Return the native positions in preorder, and in that order the right child of each split, -1 at a leaf."""
    n_splits = n_leaves - 1
    children = []
    for side in ("left_child", "right_child"):
        child = _numbers(trees, side, n_splits, np.int64)
        if (child >= np.repeat(n_splits, n_splits)).any() or (child < -np.repeat(n_leaves, n_splits)).any():
            raise damaged(f"A {side} points to a node that does not exist")
        child = np.where(child >= 0, child, np.repeat(n_splits, n_splits) + ~child)
        children.append(_scatter(is_split, child, -1))
    left, right = children
    order = np.empty(tree_start[-1], np.int64)
    for tree, (start, stop) in enumerate(pairwise(tree_start.tolist())):
        found = kernels.preorder(left[start:stop], right[start:stop])
        if len(found) != stop - start:
            raise damaged(f"The nodes of tree {tree} do not form a tree: one is reached twice or never")
        order[start:stop] = found
        order[start:stop] += start
    position = np.empty(len(order), np.int32)
    position[order] = np.arange(len(order), dtype=np.int32)
    right += np.repeat(tree_start[:-1], np.diff(tree_start))
    return order, np.where(is_split, position[np.where(is_split, right, 0)], -1)[order].astype(np.int32)


def _read_splits(trees: Trees, n_leaves: Ints, first_set: Ints, n_features: int) -> Splits:
    """Return the split conditions of all trees, checked."""
    n_splits = n_leaves - 1
    feature = _numbers(trees, "split_feature", n_splits, np.int64)
    if len(feature) and (feature.min() < 0 or feature.max() >= n_features):
        raise damaged(f"A split uses a feature outside 0 to {n_features - 1}")
    threshold = _numbers(trees, "threshold", n_splits, np.float64)
    if np.isnan(threshold).any():
        raise damaged("A split has the threshold NaN")
    kind = _numbers(trees, "decision_type", n_splits, np.int64)
    if len(kind) and (kind.min() < 0 or kind.max() > 11):
        raise damaged("A split has a decision_type outside 0 to 11")
    categorical = (kind & _CATEGORICAL) != 0
    bitset = np.full(len(kind), -1)
    sets = np.repeat(np.diff(first_set), n_splits)[categorical]
    chosen = threshold[categorical]
    if ((chosen < 0) | (chosen >= sets) | (chosen != np.floor(chosen))).any():
        raise damaged("A categorical split refers to a category set that does not exist")
    bitset[categorical] = chosen.astype(np.int64) + np.repeat(first_set[:-1], n_splits)[categorical]
    # If training had no missing values, NaN is compared as 0. A categorical split always routes NaN right.
    default_left = np.where(kind >> 2 == _MISSING_NONE, threshold >= 0, (kind & _DEFAULT_LEFT) != 0) & ~categorical
    zero_missing = (kind >> 2 == _MISSING_ZERO) & ~categorical
    return Splits(feature, np.where(categorical, 0.0, threshold), default_left, bitset, zero_missing)


def _zero_is_missing(splits: Splits, bitsets: Bitsets) -> tuple[int, ...]:
    """Return the features whose zeros are routed like NaN.

    LightGBM stores this per split, but all splits on a feature agree, unless training was continued with other
    settings. A split that routes zeros and NaN to the same side is compatible with both rules.
    """
    zero = splits.zero_missing
    if not zero.any():
        return ()
    # Whether a split routes a zero, compared as a number or category, to the same side as NaN.
    agrees = splits.default_left == (splits.threshold >= 0)
    categorical = splits.bitset != -1
    first_word = bitsets.word[np.minimum(bitsets.start[splits.bitset[categorical]], len(bitsets.word) - 1)]
    agrees[categorical] = (first_word & 1) == 0
    features = np.unique(splits.feature[zero & ~agrees])
    if (~zero & ~agrees & np.isin(splits.feature, features)).any():
        raise UnsupportedModelError(
            "Some splits treat zeros of a feature as missing values and other splits on the same feature do not, as "
            "after continued training with another zero_as_missing. secateur needs one rule per feature. Train the "
            "model with one setting of zero_as_missing."
        )
    return tuple(features.tolist())


def _read_bitsets(trees: Trees) -> tuple[Bitsets, Ints]:
    """Return all category sets, and the index of the first set of each tree, (n_trees + 1,)."""
    n_sets = np.array([int(tree["num_cat"]) for tree in trees])
    first_set = np.concatenate([[0], np.cumsum(n_sets)])
    with_sets = [tree for tree in trees if tree["num_cat"] != "0"]
    if not with_sets:
        return Bitsets(np.empty(0, np.uint32), np.zeros(1, np.int64)), first_set
    bounds = _numbers(with_sets, "cat_boundaries", n_sets[n_sets > 0] + 1, np.int64)
    last = np.cumsum(n_sets[n_sets > 0] + 1) - 1
    first = np.concatenate([[0], last[:-1] + 1])
    length = np.delete(np.diff(bounds, append=0), last)
    if (length < 1).any() or bounds[first].any():
        raise damaged("cat_boundaries does not increase from 0 to the number of words")
    word = _numbers(with_sets, "cat_threshold", bounds[last], np.int64)
    if len(word) and (word.min() < 0 or word.max() >= 2**32):
        raise damaged("cat_threshold contains a word of more than 32 bits")
    return Bitsets(word.astype(np.uint32), np.concatenate([[0], np.cumsum(length)])), first_set


def _covers(trees: Trees, n_leaves: Ints) -> tuple[Floats, Floats | None]:
    """Return the training weight and the number of rows of each leaf; None if the number is not recorded.

    A tree of one leaf records at most its number of rows.
    """
    covers: list[Floats | None] = []
    for key in ("leaf_weight", "leaf_count"):
        present = np.array([bool(tree.get(key)) for tree in trees])
        if not (present | (n_leaves == 1)).all():
            covers.append(None)
            continue
        cover = np.zeros(n_leaves.sum())
        dtype = np.float64 if key == "leaf_weight" else np.int64
        cover[np.repeat(present, n_leaves)] = _numbers(trees, key, np.where(present, n_leaves, 0), dtype)
        if not np.isfinite(cover).all() or (cover < 0).any() or (key == "leaf_count" and (cover >= 2**31).any()):
            raise damaged(f"{key} contains a negative, infinite or too large value")
        covers.append(cover)
    weight, count = covers
    if weight is None:
        weight = np.ones(n_leaves.sum()) if count is None else count
    return weight, count


def _check_unused(trees: Trees, n_leaves: Ints) -> None:
    """Raise DamagedFileError if lines that only LightGBM reads are not numeric: LightGBM would end the process."""
    for key in ("split_gain", "internal_value", "internal_weight", "internal_count"):
        present = np.array([bool(tree.get(key)) for tree in trees])
        numbers = _numbers(trees, key, np.where(present, n_leaves - 1, 0), np.int64 if "count" in key else np.float64)
        if np.isnan(numbers).any() or (np.abs(numbers) >= (2.0**31 if "count" in key else np.inf)).any():
            raise damaged(f"{key} contains NaN or a value out of range")
    if any(not _DECIMAL.fullmatch(tree.get("shrinkage", "1")) for tree in trees):
        raise damaged("The shrinkage of a tree is not a number")


def _numbers(trees: Trees, key: str, lengths: Ints, dtype: type) -> NDArray[Any]:
    """Return the numbers of line `key`, joined over all trees; tree t must have `lengths[t]` of them."""
    parts = [tree.get(key, "") for tree in trees]
    for part, length in zip(parts, lengths.tolist(), strict=True):
        found = part.count(" ") + 1 if part else 0
        if found != length:
            raise damaged(f"{key} of a tree has {found} entries, but {length} are needed")
    text = " ".join(filter(None, parts))
    if text.encode().translate(None, _CHARACTERS) or "  " in text or text != text.strip():
        raise damaged(f"{key} contains something other than numbers separated by single spaces")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            numbers: NDArray[Any] = np.fromstring(text, dtype, sep=" ") if text else np.empty(0, dtype)
        except (DeprecationWarning, ValueError) as error:
            raise damaged(f"{key} contains an entry that is not a number") from error
    if len(numbers) != lengths.sum():
        raise damaged(f"{key} has {len(numbers)} numbers, but {lengths.sum()} are needed")
    return numbers


def _scatter(chosen: NDArray[np.bool_], numbers: NDArray[Any], other: Any) -> NDArray[Any]:
    """Return an array with `numbers` at the chosen positions and `other` at the rest."""
    result = np.full(len(chosen), other, np.result_type(numbers.dtype, type(other)))
    result[chosen] = numbers
    return result


def _summed(right: NDArray[np.int32], leaves: Floats) -> Floats:
    """Return leaf quantities summed over the leaves below every node."""
    sums = np.ascontiguousarray(leaves[:, None])
    kernels.roll_up(right, sums)
    return sums[:, 0]
