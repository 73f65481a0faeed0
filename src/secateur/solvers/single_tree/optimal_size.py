"""The best pruning of every size, by dynamic programming (Bohanec and Bratko 1994; Almuallim 1996)."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.forest import Forest
from secateur.losses import Loss, ZeroOne
from secateur.path import PackedMasks, Path
from secateur.path.build import trace_path
from secateur.problem import Problem
from secateur.solvers.base import Solver

_MAX_TABLE = 200_000_000
_MAX_MASK_BYTES = 2**30


@final
@dataclass(frozen=True, repr=False)
class OptimalSize(Solver):
    """For every number of leaves k the pruning with the least risk, every tree of a forest for itself.

    The point for k minimises Σ_leaves risk(leaf) over all prunings of each tree with exactly k leaves (a tree that has
    fewer stays whole). Unlike the cost-complexity path no size is skipped, and the points need not be nested.
    The smallest pruning with at most e errors, for every e, is `path.smallest(e / n_rows)`.

    Exact. O(nodes²) time and memory in the worst case, O(nodes · max_leaves) with a limit. Risk is as in
    WeakestLink.

    Parameters
    ----------
    max_leaves : int, optional
        Only prunings with at most this many leaves per tree, and the unpruned forest.
    """

    max_leaves: int | None = None

    name = "optimal_size"

    @property
    def needs_rows(self) -> bool:
        """No: sums at the nodes will do."""
        return False

    def default_loss(self, forest: Forest) -> Loss | None:
        """Count wrong labels, so that there is a smallest pruning for every number of errors."""
        return ZeroOne() if forest.n_classes else None

    def unsupported(self, problem: Problem) -> str | None:
        """Return a reason if the tables or the masks would not fit."""
        forest = problem.forest
        largest = self._largest(problem)
        if largest < 1:
            return f"max_leaves={self.max_leaves} leaves no tree. Use at least 1."
        entries = int(kernels.table_start(forest.right, largest)[-1])
        if entries > _MAX_TABLE or largest * forest.n_nodes / 8 > _MAX_MASK_BYTES:
            return (
                f"{forest.n_nodes} nodes with up to {largest} leaves a tree need a table of {entries:,} entries. "
                "Set max_leaves lower."
            )
        return None

    def path(self, problem: Problem) -> Path:
        """Return the unpruned forest, then the best prunings of falling size."""
        forest = problem.forest
        start = kernels.table_start(forest.right, self._largest(problem))
        choice = np.empty(start[-1], np.int32)
        kernels.best_of_every_size(forest.right, problem.risk, start, choice)
        sizes = np.diff(start)[forest.root]
        keeps = [np.ones(forest.n_nodes, bool)]
        for n_leaves in range(int(sizes.max(initial=1)), 0, -1):
            keep = np.empty(forest.n_nodes, bool)
            for tree, size in enumerate(np.minimum(sizes, n_leaves)):
                first, stop = forest.tree_start[tree], forest.tree_start[tree + 1]
                kernels.keep_of_size(first, stop, forest.right, start, choice, size, keep)
            if not keep.all():
                keeps.append(keep)
        return trace_path(problem, _pack(keeps), np.full(len(keeps), np.nan), repr(self))

    def _largest(self, problem: Problem) -> int:
        """Return the most leaves any tree may have."""
        forest = problem.forest
        most = int(kernels.sum_over_leaves(forest.right, np.ones(forest.n_nodes))[forest.root].max(initial=1))
        return most if self.max_leaves is None else min(most, self.max_leaves)


def _pack(keeps: list[NDArray[np.bool_]]) -> PackedMasks:
    """Return the masks packed one by one, so that they are never all there as bytes."""
    return PackedMasks(np.array([np.packbits(keep) for keep in keeps]), len(keeps[0]))
