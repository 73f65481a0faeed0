"""Read and validate the node table of a saved Spark model, in preorder.

Each row is a node: id within its tree, prediction, impurity, impurityStats (class weights, or weight, sum and sum of
squares), rawCount, gain, leftChild, rightChild and split (featureIndex, leftCategoriesOrThreshold, numCategories).
A leaf has children -1. In ensembles these columns are fields of `nodeData`, next to `treeID`.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from secateur import kernels
from secateur.libraries.spark.arrow import Floats, Ints, inside, lists, node_columns, numbers
from secateur.libraries.spark.saved_model import damaged


@dataclass(frozen=True, eq=False)
class NodeTable:
    """Hold the nodes of a model in preorder, tree by tree.

    Attributes
    ----------
    table : pyarrow.Table
        Spark's columns, rows in preorder.
    native_id : (n_nodes,)
        Spark's node ids.
    tree_start : (n_trees + 1,)
    tree_id : (n_trees,)
    right : (n_nodes,) int32
        The right child, counted over all nodes, -1 at a leaf.
    prediction, stats : (n_nodes,) and (n_nodes, width)
    raw_count : (n_nodes,), or None
        Unweighted training rows; Spark before 3.0 does not save it.
    impurity, gain : (n_nodes,)
        As Spark stores them; a leaf has no gain.
    feature, n_categories : (n_nodes,)
        -1 at a leaf; `n_categories` also -1 at a numeric split.
    listed, first : (n_listed,) and (n_nodes + 1,)
        Node v has `listed[first[v]:first[v + 1]]`: its threshold, or the categories routed left.
    """

    table: pa.Table
    native_id: Ints
    tree_start: Ints
    tree_id: Ints
    right: NDArray[np.int32]
    prediction: Floats
    stats: Floats
    raw_count: Ints | None
    impurity: Floats
    gain: Floats
    feature: Ints
    n_categories: Ints
    listed: Floats
    first: Ints

    @property
    def leaf(self) -> NDArray[np.bool_]:
        """Whether each node is a leaf, (n_nodes,)."""
        return self.right == -1


def read_nodes(table: pa.Table, width: int) -> NodeTable:
    """Return the nodes of a table, with `width` statistics each.

    Raises
    ------
    DamagedFileError
        If the rows do not form trees.
    """
    columns = node_columns(table)
    tree = numbers(columns, "treeID", np.int64) if "treeID" in columns else np.zeros(table.num_rows, np.int64)
    if not len(tree):
        raise damaged("The table of nodes is empty")
    node = numbers(columns, "id", np.int64)
    rows = np.lexsort((node, tree))
    tree_id, size = np.unique(tree, return_counts=True)
    start = np.concatenate([[0], np.cumsum(size)])
    first_node, n_nodes = np.repeat(start[:-1], size), np.repeat(size, size)
    if (node[rows] != np.arange(len(rows)) - first_node).any():
        raise damaged("The ids of the nodes of a tree are not 0, 1, 2 and so on, each once")
    left, right = (numbers(columns, name, np.int64)[rows] for name in ("leftChild", "rightChild"))
    leaf = left == -1
    for child in (left[~leaf], right[~leaf]):
        if ((child <= node[rows][~leaf]) | (child >= n_nodes[~leaf])).any():
            raise damaged("A child of a node is not one of the later nodes of its tree")
    left, right = np.where(leaf, -1, left + first_node), np.where(leaf, -1, right + first_node)
    order = _preorder(start, left, right)
    if order is not None:
        position = np.empty_like(order)
        position[order] = np.arange(len(order))
        rows, right = rows[order], np.where(leaf, -1, position[right])[order]
    if (rows != np.arange(len(rows))).any():
        table = table.take(pa.array(rows))
    return _fill(table, start, tree_id, right.astype(np.int32), width)


def _preorder(start: Ints, left: Ints, right: Ints) -> Ints | None:
    """Return the nodes in preorder, tree by tree; None if they are in preorder already, as Spark writes them."""
    split = np.flatnonzero(left != -1)
    next_is_left = bool((left[split] == split + 1).all())
    if next_is_left and kernels.subtree_end(start, right.astype(np.int32), np.empty(len(right), np.int64)) == -1:
        return None
    orders = []
    for first, stop in pairwise(start):
        leaf = left[first:stop] == -1
        order = kernels.preorder(
            np.where(leaf, -1, left[first:stop] - first), np.where(leaf, -1, right[first:stop] - first)
        )
        if len(order) != stop - first:
            raise damaged("The nodes of a tree do not form a tree: one is reached twice or never")
        orders.append(order + first)
    return np.concatenate(orders)


def _fill(table: pa.Table, start: Ints, tree_id: Ints, right: NDArray[np.int32], width: int) -> NodeTable:
    """Return the node table of rows in preorder; everything is checked except the split conditions."""
    columns = node_columns(table)
    stats, first_stat = lists(columns, "impurityStats")
    if (np.diff(first_stat) != width).any():
        raise damaged(f"A node does not have the {width} impurityStats that this model needs")
    split = inside(columns, "split")
    listed, first = lists(split, "leftCategoriesOrThreshold")
    nodes = NodeTable(
        table=table,
        native_id=numbers(columns, "id", np.int64),
        tree_start=start.astype(np.int64),
        tree_id=tree_id,
        right=right,
        prediction=numbers(columns, "prediction", np.float64),
        stats=stats.reshape(-1, width),
        raw_count=numbers(columns, "rawCount", np.int64) if "rawCount" in columns else None,
        impurity=numbers(columns, "impurity", np.float64),
        gain=numbers(columns, "gain", np.float64),
        feature=np.where(right == -1, -1, numbers(split, "featureIndex", np.int64)),
        n_categories=np.where(right == -1, -1, numbers(split, "numCategories", np.int64)),
        listed=listed,
        first=first,
    )
    if not (np.isfinite(nodes.prediction).all() and np.isfinite(nodes.stats).all()):
        raise damaged("A node has a prediction or impurityStats that are not finite")
    return nodes


def tree_columns(table: pa.Table) -> tuple[NDArray[np.int64], Floats]:
    """Return tree ids and weights, the first and third column, whose names differ between Spark 3 and 4."""
    kinds = [field.type for field in table.schema]
    expected = len(kinds) >= 3 and pa.types.is_integer(kinds[0]) and pa.types.is_floating(kinds[2])
    if not expected or table.column(0).null_count or table.column(2).null_count:
        raise damaged(f"treesMetadata has the columns {table.column_names}, not ids, descriptions and weights of trees")
    return table.column(0).to_numpy().astype(np.int64), table.column(2).to_numpy().astype(np.float64)
