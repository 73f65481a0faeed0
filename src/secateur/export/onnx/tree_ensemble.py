"""Translate trees to ONNX operators: rows to raw predictions.

Two properties of onnxruntime's loader shape the arrays of the TreeEnsemble:

* It takes a root whose two children have the same index for a leaf, even if one is a node and the other a leaf. So
  leaves are numbered from 2, and a tree of one leaf becomes a split with that leaf on both sides.
* It copies a categorical split, with its subtree, for every category. So categorical splits become columns of zeros
  and ones that are computed before the trees.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.export.onnx.graph import Graph
from secateur.forest import Forest

# The largest absolute value LightGBM treats as 0, as in `routing`.
_ZERO = float(np.float32(1e-35))
_SPARE_LEAVES = 2
# Limit of values per row in memory while trees with a value for each output are summed.
_TERMS_AT_ONCE = 1024
# Category codes have 32 bits; larger values are no category.
_BEYOND_CODES = 2.0**32


def add_sums(graph: Graph, forest: Forest, *, tiny_is_zero: bool = False) -> str:
    """Add operators that compute raw predictions (n_rows, n_outputs), divided if the forest is a mean.

    With `tiny_is_zero`, values that LightGBM does not distinguish from 0 become 0.
    """
    base, tree_value = forest.base, forest.value * _per_node(forest, forest.tree_weight)[:, None]
    # The same special case as in `raw_scores`.
    if forest.aggregation == "mean" and not forest.divisor:
        return _constant(graph, np.ones(forest.n_outputs))
    if not forest.is_split.any():
        for tree, root in enumerate(forest.root):
            output = forest.tree_output[tree]
            base = base + (tree_value[root] if output < 0 else np.eye(forest.n_outputs)[output] * tree_value[root, 0])
        sums = _constant(graph, base)
    elif (forest.tree_output < 0).all() and forest.n_outputs > 1:
        sums = _wide_sums(graph, forest, _columns(graph, forest, tiny_is_zero), tree_value)
    else:
        sums = _narrow_sums(graph, forest, _columns(graph, forest, tiny_is_zero), tree_value[:, 0])
    if forest.aggregation == "mean":
        sums = graph.add("Div", sums, np.float64(forest.divisor))
    return sums


def _per_node(forest: Forest, per_tree: NDArray[Any]) -> NDArray[Any]:
    return np.repeat(per_tree, np.diff(forest.tree_start))


def _constant(graph: Graph, row: NDArray[np.float64]) -> str:
    """Add a constant row, repeated for every row of X."""
    n_rows = graph.add("Gather", graph.add("Shape", "X"), np.array([0]))
    return graph.add("Expand", row[None], graph.add("Concat", n_rows, np.array([len(row)]), axis=0))


def _narrow_sums(graph: Graph, forest: Forest, columns: "Columns", value: NDArray[np.float64]) -> str:
    """Add trees with one output each.

    The first tree of an output includes the base, which gives the forest's order of addition.
    """
    output = np.maximum(forest.tree_output, 0)
    outputs_with_trees, first = np.unique(output, return_index=True)
    start = np.zeros(forest.n_trees)
    start[first] = forest.base[outputs_with_trees]
    value = _per_node(forest, start) + value
    sums = _trees(graph, forest, columns, value, _per_node(forest, output), forest.n_outputs)
    other_base = np.where(np.isin(np.arange(forest.n_outputs), outputs_with_trees), 0.0, forest.base)
    return graph.add("Add", sums, other_base) if other_base.any() else sums


def _wide_sums(graph: Graph, forest: Forest, columns: "Columns", value: NDArray[np.float64]) -> str:
    """Add trees that contribute to all outputs.

    A leaf in ONNX has one number, so it holds the index of its row in a table of values. CumSum adds in the order of
    the trees; a plain sum does not.
    """
    trees, n_outputs = np.arange(forest.n_trees), forest.n_outputs
    leaf = ~forest.is_split
    leaf_index = (np.cumsum(leaf) - 1).astype(np.float64)
    reached = _trees(graph, forest, columns, leaf_index, _per_node(forest, trees), len(trees))
    reached = graph.add("Cast", reached, to=np.int64)
    table = graph.constant(value[leaf])
    sums = graph.add("Unsqueeze", _constant(graph, forest.base), np.array([1]))
    step = max(_TERMS_AT_ONCE // n_outputs, 1)
    # Invariant: `sums` is the base plus the contributions of the trees before `first`, (n_rows, 1, n_outputs).
    for first in range(0, len(trees), step):
        block = graph.add("Gather", reached, trees[first : first + step], axis=1)
        terms = graph.add("Concat", sums, graph.add("Gather", table, block), axis=1)
        sums = graph.add("Gather", graph.add("CumSum", terms, np.int64(1)), np.array([-1]), axis=1)
    return graph.add("Squeeze", sums, np.array([1]))


def _trees(
    graph: Graph,
    forest: Forest,
    columns: "Columns",
    value: NDArray[np.float64],
    target: NDArray[Any],
    n_targets: int,
) -> str:
    """Add the TreeEnsemble; `value` and `target` are a leaf's contribution and its output, (n_nodes,)."""
    split = forest.is_split
    # A tree of one leaf becomes a split with two copies of that leaf.
    is_single = np.zeros(forest.n_nodes, bool)
    is_single[forest.root] = ~split[forest.root]
    written = np.flatnonzero(split | is_single)
    single = is_single[written]
    leaves = np.repeat(np.arange(forest.n_nodes), np.where(split, 0, 1 + is_single))
    node_id = np.cumsum(split | is_single) - 1
    leaf_id = np.searchsorted(leaves, np.arange(forest.n_nodes)) + _SPARE_LEAVES
    left, right = np.where(single, written, written + 1), np.where(single, written, forest.right[written])
    spare = np.zeros(_SPARE_LEAVES)
    name, feature = columns
    categorical = feature[written] >= forest.n_features
    threshold = np.where(categorical, 0.5, np.where(single, 0.0, forest.threshold[written]))
    return graph.add(
        "TreeEnsemble",
        name,
        domain="ai.onnx.ml",
        n_targets=n_targets,
        aggregate_function=1,
        post_transform=0,
        tree_roots=node_id[forest.root],
        nodes_splits=graph.tensor(threshold),
        nodes_featureids=np.where(single, forest.feature[split][0], feature[written]),
        nodes_modes=graph.tensor(np.full(len(written), int(forest.comparison == "<"), np.uint8)),
        nodes_missing_value_tracks_true=forest.default_left[written].astype(np.int64),
        nodes_truenodeids=np.where(split[left], node_id[left], leaf_id[left]),
        nodes_trueleafs=(~split[left]).astype(np.int64),
        nodes_falsenodeids=np.where(split[right], node_id[right], leaf_id[right] + single),
        nodes_falseleafs=(~split[right]).astype(np.int64),
        leaf_weights=graph.tensor(np.concatenate([spare, value[leaves]])),
        leaf_targetids=np.concatenate([spare.astype(np.int64), target[leaves]]),
    )


Columns = tuple[str, NDArray[np.int64]]
"""The name of the matrix of columns the trees use, and the column of each node."""


def _columns(graph: Graph, forest: Forest, tiny_is_zero: bool) -> Columns:
    """Add the columns as the trees use them: cast, with zeros and categories encoded."""
    columns = "X"
    if forest.input_dtype == "float32":
        columns = graph.add("Cast", graph.add("Cast", columns, to=np.float32), to=np.float64)
    if forest.zero_is_missing or tiny_is_zero:
        zero = graph.add("LessOrEqual", graph.add("Abs", columns), np.float64(_ZERO))
    if tiny_is_zero:
        columns = graph.add("Where", zero, np.float64(0), columns)
    if forest.zero_is_missing:
        affected = np.isin(np.arange(forest.n_features), forest.zero_is_missing)[None]
        columns = graph.add("Where", graph.add("And", zero, affected), np.float64(np.nan), columns)
    feature = forest.feature.astype(np.int64)
    if not (forest.categories.row >= 0).any():
        return columns, feature
    nodes = np.flatnonzero(forest.categories.row >= 0)
    pairs, pair_of = np.unique(
        np.column_stack([forest.feature[nodes], forest.categories.row[nodes]]), axis=0, return_inverse=True
    )
    feature[nodes] = forest.n_features + pair_of.ravel()
    sides = [
        _sides(graph, forest, columns, int(column), pairs[pairs[:, 0] == column, 1])
        for column in np.unique(pairs[:, 0])
    ]
    return graph.add("Concat", columns, *sides, axis=1), feature


def _sides(graph: Graph, forest: Forest, columns: str, column: int, lists: NDArray[np.int32]) -> str:
    """Add the sides of one column, (n_rows, n_lists): 0 if a list routes a row left, 1 if right, NaN if missing."""
    categories = forest.categories
    length = np.diff(categories.start)[lists]
    entry = np.concatenate([np.arange(categories.start[r], categories.start[r + 1]) for r in lists])
    known, position = np.unique(categories.code[entry], return_inverse=True)
    # The last row is for categories that are not listed.
    goes_right = np.tile(~categories.other_left[lists], (len(known) + 1, 1))
    goes_right[position, np.repeat(np.arange(len(lists)), length)] = ~categories.left[entry]
    x = graph.add("Gather", columns, np.int64(column), axis=1)
    missing = graph.add("IsNaN", x)
    number = graph.add("Where", missing, np.float64(0), x)
    number = graph.add("Min", graph.add("Max", number, np.float64(-_BEYOND_CODES)), np.float64(_BEYOND_CODES))
    # An encoder needs a key; without listed categories, any key has the row of those that are not listed.
    keys, rows = (known.astype(np.int64), np.arange(len(known))) if len(known) else (np.zeros(1, np.int64),) * 2
    row = graph.add(
        "LabelEncoder",
        # The cast truncates towards zero.
        graph.add("Cast", number, to=np.int64),
        domain="ai.onnx.ml",
        keys_int64s=keys,
        values_int64s=rows,
        default_int64=len(known),
    )
    side = graph.add("Gather", goes_right.astype(np.float64), row)
    return graph.add("Where", graph.add("Unsqueeze", missing, np.array([1])), np.float64(np.nan), side)
