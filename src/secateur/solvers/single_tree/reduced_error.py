"""Reduced-error pruning (REP), Quinlan 1987: bottom-up, a subtree goes when it is no better than a leaf."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.forest import Forest
from secateur.forest.routing import inclusive_threshold
from secateur.losses import ClassLoss, Loss, ZeroOne
from secateur.path import Path
from secateur.problem import Problem
from secateur.solvers.base import Solver
from secateur.solvers.single_tree._two_point_path import ONLY_OWN_PREDICTIONS, cut_below, two_points


@final
@dataclass(frozen=True, repr=False)
class ReducedError(Solver):
    """The smallest of the most accurate prunings of every tree on rows the model has not seen.

    It minimises Σ_leaves risk(leaf) over all prunings of every tree; ties prune. A node that no row reaches makes no
    error either way, so it is a tie and goes: with few rows much is pruned for want of evidence, not because of it.

    Exact (Elomaa and Kääriäinen 2001): no pruning has a lower loss on the rows given, and none as good is smaller.
    O(nodes). Rows the model was grown on make no sense here: there nothing is an error.

    Parameters
    ----------
    raising : bool
        Also consider putting either side of a split in its place, with all rows of the split sent through it. A
        heuristic: each choice is the best of four given the choices below, and that is repeated until nothing
        changes, as rows sent new ways may let more be pruned. O(rows · depth²) for the first time; later ones judge
        only nodes that got other rows, and those above what changed.
    """

    raising: bool = False

    name = "reduced_error"
    needs_unseen_rows = True

    @property
    def needs_rows(self) -> bool:
        """Only to send them new ways; otherwise sums at the nodes will do."""
        return self.raising

    def default_loss(self, forest: Forest) -> Loss | None:
        """Count wrong labels, as the method's name says."""
        return ZeroOne() if forest.n_classes else None

    def unsupported(self, problem: Problem) -> str | None:
        """Return a reason for boosting; with raising also for categorical splits and rows that are not there."""
        if not problem.forest.trees_predict_target:
            return ONLY_OWN_PREDICTIONS
        if self.raising and len(problem.forest.categories.row):
            return "raising does not handle categorical splits. Use raising=False."
        if self.raising and len(problem.forest.n_classes) > 1:
            return "raising handles one label, and this model predicts several. Use raising=False."
        if self.raising and not problem.forest.n_classes and problem.loss.name != "squared_error":
            return "raising judges numbers by squared error. Use loss='squared_error' or raising=False."
        if self.raising and (problem.row_source.is_remote or problem.sample.rows is None):
            return "raising sends rows new ways and needs their features. Use raising=False."
        return None

    def path(self, problem: Problem) -> Path:
        """Return the unpruned forest and its reduced-error pruning."""
        forest = problem.forest
        if self.raising:
            keep = np.concatenate([_raise_tree(problem, tree) for tree in range(forest.n_trees)])
            return two_points(problem, keep, repr(self))
        return two_points(problem, cut_below(forest, kernels.cheapest_cut(forest.right, problem.risk)), repr(self))


def _raise_tree(problem: Problem, tree: int) -> NDArray[np.bool_]:
    """Return the mask of one tree after pruning and raising."""
    forest, sample = problem.forest, problem.sample
    assert sample.rows is not None  # asked for in `unsupported`
    start, stop = forest.tree_start[tree], forest.tree_start[tree + 1]
    nodes = slice(start, stop)
    right, end = (ids[nodes].astype(np.int64) for ids in (forest.right, forest.end))  # NumPy 1 would keep int32
    label, target, table = np.empty(0, np.intp), sample.y, np.empty((0, 0))
    if forest.n_classes:
        assert isinstance(problem.loss, ClassLoss)  # as the problem has checked
        label, target, table = sample.y[:, 0], np.empty((0, 0)), problem.loss.labels(forest.value[nodes])
    return kernels.raise_tree(
        problem.risk[nodes] * sample.total_weight,
        sample.leaves[tree].astype(np.int64),
        sample.rows,
        label,
        target,
        sample.weight,
        np.where(right == -1, -1, right - start),
        end - start,
        forest.feature[nodes],
        inclusive_threshold(forest)[nodes],
        forest.default_left[nodes],
        table,
        forest.value[nodes],
    )
