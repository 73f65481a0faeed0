"""Find the optimal pruning of each tree for every number of leaves by dynamic programming."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.path import PackedMasks, Path
from secateur.path.build import trace_path
from secateur.problem import Problem
from secateur.solvers.base import Solver

_MAX_TABLE = 200_000_000
_MAX_MASK_BYTES = 2**30


@final
@dataclass(frozen=True, repr=False)
class OptimalSize(Solver):
    """Find the pruning of least risk for every number of leaves, for each tree independently.

    The point for k leaves minimises Σ_leaves risk(leaf) over all prunings of each tree with exactly k leaves; a tree
    with fewer leaves is not pruned. Unlike on the cost-complexity path, no size is skipped and consecutive points need
    not be nested. The smallest pruning with at most e errors, for every e, is `path.smallest(e / n_rows)`. The risk is
    defined as in WeakestLink.

    Exact. O(nodes²) time and memory in the worst case, O(nodes · max_leaves) with a limit.

    Parameters
    ----------
    max_leaves : int, optional
        Largest number of leaves per tree. The path then contains the unpruned forest and prunings up to this size.

    References
    ----------
    M. Bohanec and I. Bratko (1994). Trading accuracy for simplicity in decision trees. Machine Learning 15.

    H. Almuallim (1996). An efficient algorithm for optimal pruning of decision trees. Artificial Intelligence 83.

    Examples
    --------
    >>> import secateur as sc
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> tree = DecisionTreeClassifier(random_state=0).fit(X, y)
    >>> sc.prune_path(tree, X, y, solver="optimal_size").table["n_leaves"].tolist()
    [12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]
    """

    max_leaves: int | None = None

    name = "optimal_size"
    minimises_errors = True
    needs_rows = False

    def unsupported(self, problem: Problem) -> str | None:
        """Return a reason if the tables or the masks would not fit in memory."""
        forest = problem.forest
        largest = self._largest(problem)
        if largest < 1:
            return f"max_leaves={self.max_leaves}, but it must be at least 1. Set max_leaves to 1 or more."
        entries = int(kernels.table_start(forest.right, largest)[-1])
        if entries > _MAX_TABLE or largest * forest.n_nodes / 8 > _MAX_MASK_BYTES:
            return (
                f"{forest.n_nodes} nodes with up to {largest} leaves per tree need a table of {entries:,} entries, "
                "which is too large for memory. Set a smaller max_leaves."
            )
        return None

    def path(self, problem: Problem) -> Path:
        """Return the unpruned forest, followed by the optimal prunings in decreasing size."""
        forest = problem.forest
        start = kernels.table_start(forest.right, self._largest(problem))
        choice = np.empty(start[-1], np.int32)
        kernels.best_of_every_size(forest.right, problem.risk, start, choice)
        # Each tree is pruned to n_leaves leaves; trees with fewer leaves keep all of them.
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
        """Return the largest number of leaves per tree that the tables must cover."""
        forest = problem.forest
        most = int(kernels.sum_over_leaves(forest.right, np.ones(forest.n_nodes))[forest.root].max(initial=1))
        return most if self.max_leaves is None else min(most, self.max_leaves)


def _pack(keeps: list[NDArray[np.bool_]]) -> PackedMasks:
    """Return the masks packed one by one, so that the unpacked masks are never all in memory."""
    return PackedMasks(np.array([np.packbits(keep) for keep in keeps]), len(keeps[0]))
