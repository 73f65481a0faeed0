"""Compute the row weight that leaves of different trees share, which propagates a change of one tree to the others.

Squared error needs nothing else of the rows. The overlaps never change, so they are computed in one pass, and trees
whose overlaps are known need no further pass.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.data.row_source import RowSource
from secateur.data.rows import LocalRows
from secateur.forest import Forest

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_LEAVES = 4096
"""Of how many leaves overlaps are kept at most: 128 MB."""
_NUMBERS = 2**20
"""How many overlaps to ask for at once at most, unless a single tree has more: 8 MB."""


@dataclass(frozen=True, eq=False)
class AskOverlaps:
    """The question: the weight of the rows that reach both of two leaves, (n_leaves of trees, n_leaves of others)."""

    trees: Ints
    others: Ints

    def __call__(self, forest: Forest, sample: LocalRows) -> Floats:
        """Return the sums over some rows."""
        row, column = _places(forest, self.trees), _places(forest, self.others)
        answer = np.zeros((row.max() + 1, column.max() + 1))
        kernels.add_overlaps(
            sample.leaves, sample.weight, forest.tree_start, self.trees, self.others, row, column, answer
        )
        return answer


class Overlaps:
    """The overlaps of some trees with each other; there may be ever more of them.

    Attributes
    ----------
    known : (n_trees,) bool
        Which trees they are.
    passes : int
        How many questions were asked so far.
    """

    def __init__(self, forest: Forest, row_source: RowSource, unit: float) -> None:
        self.forest, self.row_source, self.unit = forest, row_source, unit
        self.known, self.passes = np.zeros(forest.n_trees, bool), 0
        self.n_leaves = np.add.reduceat(~forest.is_split, forest.root, dtype=np.int64)
        self._trees = np.empty(0, np.int64)
        self._nodes = np.empty(0, np.int64)
        self._first = np.zeros(forest.n_trees, np.int64)
        most = min(int(self.n_leaves.sum()), _LEAVES)
        self._weight = np.zeros((most, most))

    def learn(self, tree: int) -> None:
        """Ask for those of a tree, if there is room; for those of all trees, if there is room for all."""
        every = self.n_leaves.sum() <= len(self._weight)
        trees = np.flatnonzero(~self.known) if every else np.array([tree])
        trees = trees[~self.known[trees]]
        trees = trees[np.cumsum(self.n_leaves[trees]) <= len(self._weight) - len(self._nodes)]
        while len(trees):
            after = len(self._nodes) + np.cumsum(self.n_leaves[trees])
            n_some = max(1, int(np.searchsorted(after * (after - len(self._nodes)), _NUMBERS, "right")))
            self._learn(trees[:n_some])
            trees = trees[n_some:]

    def _learn(self, trees: Ints) -> None:
        self._first[trees] = len(self._nodes) + np.cumsum(self.n_leaves[trees]) - self.n_leaves[trees]
        before, self._trees = len(self._nodes), np.concatenate([self._trees, trees])
        self._nodes = np.concatenate([self._nodes, *(_leaves_of(self.forest, tree) for tree in trees)])
        block = self.row_source.total(self.forest, AskOverlaps(trees, self._trees)) * self.unit
        self._weight[before : len(self._nodes), : len(self._nodes)] = block
        self._weight[: len(self._nodes), before : len(self._nodes)] = block.T
        self.known[trees] = True
        self.passes += 1

    def shifts(self, tree: int, step: Floats) -> tuple[Ints, Floats]:
        """Return the leaves of trees that feed what this one does, and Σ weight · step over the rows of each.

        `step` is what the leaves of the tree, whose overlaps are known, add more; (n_nodes of the tree, width).
        """
        output = self.forest.tree_output
        places = np.arange(self._first[tree], self._first[tree] + self.n_leaves[tree])
        original = self._nodes[places] - self.forest.tree_start[tree]
        shift = self._weight[places, : len(self._nodes)].T @ step[original]
        fed = np.repeat(output[self._trees] == output[tree], self.n_leaves[self._trees])
        return self._nodes[fed], shift[fed]


def _leaves_of(forest: Forest, tree: int) -> Ints:
    """Return the leaves of a tree, by number."""
    start, stop = forest.tree_start[tree], forest.tree_start[tree + 1]
    return start + np.flatnonzero(~forest.is_split[start:stop])


def _places(forest: Forest, trees: Ints) -> NDArray[np.int32]:
    """Return for every node, if it is a leaf of one of some trees, its place among their leaves; else -1."""
    place = np.full(forest.n_nodes, -1, np.int32)
    nodes = np.concatenate([_leaves_of(forest, tree) for tree in trees])
    place[nodes] = np.arange(len(nodes))
    return place
