"""One scikit-learn `Tree`: its arrays read into preorder, and a pruned copy written.

A leaf has children -1, feature -2, threshold -2. Trees grown best-first are not in preorder; the order found here
maps between the two, and a pruned tree keeps the order of the tree it came from.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur import kernels

Floats = NDArray[np.float64]
_UNDEFINED = -2


@dataclass(frozen=True, eq=False)
class TreeArrays:
    """One tree in preorder; `right` is counted from the root."""

    right: NDArray[np.int32]
    feature: NDArray[np.int32]
    threshold: Floats
    default_left: NDArray[np.bool_]
    value: Floats
    weight: Floats
    n_samples: NDArray[np.int64]


def read_tree(tree: Any) -> TreeArrays:
    """Return the arrays of a `sklearn.tree._tree.Tree`; values are (n_nodes, n_outputs, n_classes)."""
    state = tree.__getstate__()
    nodes, values = state["nodes"], state["values"]
    order = native_order(nodes["left_child"], nodes["right_child"])
    if order is not None:
        nodes, values = nodes[order], values[order]
    leaf = nodes["left_child"] == -1
    return TreeArrays(
        right=_preorder_right(nodes["right_child"], leaf, order),
        feature=np.where(leaf, -1, nodes["feature"]).astype(np.int32),
        threshold=nodes["threshold"].copy(),
        default_left=(nodes["missing_go_to_left"] != 0) & ~leaf,
        value=values,
        weight=nodes["weighted_n_node_samples"].copy(),
        n_samples=nodes["n_node_samples"].copy(),
    )


def native_order(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.int64] | None:
    """Return the native ids in preorder, or None if the tree is in preorder already."""
    split = np.flatnonzero(left != -1)
    if (left[split] == split + 1).all():
        return None  # the builder numbers nodes as it meets them, so left = next implies preorder
    order = kernels.preorder(np.ascontiguousarray(left, dtype=np.int64), np.ascontiguousarray(right, dtype=np.int64))
    if len(order) != len(left):
        raise ValueError(
            "The arrays of a tree in this model do not form a tree: a node is reached twice or never. "
            "The model is damaged; load it again or retrain it."
        )
    return order


def ids_in_preorder(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.int64]:
    """Return the native ids in preorder, also if they are simply counted up."""
    order = native_order(left, right)
    return np.arange(len(left)) if order is None else order


def from_preorder(values: NDArray[Any], order: NDArray[np.int64] | None) -> NDArray[Any]:
    """Return values given in preorder in the native order that `native_order` found."""
    if order is None:
        return values
    native = np.empty_like(values)
    native[order] = values
    return native


def _preorder_right(right: NDArray[Any], leaf: NDArray[np.bool_], order: NDArray[np.int64] | None) -> NDArray[np.int32]:
    if order is None:
        return np.where(leaf, -1, right).astype(np.int32)
    position = from_preorder(np.arange(len(order), dtype=np.int32), order)
    return np.where(leaf, np.int32(-1), position[right])


def write_tree(tree: Any, keep: NDArray[np.bool_], value: Floats | None) -> Any:
    """Return a new `Tree` with the kept nodes.

    Parameters
    ----------
    tree : sklearn.tree._tree.Tree
    keep : (n_nodes,) bool, in preorder
    value : (n_nodes, n_outputs, n_classes), in preorder, or None
        New values for the leaves; None keeps the tree's own. Splits that stay are not touched.
    """
    state = tree.__getstate__()
    shape = pruned_shape(state["nodes"]["left_child"], state["nodes"]["right_child"], keep)
    nodes, leaf = state["nodes"][shape.keep], shape.left == -1
    nodes["left_child"], nodes["right_child"] = shape.left, shape.right
    nodes["feature"][leaf] = _UNDEFINED
    nodes["threshold"][leaf] = _UNDEFINED
    nodes["missing_go_to_left"][leaf] = 0
    values = np.ascontiguousarray(state["values"][shape.keep])
    if value is not None:
        values[leaf] = from_preorder(value, shape.order)[shape.keep][leaf]
    return build_tree(tree, nodes, values)


@dataclass(frozen=True, eq=False)
class PrunedShape:
    """What stays of a native tree, in its own node order."""

    keep: NDArray[np.bool_]
    """Which nodes stay, (n_nodes,)."""
    left: NDArray[np.int64]
    """The new left child of each node that stays, -1 at a leaf, (n_kept,)."""
    right: NDArray[np.int64]
    order: NDArray[np.int64] | None
    """From `native_order`."""


def pruned_shape(left: NDArray[Any], right: NDArray[Any], keep: NDArray[np.bool_]) -> PrunedShape:
    """Return the shape of a native tree after a cut given in preorder; raised nodes get their parent's place."""
    order = native_order(left, right)
    leaf = (left if order is None else left[order]) == -1
    preorder_right = _preorder_right(right if order is None else right[order], leaf, order)
    replacement = np.empty(len(keep), np.int32)
    kernels.replacements(preorder_right, keep, replacement)
    native_keep = from_preorder(keep, order)
    new_id = np.cumsum(native_keep) - 1
    if order is not None:
        new_id = new_id[order]
    new_left, new_right = np.full(len(keep), -1), np.full(len(keep), -1)
    split = np.flatnonzero(keep & ~leaf)
    split = split[replacement[preorder_right[split]] != -1]
    new_left[split] = new_id[replacement[split + 1]]
    new_right[split] = new_id[replacement[preorder_right[split]]]
    return PrunedShape(
        native_keep,
        from_preorder(new_left, order)[native_keep],
        from_preorder(new_right, order)[native_keep],
        order,
    )


def build_tree(like: Any, nodes: NDArray[np.void], values: Floats) -> Any:
    """Return a `Tree` of the same features and classes as `like` with other nodes."""
    n_classes = np.asarray(like.n_classes, dtype=np.intp)
    new = type(like)(like.n_features, n_classes, like.n_outputs)
    new.__setstate__({"max_depth": _depth(nodes), "node_count": len(nodes), "nodes": nodes, "values": values})
    return new


def one_leaf(tree: Any) -> Any:
    """Return a `Tree` that says 0 to every row: what stays of a dropped tree whose place must be filled."""
    state = tree.__getstate__()
    keep = np.zeros(len(state["nodes"]), bool)
    keep[0] = True
    return write_tree(tree, keep, np.zeros_like(state["values"]))


def _depth(nodes: NDArray[np.void]) -> int:
    """Return the depth of the deepest node; in every native order a parent comes before its children."""
    split = np.flatnonzero(nodes["left_child"] != -1)
    parent = np.full(len(nodes), -1, np.int32)
    parent[nodes["left_child"][split]] = split
    parent[nodes["right_child"][split]] = split
    return int(kernels.tree_depth(parent).max())
