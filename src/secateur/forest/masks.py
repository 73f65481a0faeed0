"""The keep masks of all points of a path, stored small: one number per node if they are nested, else one bit."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from secateur.forest import Forest
from secateur.forest.subforest import Decision, check_keep, kept_splits, kept_trees, raises, subforest

Floats = NDArray[np.float64]


class Masks(ABC):
    """One keep mask per point."""

    n_points: int

    @abstractmethod
    def keep(self, point: int) -> NDArray[np.bool_]:
        """Return which nodes are present at a point, (n_nodes,)."""

    @abstractmethod
    def present(self, nodes: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Return at which points some nodes are present, (n_points, len(nodes))."""

    @abstractmethod
    def take(self, points: NDArray[np.intp]) -> "Masks":
        """Return the masks of some points, given in rising order."""

    @abstractmethod
    def lifetimes(self, forest: Forest) -> Iterator[tuple[slice, NDArray[np.int32]]]:
        """Yield ranges of points, and the first point of the range at which each node is no split, (n_nodes,).

        Points are counted from the beginning of the range; 0 stands for a node that is no split at any.
        """

    def sizes(self, forest: Forest) -> dict[str, NDArray[np.generic]]:
        """Return the columns n_nodes, n_leaves, n_trees, n_features and depth, one entry per point."""
        rows = [_size(forest, self.keep(i)) for i in range(self.n_points)]
        names = ("n_nodes", "n_leaves", "n_trees", "n_features", "depth")
        return {name: np.array([row[k] for row in rows], np.int64) for k, name in enumerate(names)}

    def totals(self, forest: Forest, as_leaf: Floats, as_split: Floats) -> Floats:
        """Return for each point the sum of `as_leaf` over its leaves and `as_split` over its splits."""
        result = np.empty(self.n_points)
        for i in range(self.n_points):
            keep = self.keep(i)
            split = kept_splits(forest, keep, check_keep(forest, keep))
            result[i] = as_leaf[keep & ~split].sum() + as_split[split].sum()
        return result


@dataclass(frozen=True, eq=False)
class NestedMasks(Masks):
    """Points of which each keeps a subset of the nodes of the one before.

    Attributes
    ----------
    removed_at : (n_nodes,) int32
        The first point at which a node is absent; `n_points` if there is none.
    n_points : int
    """

    removed_at: NDArray[np.int32]
    n_points: int

    def keep(self, point: int) -> NDArray[np.bool_]:
        """Return which nodes are present at a point, (n_nodes,)."""
        return self.removed_at > point

    def present(self, nodes: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Return at which points some nodes are present, (n_points, len(nodes))."""
        return self.removed_at[nodes] > np.arange(self.n_points)[:, None]

    def take(self, points: NDArray[np.intp]) -> "NestedMasks":
        """Return the masks of some points, given in rising order."""
        return NestedMasks(np.searchsorted(points, self.removed_at).astype(np.int32), len(points))

    def sizes(self, forest: Forest) -> dict[str, NDArray[np.generic]]:
        """Return the size columns without looking at one point after another."""
        n_nodes = self._alive(self.removed_at)
        n_trees = self._alive(self.removed_at[forest.root])
        split = np.flatnonzero(forest.is_split)
        used_until = np.zeros(forest.n_features, np.int64)
        np.maximum.at(used_until, forest.feature[split], self.removed_at[split + 1])
        deepest = np.zeros(forest.max_depth + 1, np.int64)
        np.maximum.at(deepest, forest.depth, self.removed_at)
        return {
            "n_nodes": n_nodes,
            "n_leaves": (n_nodes + n_trees) // 2,
            "n_trees": n_trees,
            "n_features": self._alive(used_until),
            "depth": np.maximum(self._alive(deepest) - 1, 0),
        }

    def lifetimes(self, forest: Forest) -> Iterator[tuple[slice, NDArray[np.int32]]]:
        """Yield all points at once."""
        yield slice(0, self.n_points), self._collapse(forest)

    def _collapse(self, forest: Forest) -> NDArray[np.int32]:
        """Return the point from which on a node is a leaf, (n_nodes,)."""
        split = np.flatnonzero(forest.is_split)
        collapse = np.zeros_like(self.removed_at)
        collapse[split] = self.removed_at[split + 1]
        return collapse

    def totals(self, forest: Forest, as_leaf: Floats, as_split: Floats) -> Floats:
        """Return the sums for all points at once, from what changes at each point."""
        split = np.flatnonzero(forest.is_split)
        collapse = self._collapse(forest)
        change = np.zeros(self.n_points + 1)
        np.add.at(change, collapse, as_leaf)
        np.subtract.at(change, self.removed_at, as_leaf)
        change[0] += as_split[split].sum()
        np.subtract.at(change, collapse[split], as_split[split])
        return _running_total(change)

    def _alive(self, until: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return how many things are present at each point, from the point at which each disappears."""
        gone = np.bincount(until, minlength=self.n_points + 1)[: self.n_points]
        return len(until) - np.cumsum(gone)


@dataclass(frozen=True, eq=False)
class PackedMasks(Masks):
    """Points in any relation to each other, one bit per node and point.

    Attributes
    ----------
    bits : (n_points, n_nodes / 8 rounded up) uint8
    n_nodes : int
    """

    bits: NDArray[np.uint8]
    n_nodes: int

    @classmethod
    def pack(cls, keeps: NDArray[np.bool_]) -> "PackedMasks":
        """Return the masks given as (n_points, n_nodes) bools."""
        return cls(np.packbits(keeps, axis=1), keeps.shape[1])

    @property
    def n_points(self) -> int:  # type: ignore[override]
        """Number of points."""
        return len(self.bits)

    def keep(self, point: int) -> NDArray[np.bool_]:
        """Return which nodes are present at a point, (n_nodes,)."""
        return np.unpackbits(self.bits[point], count=self.n_nodes).astype(bool)

    def present(self, nodes: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Return at which points some nodes are present, (n_points, len(nodes))."""
        return (self.bits[:, nodes // 8] >> (7 - nodes % 8).astype(np.uint8) & 1).astype(bool)

    def lifetimes(self, forest: Forest) -> Iterator[tuple[slice, NDArray[np.int32]]]:
        """Yield point by point."""
        for point in range(self.n_points):
            keep = self.keep(point)
            yield slice(point, point + 1), kept_splits(forest, keep, check_keep(forest, keep)).astype(np.int32)

    def take(self, points: NDArray[np.intp]) -> "PackedMasks":
        """Return the masks of some points."""
        return PackedMasks(self.bits[points], self.n_nodes)


def cut_at(forest: Forest, critical: Floats) -> tuple[NestedMasks, Floats]:
    """Return the masks of the unpruned forest and of a point for every finite critical penalty, and the penalties.

    `critical` (n_nodes,) is the penalty at which a split is cut or gone, at most that of its parent; +inf for never. At
    a point all splits are gone whose critical penalty is not above the point's.
    """
    split = forest.is_split
    penalty = np.unique(critical[split & np.isfinite(critical)])
    gone_at = np.searchsorted(penalty, critical).astype(np.int32) + 1
    removed_at = np.full(forest.n_nodes, len(penalty) + 1, np.int32)
    inner = forest.parent != -1
    removed_at[inner] = gone_at[forest.parent[inner]]
    return NestedMasks(removed_at, len(penalty) + 1), penalty


def _running_total(change: Floats) -> Floats:
    """Return the sums of all changes up to each point but the last; all changes together add up to 0.

    So a sum can be taken from either end. Its rounding error is that of the largest total on the way: take the end from
    which the way is lower.
    """
    forward, backward = np.cumsum(change)[:-1], -np.cumsum(change[::-1])[::-1][1:]
    before = np.maximum.accumulate(np.abs(forward))
    after = np.maximum.accumulate(np.abs(forward)[::-1])[::-1]
    return np.where(before <= after, forward, backward)


def _size(forest: Forest, keep: NDArray[np.bool_]) -> tuple[int, int, int, int, int]:
    split = kept_splits(forest, keep, check_keep(forest, keep))
    n_nodes, n_splits = int(keep.sum()), int(split.sum())
    return (
        n_nodes,
        n_nodes - n_splits,
        int(kept_trees(forest, keep).sum()),
        len(np.unique(forest.feature[split])),
        _depth(forest, keep),
    )


def _depth(forest: Forest, keep: NDArray[np.bool_]) -> int:
    if raises(forest, keep):
        return subforest(forest, Decision(keep)).max_depth
    return int(forest.depth[keep].max(initial=0))
