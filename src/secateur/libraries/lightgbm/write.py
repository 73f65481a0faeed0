"""Write a pruned LightGBM model as text: unchanged trees keep their lines, the others get new ones.

Tree i contributes to output i modulo the number of trees per iteration. A tree dropped from an iteration that stays
is therefore replaced by a leaf with value 0.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.forest import Forest
from secateur.forest.subforest import Decision, kept_trees, subforest
from secateur.libraries.lightgbm.text_file import NUMBER_OF, ModelText
from secateur.libraries.lightgbm.trees import Floats, Ints, LightGBMNodes

Lines = dict[str, str]


def pruned_text(model: ModelText, nodes: LightGBMNodes, forest: Forest, decision: Decision) -> ModelText:
    """Return the parts of the pruned model."""
    per_iteration = model.per_iteration
    tree_kept = kept_trees(forest, decision.keep)
    stays: NDArray[np.bool_] = np.logical_or.reduce(tree_kept.reshape(-1, per_iteration), axis=1)
    # One iteration always stays, so that the text has at least one tree.
    stays[0] |= not stays.any()
    pruned = subforest(forest, decision)
    value = pruned.value[:, 0] * np.repeat(pruned.tree_weight, np.diff(pruned.tree_start))
    same = _same_trees(forest, decision, pruned, value, tree_kept)
    written = _write_trees(model, nodes, forest, decision.keep, pruned, value, tree_kept & ~same)
    trees: list[Lines] = []
    # The format has no base score: a new base becomes a first iteration of single leaves.
    if decision.base is not None and decision.base.any():
        trees += [_one_leaf(model.trees[0], float(base), 0) for base in decision.base]
    for tree in np.flatnonzero(np.repeat(stays, per_iteration)).tolist():
        if not tree_kept[tree]:
            rows = 0 if nodes.count is None else int(nodes.count[forest.tree_start[tree]])
            trees.append(_one_leaf(model.trees[tree], 0.0, rows))
        else:
            trees.append(model.trees[tree] if same[tree] else next(written))
    return replace(model, trees=trees)


def _same_trees(
    forest: Forest, decision: Decision, pruned: Forest, value: Floats, tree_kept: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return which trees keep all nodes and leaf values."""
    changed = ~decision.keep
    kept_leaf = decision.keep.copy()
    kept_leaf[kept_leaf] = ~pruned.is_split
    changed[kept_leaf] = forest.value[kept_leaf, 0] != value[~pruned.is_split]
    return tree_kept & ~np.logical_or.reduceat(changed, forest.root)


@dataclass(frozen=True, eq=False)
class _Edited:
    """Hold the nodes of the trees that get new lines, in preorder of the pruned forest."""

    tree: list[int]
    """The index of each tree in the original model."""
    split: NDArray[np.bool_]
    child: tuple[Ints, Ints]
    """Left and right child of each split, in LightGBM's numbering."""
    node: Ints
    """The index of each node in the original forest."""
    split_start: list[int]
    leaf_start: list[int]


def _edited(keep: NDArray[np.bool_], forest: Forest, pruned: Forest, chosen: NDArray[np.bool_]) -> _Edited:
    """Return the nodes of the chosen trees with their new child indices."""
    tree_kept = kept_trees(forest, keep)
    size = np.diff(pruned.tree_start)
    start = np.repeat(pruned.tree_start[:-1], size)
    split = pruned.is_split
    before = np.concatenate([[0], np.cumsum(split)])
    # Number of splits before the node in the same tree.
    rank = before[:-1] - before[start]
    # LightGBM numbers splits and leaves separately from 0, and leaf l has the id ~l.
    number = np.where(split, rank, ~(np.arange(len(split)) - start - rank))
    included = np.repeat(chosen[tree_kept], size)
    at = np.flatnonzero(included & split)
    n_splits = np.add.reduceat(split, pruned.tree_start[:-1], dtype=np.int64) if len(size) else size
    n_splits = n_splits[chosen[tree_kept]]
    return _Edited(
        tree=np.flatnonzero(chosen).tolist(),
        split=split[included],
        child=(number[at + 1], number[pruned.right[at]]),
        node=np.flatnonzero(keep)[included],
        split_start=np.concatenate([[0], np.cumsum(n_splits)]).tolist(),
        leaf_start=np.concatenate([[0], np.cumsum(n_splits + 1)]).tolist(),
    )


def _write_trees(
    model: ModelText,
    nodes: LightGBMNodes,
    forest: Forest,
    keep: NDArray[np.bool_],
    pruned: Forest,
    value: Floats,
    chosen: NDArray[np.bool_],
) -> Iterator[Lines]:
    """Yield the lines of the chosen trees."""
    if not chosen.any():
        return
    edited = _edited(keep, forest, pruned, chosen)
    included = np.repeat(chosen[kept_trees(forest, keep)], np.diff(pruned.tree_start))
    splits, leaves = edited.node[edited.split], edited.node[~edited.split]
    native_split = _split_numbers(forest, nodes, splits)
    numbers: dict[str, list[str]] = {
        "left_child": _as_text(edited.child[0]),
        "right_child": _as_text(edited.child[1]),
        "leaf_value": _as_text(value[included & ~pruned.is_split]),
        "leaf_weight": _as_text(nodes.weight[leaves]),
        "leaf_count": ["0"] * len(leaves) if nodes.count is None else _as_text(nodes.count[leaves]),
    }
    for key in NUMBER_OF["split"]:
        if key not in numbers:
            numbers[key] = _tokens(model, key, native_split)
    sets = _Sets(nodes, splits, edited.split_start)
    sets.renumber(numbers["threshold"])
    for i, tree in enumerate(edited.tree):
        yield _lines(model.trees[tree], i, edited, numbers, sets)


def _lines(before: Lines, i: int, edited: _Edited, numbers: dict[str, list[str]], sets: "_Sets") -> Lines:
    """Return the lines of one tree, in their original order."""
    of_split = slice(edited.split_start[i], edited.split_start[i + 1])
    of_leaf = slice(edited.leaf_start[i], edited.leaf_start[i + 1])
    n_leaves = of_leaf.stop - of_leaf.start
    lines = {}
    for key, old in before.items():
        if key in NUMBER_OF["split"]:
            lines[key] = " ".join(numbers[key][of_split])
        elif key in NUMBER_OF["leaf"]:
            lines[key] = " ".join(numbers[key][of_leaf])
        elif not key.startswith("cat_"):
            lines[key] = {"num_leaves": str(n_leaves), "num_cat": str(sets.count(i))}.get(key, old)
        elif sets.count(i):
            lines[key] = sets.bounds(i) if key == "cat_boundaries" else sets.words(i)
    return lines


class _Sets:
    """Renumber the category sets of the edited trees, from 0 in each tree."""

    def __init__(self, nodes: LightGBMNodes, splits: Ints, split_start: list[int]) -> None:
        bitset = nodes.bitset[splits]
        self.categorical = np.flatnonzero(bitset != -1)
        chosen = bitset[self.categorical]
        self.first = np.searchsorted(self.categorical, split_start).tolist()
        self.length = np.diff(nodes.bitsets.start)[chosen]
        self.end = np.concatenate([[0], np.cumsum(self.length)])
        offset = np.repeat(nodes.bitsets.start[chosen] - self.end[:-1], self.length)
        self.word = _as_text(nodes.bitsets.word[offset + np.arange(self.end[-1])])

    def renumber(self, threshold: list[str]) -> None:
        """Write the new set indices into the thresholds of categorical splits."""
        first = np.array(self.first)
        number = np.arange(len(self.categorical)) - np.repeat(first[:-1], np.diff(first))
        for position, text in zip(self.categorical.tolist(), _as_text(number), strict=True):
            threshold[position] = text

    def count(self, i: int) -> int:
        return int(self.first[i + 1] - self.first[i])

    def bounds(self, i: int) -> str:
        end = self.end[self.first[i] : self.first[i + 1] + 1]
        return " ".join(_as_text(end - end[0]))

    def words(self, i: int) -> str:
        return " ".join(self.word[self.end[self.first[i]] : self.end[self.first[i + 1]]])


def _split_numbers(forest: Forest, nodes: LightGBMNodes, splits: Ints) -> Ints:
    """Return the positions of splits among all splits of the model, in native order."""
    native = np.zeros(len(nodes.order), bool)
    native[nodes.order[forest.is_split]] = True
    return (np.cumsum(native) - 1)[nodes.order[splits]]


def _tokens(model: ModelText, key: str, positions: Ints) -> list[str]:
    """Return the chosen numbers of line `key` as written in the file; "0" for trees without that line."""
    parts = [tree.get(key) or " ".join(["0"] * (int(tree["num_leaves"]) - 1)) for tree in model.trees]
    every = np.array(" ".join(filter(None, parts)).split(" "), object)
    chosen: list[str] = every[positions].tolist()
    return chosen


def _as_text(numbers: NDArray[Any]) -> list[str]:
    """Return each number as the shortest text that parses to the same number."""
    return list(map(repr, numbers.tolist()))


def _one_leaf(before: Lines, value: float, rows: int) -> Lines:
    """Return the lines of a tree with a single leaf."""
    lines = {"num_leaves": "1", "num_cat": "0", "leaf_value": repr(value), "leaf_count": str(rows), "shrinkage": "1"}
    empty = (*NUMBER_OF["split"], *NUMBER_OF["leaf"])
    return {
        key: lines.get(key, "" if key in empty else old) for key, old in before.items() if not key.startswith("cat_")
    }
