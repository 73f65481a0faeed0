"""Describe a pruning as a `Decision` (kept nodes, new values) and apply it to a forest."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.errors import InvalidInputError
from secateur.forest import Categories, Forest


@dataclass(frozen=True, eq=False)
class Decision:
    """Describe one pruning of a forest: the kept nodes and changed parameters.

    Attributes
    ----------
    keep : (n_nodes,) bool
        Which nodes are present. A kept node has kept descendants on both sides, or none, in which case it is a leaf.
        A dropped node has kept descendants on at most one side; that subtree is *raised* into its place. A tree without
        kept nodes is dropped.
    value : (n_nodes, width) float64, or None
        New values; None keeps the original values.
    tree_weight : (n_trees,) float64, or None
    base : (n_outputs,) float64, or None
    """

    keep: NDArray[np.bool_]
    value: NDArray[np.float64] | None = None
    tree_weight: NDArray[np.float64] | None = None
    base: NDArray[np.float64] | None = None


def kept_decision(forest: Forest, keep: NDArray[np.bool_], value: NDArray[np.float64]) -> Decision:
    """Return the decision that keeps some nodes, with new values for these, (n_kept, width)."""
    filled = forest.value.copy()
    filled[keep] = value
    return Decision(keep, filled)


def kept_trees(forest: Forest, keep: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which trees have at least one kept node, (n_trees,)."""
    return np.logical_or.reduceat(keep, forest.root) if forest.n_trees else np.empty(0, bool)


def raises(forest: Forest, keep: NDArray[np.bool_]) -> bool:
    """Return whether a subtree is raised, so that rows may reach nodes they do not reach in the unpruned forest."""
    # The topmost kept node of a tree without its root has a parent that is not kept, too.
    above = forest.parent[keep]
    return not keep[above[above != -1]].all()


def kept_splits(forest: Forest, keep: NDArray[np.bool_], replacement: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return which kept nodes are splits after pruning, (n_nodes,)."""
    split = keep & forest.is_split
    split[split] = replacement[forest.right[split]] != -1
    return split


def split_kept(forest: Forest, keep: NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return the kept nodes and which of them are splits after pruning, both (n_kept,).

    Without raised subtrees, only the kept nodes are checked, which takes much less time if they are few.

    Raises
    ------
    InvalidInputError
        If `keep` is not a pruning.
    """
    nodes = np.flatnonzero(keep)
    if forest.symmetric or not len(nodes) or raises(forest, keep):
        return nodes, kept_splits(forest, keep, check_keep(forest, keep))[nodes]
    split = forest.is_split[nodes]
    inner = nodes[split]
    left = keep[inner + 1]
    if not np.array_equal(left, keep[forest.right[inner]]):
        check_keep(forest, keep)
    split[split] = left
    return nodes, split


def apply_decision(forest: Forest, decision: Decision) -> Forest:
    """Return the forest with the new values, tree weights and base, but with all its nodes.

    The divisor of a mean is computed over the kept trees.
    """
    tree_weight = forest.tree_weight
    if decision.tree_weight is not None:
        tree_weight = _rounded(decision.tree_weight, forest.sum_dtype)
    kept = kept_trees(forest, decision.keep)
    divisor = forest.divisor
    if forest.aggregation == "mean" and not (kept.all() and decision.tree_weight is None):
        divisor = mean_over(forest, tree_weight, kept)
    value = forest.value
    if decision.value is not None:
        value = _rounded(decision.value, forest.sum_dtype)
    return replace(
        forest,
        value=value,
        tree_weight=tree_weight,
        base=forest.base if decision.base is None else decision.base,
        divisor=divisor,
    )


def mean_over(forest: Forest, tree_weight: NDArray[np.float64], kept: NDArray[np.bool_]) -> float:
    """Return the divisor of a mean over the kept trees.

    If every round has one tree per output, the divisor counts rounds: in a kept round, a dropped tree contributes 0.
    """
    weight = tree_weight * kept
    n_outputs = forest.n_outputs
    if n_outputs > 1 and np.array_equal(forest.tree_output, np.arange(forest.n_trees) % n_outputs):
        return float(weight.reshape(-1, n_outputs).max(axis=1).sum()) * n_outputs * forest.unit
    return float(weight[kept].sum()) * forest.unit


def kept_values(forest: Forest, decision: Decision, value: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Return the values of the kept nodes in the model's precision, (n_kept, width).

    `value` (n_kept, width) replaces those of the decision.
    """
    if value is None:
        if decision.value is None:
            return forest.value[decision.keep]
        value = decision.value[decision.keep]
    return _rounded(value, forest.sum_dtype)


def _rounded(numbers: NDArray[np.float64], dtype: str) -> NDArray[np.float64]:
    """Return numbers rounded to the model's precision; out-of-range values become infinite, which libraries refuse."""
    with np.errstate(over="ignore"):
        return numbers.astype(dtype, copy=False).astype(np.float64, copy=False)


def subforest(forest: Forest, decision: Decision) -> Forest:
    """Return the pruned forest. Only this function builds pruned forests.

    Raises
    ------
    InvalidInputError
        If the mask keeps one of two siblings under a kept parent, keeps both children of a dropped node, cuts through a
        level of symmetric trees, or leaves a mean without trees.
    """
    keep = decision.keep
    replacement = check_keep(forest, keep)
    changed = apply_decision(forest, decision)
    if keep.all():
        return changed
    trees = kept_trees(forest, keep)
    split = kept_splits(forest, keep, replacement)
    still_split = split[keep]
    # Kept nodes retain their order, which is again a preorder.
    new_id = np.cumsum(keep, dtype=np.int32)
    new_id -= 1
    right = np.full(len(still_split), -1, np.int32)
    right[still_split] = new_id[replacement[forest.right[split]]]
    feature = np.full(len(still_split), -1, np.int32)
    feature[still_split] = forest.feature[split]
    # Free arrays as large as the forest before the copies below.
    del new_id, replacement
    sizes = np.add.reduceat(keep, forest.root, dtype=np.int64) if forest.n_trees else np.empty(0, np.int64)
    return replace(
        changed,
        tree_start=np.concatenate([[0], np.cumsum(sizes[trees])]).astype(np.int64),
        right=right,
        feature=feature,
        threshold=forest.threshold[keep],
        default_left=forest.default_left[keep],
        value=changed.value[keep],
        weight=forest.weight[keep],
        tree_weight=changed.tree_weight[trees],
        tree_output=forest.tree_output[trees],
        categories=_subcategories(forest.categories, keep, split),
    )


def _subcategories(categories: Categories, keep: NDArray[np.bool_], split: NDArray[np.bool_]) -> Categories:
    """Return the category lists of the kept splits."""
    if not len(categories.row):
        return categories
    row = np.where(split, categories.row, -1)[keep]
    used, renumbered = np.unique(row[row != -1], return_inverse=True)
    if not len(used):
        return Categories()
    new_row = np.full(len(row), -1, np.int32)
    new_row[row != -1] = renumbered
    length = np.diff(categories.start)
    entries = np.repeat(np.isin(np.arange(len(length)), used), length)
    return Categories(
        row=new_row,
        start=np.concatenate([[0], np.cumsum(length[used])]),
        code=categories.code[entries],
        left=categories.left[entries],
        other_left=categories.other_left[used],
    )


def check_keep(forest: Forest, keep: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Return the kept node in the position of each node, -1 if none.

    Raises
    ------
    InvalidInputError
        If `keep` is not a pruning.
    """
    if keep.shape != (forest.n_nodes,) or keep.dtype != bool:
        raise InvalidInputError(
            f"keep has shape {keep.shape} and type {keep.dtype}, but must be one bool per node, "
            f"shape ({forest.n_nodes},). Build it from np.ones(forest.n_nodes, bool)."
        )
    replacement = np.empty(forest.n_nodes, np.int32)
    broken = kernels.replacements(forest.right, keep, replacement)
    if broken != -1:
        found = "is kept with one child only" if keep[broken] else "is dropped, but nodes on both of its sides are kept"
        raise InvalidInputError(
            f"keep is not a pruning: node {broken} {found}. Cut below a node v with "
            "keep[v + 1 : forest.end[v]] = False."
        )
    if forest.symmetric and not kernels.keeps_levels(forest.tree_start, forest.depth, keep):
        raise InvalidInputError(
            "keep cuts through a level, but these trees are symmetric: all splits of a level use the same test, so a "
            "level is kept or dropped as a whole. Cut all nodes below some depth of a tree: keep[(forest.depth > 3) & "
            "(tree == 7)] = False."
        )
    if forest.aggregation != "sum" and not kept_trees(forest, keep).any():
        raise InvalidInputError(
            f"keep drops every tree, but this model is a {forest.aggregation} over trees and needs at least one. "
            "Keep the root of one tree."
        )
    return replacement
