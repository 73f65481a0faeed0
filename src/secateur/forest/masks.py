"""Store the keep masks of all points of a path: one integer per node if they are nested, otherwise one bit each."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from secateur.forest import Forest
from secateur.forest.subforest import Decision, check_keep, kept_splits, kept_trees, raises, split_kept, subforest

Floats = NDArray[np.float64]


class Masks(ABC):
    """Store one keep mask per point of a path."""

    n_points: int

    @abstractmethod
    def keep(self, point: int) -> NDArray[np.bool_]:
        """Return which nodes are present at a point, (n_nodes,)."""

    @abstractmethod
    def present(self, nodes: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Return at which points the given nodes are present, (n_points, len(nodes))."""

    @abstractmethod
    def take(self, points: NDArray[np.intp]) -> "Masks":
        """Return the masks of the given points, which must be in increasing order."""

    @abstractmethod
    def lifetimes(self, forest: Forest) -> Iterator[tuple[slice, NDArray[np.int32]]]:
        """Yield ranges of nested points, and the first point of the range at which each node is not a split.

        The second item has shape (n_nodes,) and counts from the start of the range; 0 means that the node is not a
        split at any point of it.
        """

    def sizes(self, forest: Forest) -> dict[str, NDArray[np.generic]]:
        """Return the columns n_nodes, n_leaves, n_trees, n_features and depth, one entry per point."""
        rows = [_size(forest, self.keep(i)) for i in range(self.n_points)]
        names = ("n_nodes", "n_leaves", "n_trees", "n_features", "depth")
        return {name: np.array([row[k] for row in rows], np.int64) for k, name in enumerate(names)}

    def totals(self, forest: Forest, as_leaf: Floats, as_split: Floats) -> Floats:
        """Return the sum of `as_leaf` over the leaves and `as_split` over the splits of each point, (n_points,)."""
        result = np.empty(self.n_points)
        for i in range(self.n_points):
            nodes, split = split_kept(forest, self.keep(i))
            result[i] = as_leaf[nodes[~split]].sum() + as_split[nodes[split]].sum()
        return result


@dataclass(frozen=True, eq=False)
class NestedMasks(Masks):
    """Store nested masks: each point keeps a subset of the nodes of the previous point.

    Attributes
    ----------
    removed_at : (n_nodes,) int32
        First point at which a node is absent; `n_points` if it is always present.
    n_points : int
    """

    removed_at: NDArray[np.int32]
    n_points: int

    def keep(self, point: int) -> NDArray[np.bool_]:
        """Return which nodes are present at a point, (n_nodes,)."""
        return self.removed_at > point

    def present(self, nodes: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Return at which points the given nodes are present, (n_points, len(nodes))."""
        return self.removed_at[nodes] > np.arange(self.n_points)[:, None]

    def take(self, points: NDArray[np.intp]) -> "NestedMasks":
        """Return the masks of the given points, which must be in increasing order."""
        return NestedMasks(np.searchsorted(points, self.removed_at).astype(np.int32), len(points))

    def sizes(self, forest: Forest) -> dict[str, NDArray[np.generic]]:
        """Return the size columns of all points at once, without unpacking the masks."""
        n_nodes = self._n_present(self.removed_at)
        n_trees = self._n_present(self.removed_at[forest.root])
        split = np.flatnonzero(forest.is_split)
        # A split is absent when its left child is removed; a feature is used until its last split is absent.
        used_until = np.zeros(forest.n_features, np.int64)
        np.maximum.at(used_until, forest.feature[split], self.removed_at[split + 1])
        deepest = np.zeros(forest.max_depth + 1, np.int64)
        np.maximum.at(deepest, forest.depth, self.removed_at)
        return {
            "n_nodes": n_nodes,
            "n_leaves": (n_nodes + n_trees) // 2,
            "n_trees": n_trees,
            "n_features": self._n_present(used_until),
            "depth": np.maximum(self._n_present(deepest) - 1, 0),
        }

    def lifetimes(self, forest: Forest) -> Iterator[tuple[slice, NDArray[np.int32]]]:
        """Yield all points as one range."""
        yield slice(0, self.n_points), self._collapse(forest)

    def _collapse(self, forest: Forest) -> NDArray[np.int32]:
        """Return the first point at which a node is not a split, (n_nodes,); 0 for leaves of the forest."""
        split = np.flatnonzero(forest.is_split)
        collapse = np.zeros_like(self.removed_at)
        collapse[split] = self.removed_at[split + 1]
        return collapse

    def totals(self, forest: Forest, as_leaf: Floats, as_split: Floats) -> Floats:
        """Return the sums of all points at once, by accumulating the changes between points."""
        split = np.flatnonzero(forest.is_split)
        collapse = self._collapse(forest)
        # A node contributes `as_split` until it collapses, then `as_leaf` until it is removed.
        change = np.zeros(self.n_points + 1)
        np.add.at(change, collapse, as_leaf)
        np.subtract.at(change, self.removed_at, as_leaf)
        change[0] += as_split[split].sum()
        np.subtract.at(change, collapse[split], as_split[split])
        return _running_total(change)

    def _n_present(self, until: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the number of items present at each point, given the first point at which each is absent."""
        n_removed = np.bincount(until, minlength=self.n_points + 1)[: self.n_points]
        return len(until) - np.cumsum(n_removed)


@dataclass(frozen=True, eq=False)
class PackedMasks(Masks):
    """Store arbitrary masks with one bit per node and point.

    Attributes
    ----------
    bits : (n_points, n_nodes / 8 rounded up) uint8
    n_nodes : int
    """

    bits: NDArray[np.uint8]
    n_nodes: int

    @classmethod
    def pack(cls, keeps: NDArray[np.bool_]) -> "PackedMasks":
        """Pack masks given as a boolean array (n_points, n_nodes)."""
        return cls(np.packbits(keeps, axis=1), keeps.shape[1])

    @property
    def n_points(self) -> int:  # type: ignore[override]
        """Number of points."""
        return len(self.bits)

    def keep(self, point: int) -> NDArray[np.bool_]:
        """Return which nodes are present at a point, (n_nodes,)."""
        return np.unpackbits(self.bits[point], count=self.n_nodes).astype(bool)

    def present(self, nodes: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Return at which points the given nodes are present, (n_points, len(nodes))."""
        return (self.bits[:, nodes // 8] >> (7 - nodes % 8).astype(np.uint8) & 1).astype(bool)

    def lifetimes(self, forest: Forest) -> Iterator[tuple[slice, NDArray[np.int32]]]:
        """Yield one range per point."""
        for point in range(self.n_points):
            keep = self.keep(point)
            yield slice(point, point + 1), kept_splits(forest, keep, check_keep(forest, keep)).astype(np.int32)

    def take(self, points: NDArray[np.intp]) -> "PackedMasks":
        """Return the masks of the given points."""
        if len(points) == self.n_points:
            return self
        return PackedMasks(self.bits[points], self.n_nodes)


def cut_at(forest: Forest, critical: Floats) -> tuple[NestedMasks, Floats]:
    """Return the masks of the unpruned forest and of one point per finite critical penalty, and these penalties.

    `critical` (n_nodes,) is the smallest penalty at which a split is absent, at most that of its parent; +inf means
    never. At a point, all splits are absent whose critical penalty is at most that of the point.
    """
    split = forest.is_split
    penalty = np.unique(critical[split & np.isfinite(critical)])
    absent_at = np.searchsorted(penalty, critical).astype(np.int32) + 1
    removed_at = np.full(forest.n_nodes, len(penalty) + 1, np.int32)
    inner = forest.parent != -1
    removed_at[inner] = absent_at[forest.parent[inner]]
    return NestedMasks(removed_at, len(penalty) + 1), penalty


def _running_total(change: Floats) -> Floats:
    """Return the cumulative sum of the changes at each point but the last.

    All changes add up to 0, so a cumulative sum can be computed from either end. Its rounding error is proportional to
    the largest partial sum, so each point uses the end with the smaller partial sums.
    """
    forward, backward = np.cumsum(change)[:-1], -np.cumsum(change[::-1])[::-1][1:]
    before = np.maximum.accumulate(np.abs(forward))
    after = np.maximum.accumulate(np.abs(forward)[::-1])[::-1]
    return np.where(before <= after, forward, backward)


def _size(forest: Forest, keep: NDArray[np.bool_]) -> tuple[int, int, int, int, int]:
    nodes, split = split_kept(forest, keep)
    return (
        len(nodes),
        len(nodes) - int(np.count_nonzero(split)),
        int(kept_trees(forest, keep).sum()),
        len(np.unique(forest.feature[nodes[split]])),
        _depth(forest, keep),
    )


def _depth(forest: Forest, keep: NDArray[np.bool_]) -> int:
    if raises(forest, keep):
        return subforest(forest, Decision(keep)).max_depth
    return int(forest.depth[keep].max(initial=0))
