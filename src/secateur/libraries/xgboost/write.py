"""Convert saved XGBoost trees to forest arrays, and a pruning decision back to saved trees.

A kept node keeps its position in XGBoost's node order, and a raised node takes the position of the node it replaces.
So a parent precedes its children and the right child directly follows the left one, as in XGBoost's own layout.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.errors import InvalidInputError
from secateur.forest import Categories, Forest
from secateur.forest.node_sums import cover_mean
from secateur.forest.subforest import Decision, apply_decision, check_keep, kept_splits, kept_trees
from secateur.libraries.xgboost.saved_model import CATEGORY_ARRAYS, NO_PARENT, NODE_ARRAYS, Saved, damaged
from secateur.libraries.xgboost.trees import XGBoostTrees

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
_LINKS = {"left_children": -1, "right_children": -1, "parents": NO_PARENT}
"""The arrays that link nodes, and the value each has where there is no link."""


def forest_arrays(trees: XGBoostTrees, n_trees: int) -> dict[str, Any]:
    """Return the Forest fields that the first `n_trees` trees determine."""
    start = trees.order_start[: n_trees + 1]
    order = trees.order[: start[-1]]
    read = ("left_children", "split_indices", "split_conditions", "split_type", "default_left", "sum_hessian")
    node = {name: trees.node[name][order] for name in read}
    leaf = node["left_children"] == -1
    right = _preorder_right(trees, order, start, leaf)
    cover = node["sum_hessian"].astype(np.float64)
    value = np.where(leaf, node["split_conditions"], 0.0).astype(np.float64)[:, None]
    categorical = ~leaf & (node["split_type"] == 1)
    return {
        "tree_start": start,
        "right": right,
        "feature": np.where(leaf, -1, node["split_indices"]).astype(np.int32),
        "threshold": np.where(categorical | leaf, 0.0, node["split_conditions"]).astype(np.float64),
        "default_left": (node["default_left"] != 0) & ~leaf,
        "value": _in_float32(cover_mean(right, value, np.where(np.isfinite(cover), cover, 0.0))),
        "weight": cover,
        "tree_weight": trees.weight[:n_trees].astype(np.float64),
        "tree_output": trees.output[:n_trees],
        "categories": _categories(trees, order, categorical),
    }


def _in_float32(value: NDArray[np.float64]) -> NDArray[np.float64]:
    return value.astype(np.float32).astype(np.float64)


def _preorder_right(trees: XGBoostTrees, order: Ints, start: Ints, leaf: Bools) -> NDArray[np.int32]:
    """Return the right child of each node in preorder, counted over all trees, -1 at a leaf."""
    position = np.full(trees.start[-1], -1, np.int64)
    position[order] = np.arange(len(order))
    first = np.repeat(trees.start[: len(start) - 1], np.diff(start))
    child = np.where(leaf, 0, trees.node["right_children"][order]) + first
    return np.where(leaf, -1, position[child]).astype(np.int32)


def _categories(trees: XGBoostTrees, order: Ints, categorical: Bools) -> Categories:
    """Return the categories that each categorical split routes right; all others are routed left."""
    if not categorical.any():
        return Categories()
    start, code = _lists_at(trees, order[categorical])
    row = np.full(len(order), -1, np.int32)
    row[categorical] = np.arange(len(start) - 1)
    return Categories(
        row=row,
        start=start,
        code=code.astype(np.int32),
        left=np.zeros(len(code), bool),
        other_left=np.ones(len(start) - 1, bool),
    )


def _lists_at(trees: XGBoostTrees, nodes: Ints) -> tuple[Ints, Ints]:
    """Return the start of the list of categories of each categorical split, (n_lists + 1,), and the joined lists."""
    list_of = np.full(trees.start[-1], -1, np.int64)
    list_of[trees.category_node] = np.arange(len(trees.category_node))
    lists = list_of[nodes]
    length = np.diff(trees.category_start)[lists]
    start = np.concatenate([[0], np.cumsum(length)]).astype(np.int64)
    entries = np.arange(start[-1]) + np.repeat(trees.category_start[lists] - start[:-1], length)
    return start, trees.category[entries]


def prune_model(model: Saved, trees: XGBoostTrees, forest: Forest, decision: Decision) -> tuple[Saved, Ints]:
    """Return the table of trees after a pruning, and the original indices of its trees.

    Rounds without a kept tree are removed. In the other rounds all outputs keep the same number of trees, the largest
    that an output keeps in any round, because other programs infer a tree's round and output from its position. A
    dropped tree that fills such a position becomes a leaf with value 0. If all trees are dropped, one such leaf stays
    for each output, because XGBoost without trees takes the base score for a raw prediction.
    """
    tree_kept = kept_trees(forest, decision.keep)
    filler, parallel = _fillers(trees, tree_kept)
    stays = np.flatnonzero(tree_kept | filler)
    arrays = _pruned_nodes(trees, forest, decision, filler)
    n_stays = np.cumsum(np.concatenate([[0], tree_kept | filler]))
    rounds = np.unique(n_stays[trees.rounds[trees.rounds <= forest.n_trees]])
    pruned = {
        **model,
        "gbtree_model_param": {
            **model["gbtree_model_param"],
            "num_trees": str(len(stays)),
            "num_parallel_tree": str(parallel),
        },
        "tree_info": trees.output[stays].tolist(),
        "trees": [{**model["trees"][tree], **arrays[tree], "id": index} for index, tree in enumerate(stays.tolist())],
    }
    if "iteration_indptr" in model:
        pruned["iteration_indptr"] = rounds.tolist()
    for tree in pruned["trees"]:
        size = str(len(tree["left_children"]))
        tree["tree_param"] = {**tree["tree_param"], "num_nodes": size, "num_deleted": "0"}
    return pruned, stays


def _fillers(trees: XGBoostTrees, tree_kept: Bools) -> tuple[Bools, int]:
    """Return which dropped trees become a leaf with value 0, and the number of trees of each output in a round."""
    n_trees = len(tree_kept)
    filler = np.zeros(n_trees, bool)
    if not tree_kept.any():
        filler[np.unique(trees.output[:n_trees], return_index=True)[1]] = True
        return filler, 1
    outputs = int(trees.output[:n_trees].max()) + 1
    rounds = np.searchsorted(trees.rounds, np.arange(n_trees), side="right") - 1
    cell = rounds * outputs + trees.output[:n_trees]
    n_rounds = int(rounds[-1]) + 1
    kept = np.bincount(cell[tree_kept], minlength=n_rounds * outputs).reshape(n_rounds, outputs)
    gaps = np.where(kept.any(axis=1, keepdims=True), kept.max() - kept, 0).ravel()
    for tree in np.flatnonzero(~tree_kept):
        if gaps[cell[tree]]:
            gaps[cell[tree]] -= 1
            filler[tree] = True
    return filler, int(kept.max())


def _pruned_nodes(trees: XGBoostTrees, forest: Forest, decision: Decision, filler: Bools) -> dict[int, Saved]:
    """Return the arrays of each kept tree and of each filler."""
    replacement = check_keep(forest, decision.keep)
    split = kept_splits(forest, decision.keep, replacement)
    source, new_id, start = _positions(trees, forest, replacement, split)
    before = trees.order[source]
    node = {name: array[before] for name, array in trees.node.items() if name not in _LINKS}
    is_split, first = split[source], np.repeat(start[:-1], np.diff(start))
    child = np.flatnonzero(is_split)
    left, right = new_id[replacement[source[child] + 1]], new_id[replacement[forest.right[source[child]]]]
    for name, no_link in _LINKS.items():
        node[name] = np.full(len(source), no_link, np.int32)
    node["left_children"][child], node["right_children"][child] = left - first[child], right - first[child]
    node["parents"][left] = node["parents"][right] = child - first[child]
    value = apply_decision(forest, decision).value[source, 0].astype(np.float32)
    if not np.isfinite(value[~is_split]).all():
        raise InvalidInputError(
            "The pruning gives a leaf a value out of the range of float32, in which XGBoost stores leaf values. Scale "
            "the new values down."
        )
    for name in ("split_conditions", "base_weights"):
        node[name] = np.where(is_split, node[name], value)
    for name in ("split_indices", "split_type", "default_left", "loss_changes"):
        node[name] = np.where(is_split, node[name], 0).astype(node[name].dtype)
    node = {name: array.astype(NODE_ARRAYS[name]) for name, array in node.items()}
    lists = _pruned_lists(trees, source, is_split, node["split_type"])
    tree_kept = np.flatnonzero(np.diff(start))
    pruned = {int(t): _slices(node, lists, int(start[t]), int(start[t + 1])) for t in tree_kept}
    return pruned | {int(t): _zero_leaf() for t in np.flatnonzero(filler)}


def _positions(
    trees: XGBoostTrees, forest: Forest, replacement: NDArray[np.int32], split: Bools
) -> tuple[Ints, Ints, Ints]:
    """Return the forest node at each new position, the new position of each kept node, and the start of each tree."""
    new_node = np.full(trees.start[forest.n_trees], -1, np.int64)
    above = np.flatnonzero(split)
    # Each kept root, and each child of a kept split, gives its native position to the node that replaces it.
    for child in (above + 1, forest.right[above].astype(np.int64), forest.root[replacement[forest.root] != -1]):
        new_node[trees.order[child]] = replacement[child]
    used = new_node != -1
    source = new_node[used]
    new_id = np.full(forest.n_nodes, -1, np.int64)
    new_id[source] = np.arange(len(source))
    start = np.concatenate([[0], np.cumsum(used)])[trees.start[: forest.n_trees + 1]]
    return source, new_id, start


def _pruned_lists(
    trees: XGBoostTrees, source: Ints, is_split: Bools, split_type: NDArray[Any]
) -> tuple[Ints, Ints, Ints]:
    """Return the positions of categorical splits, the start of each list of categories, and the lists."""
    position = np.flatnonzero(is_split & (split_type == 1))
    return position, *_lists_at(trees, trees.order[source[position]])


def _slices(node: Saved, lists: tuple[Ints, Ints, Ints], first: int, stop: int) -> Saved:
    """Return the arrays of one tree, sliced from those of all trees."""
    tree = {name: array[first:stop] for name, array in node.items()}
    position, start, code = lists
    low, high = np.searchsorted(position, [first, stop]) if len(position) else (0, 0)
    found = {
        "categories": code[start[low] : start[high]],
        "categories_nodes": position[low:high] - first,
        "categories_segments": start[low:high] - start[low],
        "categories_sizes": np.diff(start[low : high + 1]),
    }
    return tree | {name: array.astype(CATEGORY_ARRAYS[name]) for name, array in found.items()}


def without_trees(model: Saved, trees: XGBoostTrees) -> tuple[Saved, Ints]:
    """Return the table of trees with one leaf of value 0 per output, or without trees if there were none."""
    outputs, first = np.unique(trees.output, return_index=True)
    blank = [{**model["trees"][t], **_zero_leaf(), "id": index} for index, t in enumerate(first.tolist())]
    for tree in blank:
        tree["tree_param"] = {**tree["tree_param"], "num_nodes": "1", "num_deleted": "0"}
    rounds = {"iteration_indptr": [0, len(first)] if len(first) else [0]} if "iteration_indptr" in model else {}
    counted = {**model["gbtree_model_param"], "num_trees": str(len(first)), "num_parallel_tree": "1"}
    found = {**model, **rounds, "gbtree_model_param": counted, "tree_info": outputs.tolist(), "trees": blank}
    # XGBoost 3.3 and later keep the weights of DART here, one for each tree.
    found.pop("weight_drop", None)
    return found, first


def _zero_leaf() -> Saved:
    """Return the arrays of a tree with a single leaf of value 0."""
    tree = {name: np.zeros(1, dtype) for name, dtype in NODE_ARRAYS.items()}
    for name, no_link in _LINKS.items():
        tree[name] = np.full(1, no_link, NODE_ARRAYS[name])
    return tree | {name: np.empty(0, dtype) for name, dtype in CATEGORY_ARRAYS.items()}


def check_one_kind(forest: Forest) -> NDArray[np.int32]:
    """Return the features with categorical splits; raise DamagedFileError if one of them also has numerical splits."""
    by_list = np.unique(forest.feature[forest.is_categorical])
    if np.isin(by_list, forest.feature[forest.is_split & ~forest.is_categorical]).any():
        raise damaged("a feature has both numerical and categorical splits")
    return by_list
