"""Predict with saved forests and Spark models row by row in plain Python, as an independent reference."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray


def forest_sums(header: dict[str, Any], arrays: Any, rows: Any, **changes: Any) -> NDArray[Any] | None:
    """Return the sums of a saved forest, (n_rows, n_outputs); None if it has categories, which it cannot read.

    `changes` may give a point of a path: `keep`, `value`, `tree_weight` and `base`.
    """
    facts = header["forest"]
    array = {name.removeprefix("forest."): arrays[name] for name in arrays if name.startswith("forest.")}
    if len(array["categories.row"]):
        return None
    keep = changes.get("keep", np.ones(len(array["right"]), bool))
    value = changes.get("value", array["value"])
    weight = changes.get("tree_weight", array["tree_weight"])
    walker = _Walker(array, facts, keep)
    starts = array["tree_start"].tolist()
    trees = [walker.whole(root, end) for root, end in pairwise(starts)]
    standing = [tree for tree, root in enumerate(trees) if root is not None]
    n_outputs, outputs = len(array["base"]), array["tree_output"].tolist()
    contribution = np.zeros((len(rows), len(standing), n_outputs))
    for i, row in enumerate(np.asarray(rows).astype(facts.get("input_dtype", "float64"))):
        for k, tree in enumerate(standing):
            leaf = walker.leaf(trees[tree], row.tolist())
            place = slice(None) if outputs[tree] == -1 else slice(outputs[tree], outputs[tree] + 1)
            contribution[i, k, place] = value[leaf] * weight[tree]
    if facts["aggregation"] == "median":
        return None
    if facts["aggregation"] == "sum":
        return changes.get("base", array["base"]) + contribution.sum(axis=1)
    divisor = facts["divisor"]
    if len(standing) < len(trees) or "tree_weight" in changes:
        divisor = float(np.sum(weight[standing])) * facts.get("unit", 1.0)
    sums = changes.get("base", array["base"]) + contribution.sum(axis=1)
    return sums / divisor if divisor else np.ones_like(sums)  # a divisor of 0 marks a certain outlier


class _Walker:
    """The path of a row through the trees of a forest, of which only some nodes are kept."""

    def __init__(self, array: Any, facts: dict[str, Any], keep: NDArray[np.bool_]) -> None:
        self.right, self.feature = array["right"].tolist(), array["feature"].tolist()
        self.threshold, self.default = array["threshold"].tolist(), array["default_left"].tolist()
        self.keep = keep.tolist()
        self.below = facts.get("comparison", "<=") == "<"
        self.zeros = set(facts.get("zero_is_missing") or ())

    def whole(self, root: int, end: int) -> int | None:
        """Return the root of a pruned tree; None if no node is kept."""
        return next((node for node in range(root, end) if self.keep[node]), None)

    def replacement(self, node: int) -> int | None:
        """Return the kept node for a node: itself, or the descendant that replaced it."""
        while not self.keep[node]:
            if self.right[node] == -1:
                return None
            sides = [self.replacement(child) for child in (node + 1, self.right[node])]
            found = [side for side in sides if side is not None]
            return found[0] if found else None
        return node

    def leaf(self, node: int, row: list[float]) -> int:
        while self.right[node] != -1:
            x = row[self.feature[node]]
            missing = x != x or (x == 0 and self.feature[node] in self.zeros)
            smaller = x < self.threshold[node] if self.below else x <= self.threshold[node]
            left = self.default[node] if missing else smaller
            follow = self.replacement(node + 1 if left else self.right[node])
            if follow is None:
                return node
            node = follow
        return node


def spark_sums(folder: Path, rows: Any) -> NDArray[Any]:
    """Return the sums of a saved model of boosted regression trees, from the rows of its Parquet files."""
    files = {name: sorted((folder / name).glob("[!._]*.parquet")) for name in ("data", "treesMetadata")}
    nodes = [node for file in files["data"] for node in pq.ParquetFile(file).read().to_pylist()]
    weights = [tree for file in files["treesMetadata"] for tree in pq.ParquetFile(file).read().to_pylist()]
    trees = {(node["treeID"], node["nodeData"]["id"]): node["nodeData"] for node in nodes}
    sums = np.zeros((len(rows), 1))
    for tree in weights:
        for i, row in enumerate(np.asarray(rows).tolist()):
            sums[i] += tree["_3"] * _spark_leaf(trees, tree["_1"], row)
    return sums


def _spark_leaf(trees: dict[tuple[int, int], Any], tree: int, row: list[float]) -> float:
    node = trees[tree, 0]
    while node["leftChild"] != -1:
        split, x = node["split"], row[node["split"]["featureIndex"]]
        if split["numCategories"] == -1:
            left = x <= split["leftCategoriesOrThreshold"][0]
        else:
            left = x in split["leftCategoriesOrThreshold"]
        node = trees[tree, node["leftChild"] if left else node["rightChild"]]
    return float(node["prediction"])


def archive(file: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return header and arrays of a .secateur or path file."""
    with np.load(file) as found:
        return json.loads(bytes(found["header"])), {name: found[name] for name in found.files if name != "header"}
