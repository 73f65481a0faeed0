"""Write the tables of a pruned Spark model: nodes and trees are renumbered, everything else is kept."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from secateur.forest import Forest
from secateur.libraries.spark.arrow import Floats, arrow_array, inside, node_columns, numbers
from secateur.libraries.spark.read_nodes import NodeTable, tree_columns
from secateur.libraries.spark.splits import ranges


def pruned_table(nodes: NodeTable, keep: NDArray[np.bool_], small: Forest, new: dict[str, Any]) -> pa.Table:
    """Return the table of the kept nodes, with ids in preorder.

    Parameters
    ----------
    nodes : NodeTable
    keep : (n_nodes,) bool
    small : Forest
        The pruned forest.
    new : dict
        Replaced columns: "prediction" (n_kept,), "impurityStats" (n_kept, width).
    """
    table = nodes.table if keep.all() else nodes.table.take(pa.array(np.flatnonzero(keep)))
    columns, size = node_columns(table), np.diff(small.tree_start)
    root, leaf = np.repeat(small.tree_start[:-1], size), ~small.is_split
    node_id = np.arange(small.n_nodes) - root
    new = {
        **new,
        "treeID": np.repeat(np.arange(small.n_trees), size),
        "id": node_id,
        "leftChild": np.where(leaf, -1, node_id + 1),
        "rightChild": np.where(leaf, -1, small.right - root),
        "gain": np.where(leaf, -1.0, nodes.gain[keep]),
    }
    split = inside(columns, "split")
    original, length = np.flatnonzero(keep), np.diff(nodes.first)[keep]
    length[leaf] = 0
    new_split = {
        "featureIndex": np.where(leaf, -1, numbers(split, "featureIndex", np.int64)),
        "numCategories": np.where(leaf, -1, numbers(split, "numCategories", np.int64)),
        "leftCategoriesOrThreshold": (nodes.listed[ranges(nodes.first[original], length)], length),
    }
    split.update({name: arrow_array(content, split[name].type) for name, content in new_split.items()})
    columns.update({name: arrow_array(new[name], columns[name].type) for name in new if name in columns})
    columns["split"] = pa.StructArray.from_arrays(list(split.values()), fields=list(columns["split"].type))
    if "nodeData" in table.column_names:
        inner = table.schema.field("nodeData").type
        data = pa.StructArray.from_arrays([columns[field.name] for field in inner], fields=list(inner))
        columns["nodeData"] = data
    return pa.Table.from_arrays([columns[name] for name in table.column_names], schema=table.schema)


def pruned_trees(table: pa.Table, tree_kept: NDArray[np.bool_], weight: Floats | None) -> pa.Table:
    """Return the rows of the kept trees, renumbered."""
    order = np.argsort(tree_columns(table)[0])[tree_kept]
    table = table.take(pa.array(order))
    fields = table.schema
    table = table.set_column(0, fields.field(0), pa.array(np.arange(len(order))).cast(fields.field(0).type))
    if weight is not None:
        table = table.set_column(2, fields.field(2), pa.array(weight).cast(fields.field(2).type))
    return table
