"""Read and validate all trees of a saved XGBoost model, concatenated in XGBoost's node order.

XGBoost does not check indices when it loads a model, so a damaged model makes it access memory out of bounds.
Everything it would use as an index is therefore checked here first.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.errors import UnsupportedModelError
from secateur.libraries.xgboost.saved_model import (
    LARGEST_CATEGORY,
    MAY_BE_ABSENT,
    NODE_ARRAYS,
    Saved,
    booster_part,
    count,
    damaged,
    dart_weight_table,
    entry,
    integers,
    n_outputs,
    numbers,
)


@dataclass(frozen=True, eq=False)
class XGBoostTrees:
    """Hold all trees of a saved model.

    Attributes
    ----------
    start : (n_trees + 1,) int64
        The first node of each tree.
    node : dict of (n_nodes,) arrays
        `NODE_ARRAYS`, concatenated; children and parents count from the root of their tree.
    category_node : (n_lists,) int64
        The nodes with a list of categories, counted over all trees.
    category_start, category : (n_lists + 1,) and (n_codes,) int64
        List r is `category[category_start[r]:category_start[r + 1]]`, sorted.
    output : (n_trees,) int32
        The output each tree contributes to.
    weight : (n_trees,) float32
        DART's tree weights, 1 otherwise.
    rounds : (n_rounds + 1,) int64
        Round r trained the trees `rounds[r]:rounds[r + 1]`.
    order : (n_reached,) int64
        The nodes of all trees in preorder; deleted nodes belong to no tree.
    order_start : (n_trees + 1,) int64
        The first entry of each tree in `order`.
    """

    start: NDArray[np.int64]
    node: dict[str, NDArray[Any]]
    category_node: NDArray[np.int64]
    category_start: NDArray[np.int64]
    category: NDArray[np.int64]
    output: NDArray[np.int32]
    weight: NDArray[np.float32]
    rounds: NDArray[np.int64]
    order: NDArray[np.int64]
    order_start: NDArray[np.int64]


def read_trees(saved: Saved) -> XGBoostTrees:
    """Return the trees of a saved model, with every index checked."""
    model = booster_part(saved)["model"]
    trees = entry(model, "trees")
    if not isinstance(trees, list) or any(not isinstance(tree, dict) for tree in trees):
        raise damaged("its trees are not a list of tables")
    if count(model, "gbtree_model_param", "num_trees") != len(trees):
        raise damaged(f"num_trees is {model['gbtree_model_param']['num_trees']}, but it has {len(trees)} trees")
    _check_ids(trees)
    if any(count(tree, "tree_param", "size_leaf_vector") > 1 for tree in trees):
        raise UnsupportedModelError(
            "This XGBoost model has vector leaves (multi_strategy='multi_output_tree'), which secateur does not "
            "support. Train it with multi_strategy='one_output_per_tree'."
        )
    sizes = np.array([count(tree, "tree_param", "num_nodes") for tree in trees], np.int64)
    node = {name: _joined(trees, name, sizes) for name in NODE_ARRAYS}
    start = np.concatenate([[0], np.cumsum(sizes)])
    order, order_start = _preorder(start, node)
    _check_nodes(saved, start, node, order)
    outputs = n_outputs(saved)
    output = integers(entry(model, "tree_info"), "tree_info", len(trees), outputs).astype(np.int32)
    return XGBoostTrees(
        start,
        node,
        *_categories(trees, start, node),
        output,
        _weights(saved, len(trees)),
        _rounds(model, len(trees), outputs),
        order,
        order_start,
    )


def _check_ids(trees: list[dict[str, Any]]) -> None:
    ids = [entry(tree, "id") for tree in trees]
    if ids != list(range(len(trees))):
        raise damaged("the ids of its trees are not 0, 1, 2 and so on")


def _joined(trees: list[dict[str, Any]], name: str, sizes: NDArray[np.int64]) -> NDArray[Any]:
    """Return one array concatenated over all trees, in native byte order."""
    dtype = np.dtype(NODE_ARRAYS[name]).newbyteorder("=")
    if name in MAY_BE_ABSENT and not any(name in tree for tree in trees):
        return np.zeros(int(sizes.sum()), dtype)
    kinds = "iubf" if dtype.kind == "f" else "iub"
    arrays = [numbers(entry(tree, name), name, kinds) for tree in trees]
    if [len(array) for array in arrays] != sizes.tolist():
        raise damaged(f"{name} of a tree does not have num_nodes entries")
    return _cast(np.concatenate(arrays) if arrays else np.empty(0), name, dtype)


def _cast(values: NDArray[Any], name: str, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the values as the dtype XGBoost uses."""
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return values.astype(dtype, copy=False)
    limits = np.iinfo(dtype)
    if len(values) and (values.min() < limits.min or values.max() > limits.max):
        raise damaged(f"{name} has numbers outside {limits.min} to {limits.max}")
    return values.astype(dtype, copy=False)


def _preorder(start: NDArray[np.int64], node: dict[str, NDArray[Any]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the reachable nodes of all trees in preorder, and the start of each tree."""
    left, right = node["left_children"].astype(np.int64), node["right_children"].astype(np.int64)
    if ((left == -1) != (right == -1)).any():
        raise damaged("a node has only one child")
    orders: list[NDArray[np.int64]] = []
    for first, stop in pairwise(start.tolist()):
        order = kernels.preorder(left[first:stop], right[first:stop]) if stop > first else np.empty(0, np.int64)
        if not len(order):
            raise damaged(f"tree {len(orders)} is not a tree: a node is reached twice, or a child does not exist")
        orders.append(order + first)
    sizes = [len(order) for order in orders]
    return np.concatenate(orders) if orders else np.empty(0, np.int64), np.concatenate([[0], np.cumsum(sizes)]).astype(
        np.int64
    )


def _check_nodes(
    saved: Saved, start: NDArray[np.int64], node: dict[str, NDArray[Any]], order: NDArray[np.int64]
) -> None:
    """Raise DamagedFileError unless splits have a valid feature and condition, and leaves a finite value."""
    is_split = node["left_children"][order] != -1
    split, leaf = order[is_split], order[~is_split]
    features = count(saved, "learner", "learner_model_param", "num_feature")
    used = node["split_indices"][split]
    if len(split) and (used.min() < 0 or used.max() >= features):
        raise damaged(f"a split uses a feature outside 0 to {features - 1}")
    if not np.isfinite(node["split_conditions"][leaf]).all():
        raise damaged("a leaf value is not finite")
    if np.isnan(node["split_conditions"][split][node["split_type"][split] == 0]).any():
        raise damaged("a split has the threshold NaN")
    if (node["split_type"][split] > 1).any():
        raise damaged("a split is neither numerical nor categorical")
    first = np.repeat(start[:-1], np.diff(start))
    for side in ("left_children", "right_children"):
        if (node["parents"][first[split] + node[side][split]] != split - first[split]).any():
            raise damaged("the parent of a node is not the split it is a child of")


def _categories(
    trees: list[dict[str, Any]], start: NDArray[np.int64], node: dict[str, NDArray[Any]]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the nodes with lists of categories, the start of each list, and the sorted lists."""
    nodes, sizes, codes = [], [], []
    for first, tree in zip(start[:-1], trees, strict=True):
        listed = integers(tree.get("categories_nodes", []), "categories_nodes", None, entry_size(tree))
        if not len(listed):
            continue
        code = integers(entry(tree, "categories"), "categories", None, LARGEST_CATEGORY)
        size = integers(entry(tree, "categories_sizes"), "categories_sizes", len(listed), len(code) + 1)
        begin = integers(entry(tree, "categories_segments"), "categories_segments", len(listed), len(code) + 1)
        if (np.diff(listed) <= 0).any() or not np.array_equal(begin, np.cumsum(size) - size) or size.sum() != len(code):
            raise damaged("the category lists of a tree overlap or are out of order")
        nodes.append(listed + first)
        sizes.append(size)
        codes.append(code)
    node_of = np.concatenate([np.empty(0, np.int64), *nodes])
    begin = np.concatenate([[0], np.cumsum(np.concatenate([np.empty(0, np.int64), *sizes]))]).astype(np.int64)
    if not np.array_equal(np.flatnonzero(node["split_type"] == 1), node_of):
        raise damaged("its categorical splits are not exactly the nodes with category lists")
    code = np.concatenate([np.empty(0, np.int64), *codes])
    row = np.repeat(np.arange(len(node_of)), np.diff(begin))
    return node_of, begin, code[np.lexsort((code, row))]


def entry_size(tree: dict[str, Any]) -> int:
    """Return the number of nodes of a tree, including deleted ones."""
    return count(tree, "tree_param", "num_nodes")


def _weights(saved: Saved, n_trees: int) -> NDArray[np.float32]:
    table = dart_weight_table(saved)
    if table is None:
        return np.ones(n_trees, np.float32)
    weight = numbers(table["weight_drop"], "weight_drop", "iuf")
    if len(weight) != n_trees or not np.isfinite(weight).all():
        raise damaged(f"weight_drop must be {n_trees} finite numbers, one for each tree")
    return weight.astype(np.float32)


def _rounds(model: dict[str, Any], n_trees: int, outputs: int) -> NDArray[np.int64]:
    """Return the first tree of each boosting round; before XGBoost 2.1 all rounds have equally many trees."""
    if "iteration_indptr" in model:
        rounds = integers(model["iteration_indptr"], "iteration_indptr", None, n_trees + 1)
        if not len(rounds) or rounds[0] != 0 or rounds[-1] != n_trees or (np.diff(rounds) < 0).any():
            raise damaged(f"iteration_indptr does not increase from 0 to {n_trees}, the number of trees")
        return rounds
    each = max(count(model, "gbtree_model_param", "num_parallel_tree"), 1) * outputs
    if n_trees % each:
        raise damaged(f"it has {n_trees} trees, not a multiple of the {each} trees per round")
    return np.arange(0, n_trees + 1, each)
