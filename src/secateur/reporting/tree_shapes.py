"""Describe the trees of a path for the report: the nodes present at each point, and their values."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.forest import Forest
from secateur.forest.subforest import check_keep, kept_splits
from secateur.path import Path
from secateur.plotting.split_labels import class_names, split_text
from secateur.reporting._json import changes, rounded

Ints = NDArray[np.integer[Any]]

MOST_TREES = 24
MOST_NODES = 6000
MOST_VALUES = 150_000
_CHUNK = 4096


def describe_trees(path: Path, point: int, valued_points: Ints) -> list[dict[str, Any]]:
    """Return the trees shown on the page, each with its nodes in an order with parents before children.

    At most `MOST_TREES` trees are shown, the largest at `point`. Of a large tree, the nodes that are present at the
    most points are shown. `valued_points` are the points at which refitted leaf values are given, if the path has any;
    they are thinned so that about `MOST_VALUES` values remain.
    """
    forest = path.forest
    trees = _shown_trees(forest, path.masks.keep(point))
    most = max(31, MOST_NODES // max(len(trees), 1))
    shown = [_Tree(path, tree, most) for tree in trees]
    described = [tree.describe() for tree in shown]
    if path.values is not None:
        _add_refitted_values(path, shown, described, valued_points)
    return described


def _shown_trees(forest: Forest, keep: NDArray[np.bool_]) -> list[int]:
    size = np.add.reduceat(keep, forest.root, dtype=np.int64) if forest.n_trees else np.empty(0, np.int64)
    return sorted(np.argsort(-size, kind="stable")[:MOST_TREES].tolist())


class _Tree:
    """One tree: the nodes shown, and the points at which each is present and is a split."""

    def __init__(self, path: Path, tree: int, most: int) -> None:
        forest = path.forest
        self.path, self.forest, self.tree = path, forest, tree
        start, stop = forest.tree_start[tree : tree + 2].tolist()
        lifetime, self.size = _lifetimes(path, start, stop)
        order = np.lexsort([np.arange(start, stop), forest.depth[start:stop], -lifetime])
        parent = forest.parent[start:stop]
        # A node that has replaced its parent is present at more points than the parent.
        raised = bool((lifetime[1:] > lifetime[parent[1:] - start]).any())
        if raised:
            order = np.lexsort([np.arange(start, stop), forest.depth[start:stop]])
        # An odd number: the root, and pairs of siblings.
        n_shown = min(len(order), most - 1 + most % 2)
        self.nodes = np.sort(order[:n_shown]) + start
        self.index = {int(node): k for k, node in enumerate(self.nodes)}
        self.present = path.masks.present(self.nodes)
        self.is_split_at = self._split_at_if_raised() if raised else self._split_at()

    def _split_at(self) -> NDArray[np.bool_]:
        """Return at which points the nodes shown are splits, (n_points, n_shown).

        Both children of a split are present or neither is, so the left child decides.
        """
        split = self.forest.is_split[self.nodes]
        split_at: NDArray[np.bool_] = self.path.masks.present(np.where(split, self.nodes + 1, self.nodes)) & split
        return split_at

    def _split_at_if_raised(self) -> NDArray[np.bool_]:
        """Return the same as `_split_at` if a descendant may have replaced a child."""
        keeps = map(self.path.masks.keep, range(len(self.path)))
        return np.array([kept_splits(self.forest, keep, check_keep(self.forest, keep))[self.nodes] for keep in keeps])

    def describe(self) -> dict[str, Any]:
        """Return the shape, splits, values and changes of the tree as plain values."""
        forest, nodes = self.forest, self.nodes
        split = forest.is_split[nodes]
        left = [self.index.get(int(v) + 1, -1) if s else -1 for v, s in zip(nodes, split, strict=True)]
        right = [self.index.get(int(forest.right[v]), -1) if s else -1 for v, s in zip(nodes, split, strict=True)]
        hidden = [
            int(forest.end[v] - v - 1) if s and first == -1 else 0
            for v, s, first in zip(nodes, split, left, strict=True)
        ]
        cover = forest.weight[nodes] / (forest.weight[nodes[0]] or 1.0)
        described: dict[str, Any] = {
            "tree": self.tree,
            "feeds": _class_of_tree(self.path, self.tree),
            "sizes": self.size.tolist(),
            "left": left,
            "right": right,
            "hidden": hidden,
            "question": [split_text(forest, int(v)) if s else "" for v, s in zip(nodes, split, strict=True)],
            "cover": rounded(cover),
            "changes": [changes(column) for column in self.present.T],
            "opens": [changes(column) for column in self.is_split_at.T],
            **_predictions(forest, forest.value[nodes]),
        }
        if self.path.support is not None:
            described["support"] = rounded(self.path.support[nodes])
        return described

    def leaves_at(self, point: int) -> NDArray[np.bool_]:
        """Return the mask of the nodes shown that are leaves at a point, (n_shown,)."""
        leaves: NDArray[np.bool_] = self.present[point] & ~self.is_split_at[point]
        return leaves


def _lifetimes(path: Path, start: int, stop: int) -> tuple[Ints, Ints]:
    """Return the number of points at which each node is present, and the number of nodes present at each point."""
    lifetime, size = np.empty(stop - start, np.int64), np.zeros(len(path), np.int64)
    for first in range(start, stop, _CHUNK):
        nodes = np.arange(first, min(first + _CHUNK, stop))
        present = path.masks.present(nodes)
        lifetime[nodes - start] = present.sum(axis=0)
        size += present.sum(axis=1)
    return lifetime, size


def _class_of_tree(path: Path, tree: int) -> str | None:
    """Return the class a tree contributes to; None if it contributes to all outputs or there is only one."""
    output = int(path.forest.tree_output[tree])
    if path.forest.n_outputs == 1 or output == -1:
        return None
    names = class_names(path.source)
    return names[output] if len(names) == path.forest.n_outputs else str(output)


def _predictions(forest: Forest, value: NDArray[np.float64]) -> dict[str, Any]:
    """Return the prediction of leaves as plain values: the most probable class and its probability, or a number."""
    if len(forest.n_classes) == 1 and value.shape[1] == forest.n_classes[0] > 1 and forest.response.linear:
        best = value.argmax(axis=1)
        return {"class": best.tolist(), "value": rounded(value[np.arange(len(value)), best])}
    return {"value": rounded(value[:, 0])}


def _add_refitted_values(path: Path, shown: list[_Tree], described: list[dict[str, Any]], points: Ints) -> None:
    """Add to each tree the refitted values of its leaves at some points, in the order of its nodes."""
    for entry in described:
        entry["new"] = {}
    for point, value in _values_at(path, shown, points):
        for tree, entry in zip(shown, described, strict=True):
            leaves = tree.nodes[tree.leaves_at(point)]
            entry["new"][str(point)] = _predictions(path.forest, value[leaves])


def _values_at(path: Path, shown: list[_Tree], points: Ints) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Yield points with the values of all nodes; points are thinned to respect `MOST_VALUES`."""
    counts = np.array([sum(int(tree.leaves_at(int(point)).sum()) for tree in shown) for point in points])
    step = max(1, int(counts.sum() // MOST_VALUES) + (counts.sum() > MOST_VALUES))
    for point in points[::step].tolist():
        value = path.decision(point).value
        if value is not None:
            yield point, value
