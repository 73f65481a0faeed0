"""The trees of a path as a page draws them: which nodes are there at which points, and what they say."""

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


def describe_trees(path: Path, point: int, valued: Ints) -> list[dict[str, Any]]:
    """Return the trees a page shows, each with its nodes in an order that has parents before children.

    Of many trees those that are largest at `point`; of large trees the nodes that stay longest. `valued` are the points
    at which new leaf values may be told, if the path has any; of these as many as `MOST_VALUES` allows.
    """
    forest = path.forest
    trees = _shown_trees(forest, path.masks.keep(point))
    most = max(31, MOST_NODES // max(len(trees), 1))
    shown = [_Tree(path, tree, most) for tree in trees]
    told = [tree.describe() for tree in shown]
    if path.values is not None:
        _add_new_values(path, shown, told, valued)
    return told


def _shown_trees(forest: Forest, keep: NDArray[np.bool_]) -> list[int]:
    size = np.add.reduceat(keep, forest.root, dtype=np.int64) if forest.n_trees else np.empty(0, np.int64)
    return sorted(np.argsort(-size, kind="stable")[:MOST_TREES].tolist())


class _Tree:
    """One tree: the nodes that are shown, and at which points they are there."""

    def __init__(self, path: Path, tree: int, most: int) -> None:
        forest = path.forest
        self.path, self.forest, self.tree = path, forest, tree
        start, stop = forest.tree_start[tree : tree + 2].tolist()
        life, self.size = _lifetimes(path, start, stop)
        order = np.lexsort([np.arange(start, stop), forest.depth[start:stop], -life])
        parent = forest.parent[start:stop]
        raised = bool((life[1:] > life[parent[1:] - start]).any())  # a node that took its parent's place outlives it
        if raised:
            order = np.lexsort([np.arange(start, stop), forest.depth[start:stop]])
        n_shown = min(len(order), most - 1 + most % 2)  # the root, and pairs of siblings
        self.nodes = np.sort(order[:n_shown]) + start
        self.place = {int(node): k for k, node in enumerate(self.nodes)}
        self.present = path.masks.present(self.nodes)
        self.open = self._open_of_raised() if raised else self._open()

    def _open(self) -> NDArray[np.bool_]:
        """Return at which points the nodes shown are splits, (n_points, n_shown): where a child is there, both are."""
        split = self.forest.is_split[self.nodes]
        opened: NDArray[np.bool_] = self.path.masks.present(np.where(split, self.nodes + 1, self.nodes)) & split
        return opened

    def _open_of_raised(self) -> NDArray[np.bool_]:
        """Return the same where another node may stand in for a child."""
        keeps = map(self.path.masks.keep, range(len(self.path)))
        return np.array([kept_splits(self.forest, keep, check_keep(self.forest, keep))[self.nodes] for keep in keeps])

    def describe(self) -> dict[str, Any]:
        """Return the tree as plain values."""
        forest, nodes = self.forest, self.nodes
        split = forest.is_split[nodes]
        left = [self.place.get(int(v) + 1, -1) if s else -1 for v, s in zip(nodes, split, strict=True)]
        right = [self.place.get(int(forest.right[v]), -1) if s else -1 for v, s in zip(nodes, split, strict=True)]
        hidden = [
            int(forest.end[v] - v - 1) if s and first == -1 else 0
            for v, s, first in zip(nodes, split, left, strict=True)
        ]
        cover = forest.weight[nodes] / (forest.weight[nodes[0]] or 1.0)
        told: dict[str, Any] = {
            "tree": self.tree,
            "feeds": _feeds(self.path, self.tree),
            "sizes": self.size.tolist(),
            "left": left,
            "right": right,
            "hidden": hidden,
            "question": [split_text(forest, int(v)) if s else "" for v, s in zip(nodes, split, strict=True)],
            "cover": rounded(cover),
            "changes": [changes(column) for column in self.present.T],
            "opens": [changes(column) for column in self.open.T],
            **said(forest, forest.value[nodes]),
        }
        if self.path.support is not None:
            told["support"] = rounded(self.path.support[nodes])
        return told

    def leaves_at(self, point: int) -> NDArray[np.bool_]:
        """Return which of the nodes shown are leaves at a point."""
        ends: NDArray[np.bool_] = self.present[point] & ~self.open[point]
        return ends


def _lifetimes(path: Path, start: int, stop: int) -> tuple[Ints, Ints]:
    """Return at how many points each node of a tree is there, and how many of them at each point."""
    life, size = np.empty(stop - start, np.int64), np.zeros(len(path), np.int64)
    for first in range(start, stop, _CHUNK):
        nodes = np.arange(first, min(first + _CHUNK, stop))
        there = path.masks.present(nodes)
        life[nodes - start] = there.sum(axis=0)
        size += there.sum(axis=1)
    return life, size


def _feeds(path: Path, tree: int) -> str | None:
    """Return the class a tree speaks for, where each tree speaks for one of several."""
    output = int(path.forest.tree_output[tree])
    if path.forest.n_outputs == 1 or output == -1:
        return None
    names = class_names(path.source)
    return names[output] if len(names) == path.forest.n_outputs else str(output)


def said(forest: Forest, value: NDArray[np.float64]) -> dict[str, Any]:
    """Return what leaves say: the likeliest class and its share, or a number."""
    if len(forest.n_classes) == 1 and value.shape[1] == forest.n_classes[0] > 1 and forest.response.linear:
        best = value.argmax(axis=1)
        return {"class": best.tolist(), "value": rounded(value[np.arange(len(value)), best])}
    return {"value": rounded(value[:, 0])}


def _add_new_values(path: Path, shown: list[_Tree], told: list[dict[str, Any]], valued: Ints) -> None:
    """Add to each tree the values of its leaves at some points, in the order of its nodes."""
    for entry in told:
        entry["new"] = {}
    for point, value in _values_at(path, shown, valued):
        for tree, entry in zip(shown, told, strict=True):
            ends = tree.nodes[tree.leaves_at(point)]
            entry["new"][str(point)] = said(path.forest, value[ends])


def _values_at(path: Path, shown: list[_Tree], valued: Ints) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Yield points and the values of all nodes there, as many points as there is room for."""
    counts = np.array([sum(int(tree.leaves_at(int(point)).sum()) for tree in shown) for point in valued])
    room = max(1, int(counts.sum() // MOST_VALUES) + (counts.sum() > MOST_VALUES))
    for point in valued[::room].tolist():
        value = path.decision(point).value
        if value is not None:
            yield point, value
