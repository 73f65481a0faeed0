"""Read the arrays of a scikit-learn `Tree` in preorder, and write a pruned copy.

A leaf has children -1, feature -2 and threshold -2. Trees grown best-first are not in preorder; `native_order` maps
between the two orders. A pruned tree keeps the node order of its original.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.errors import DamagedFileError

Floats = NDArray[np.float64]
_UNDEFINED = -2


@dataclass(frozen=True, eq=False)
class TreeArrays:
    """Hold one tree in preorder; `right` counts from the tree's root."""

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
        # The builder numbers nodes in order of creation: it is preorder if every left child is the next node.
        return None
    order = kernels.preorder(np.ascontiguousarray(left, dtype=np.int64), np.ascontiguousarray(right, dtype=np.int64))
    if len(order) != len(left):
        raise DamagedFileError(
            "The node arrays of a tree do not form a tree: a node is reached twice or never. "
            "The model is damaged. Load it again, or train it again."
        )
    return order


def ids_in_preorder(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.int64]:
    """Return the native ids in preorder, as an array in any case."""
    order = native_order(left, right)
    return np.arange(len(left)) if order is None else order


def samples_in_preorder(tree: Any) -> NDArray[np.int64]:
    """Return the number of distinct training rows at each node of a `Tree`, in preorder."""
    order = native_order(tree.children_left, tree.children_right)
    samples: NDArray[np.int64] = tree.n_node_samples
    return samples if order is None else samples[order]


def from_preorder(values: NDArray[Any], order: NDArray[np.int64] | None) -> NDArray[Any]:
    """Return values given in preorder permuted to native order; `order` is from `native_order`."""
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
        New values of the leaves; None keeps the original values. Values of remaining splits do not change.
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
    """Describe the kept nodes of a native tree, in native order."""

    keep: NDArray[np.bool_]
    """Whether each node is kept, (n_nodes,)."""
    left: NDArray[np.int64]
    """The new left child of each kept node, -1 at a leaf, (n_kept,)."""
    right: NDArray[np.int64]
    order: NDArray[np.int64] | None
    """The native ids in preorder, from `native_order`."""


def pruned_shape(left: NDArray[Any], right: NDArray[Any], keep: NDArray[np.bool_]) -> PrunedShape:
    """Return the shape of a native tree after a pruning given in preorder; a raised node takes its parent's place."""
    order = native_order(left, right)
    leaf = (left if order is None else left[order]) == -1
    preorder_right = _preorder_right(right if order is None else right[order], leaf, order)
    replacement = np.empty(len(keep), np.int32)
    kernels.replacements(preorder_right, keep, replacement)
    native_keep = from_preorder(keep, order)
    # Position of each kept node in the pruned native tree, then permuted to preorder.
    new_id = np.cumsum(native_keep) - 1
    if order is not None:
        new_id = new_id[order]
    new_left, new_right = np.full(len(keep), -1), np.full(len(keep), -1)
    split = np.flatnonzero(keep & ~leaf)
    # A kept split without kept children becomes a leaf.
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
    """Return a `Tree` with the given nodes and the features and classes of `like`."""
    n_classes = np.asarray(like.n_classes, dtype=np.intp)
    new = type(like)(like.n_features, n_classes, like.n_outputs)
    new.__setstate__({"max_depth": _depth(nodes), "node_count": len(nodes), "nodes": nodes, "values": values})
    return new


def one_leaf(tree: Any) -> Any:
    """Return a `Tree` of one leaf with value 0, which fills the position of a dropped tree."""
    state = tree.__getstate__()
    keep = np.zeros(len(state["nodes"]), bool)
    keep[0] = True
    return write_tree(tree, keep, np.zeros_like(state["values"]))


def _depth(nodes: NDArray[np.void]) -> int:
    """Return the depth of the deepest node; every native order has a parent before its children."""
    split = np.flatnonzero(nodes["left_child"] != -1)
    parent = np.full(len(nodes), -1, np.int32)
    parent[nodes["left_child"][split]] = split
    parent[nodes["right_child"][split]] = split
    return int(kernels.tree_depth(parent).max())
