"""Prune each tree bottom-up by the loss on held-out rows (reduced-error pruning, REP)."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.forest.routing import inclusive_threshold
from secateur.path import Path
from secateur.problem import Problem
from secateur.solvers.base import Solver
from secateur.solvers.single_tree._two_point_path import ONLY_OWN_PREDICTIONS, cut_below, two_points


@final
@dataclass(frozen=True, repr=False)
class ReducedError(Solver):
    """Reduced-error pruning (REP): find the smallest pruning of least loss on rows the model was not trained on.

    It minimises Σ_leaves risk(leaf) over all prunings of every tree; ties prune. A node that no row reaches has zero
    loss as a leaf and as a split, so it is a tie and is pruned. With few rows, much of a tree is therefore pruned
    for lack of data. Training rows are unsuitable, because a fully grown tree makes almost no error on them.

    Exact (Elomaa and Kääriäinen 2001): no pruning has a lower loss on the given rows, and no pruning with the same loss
    is smaller. O(nodes).

    Parameters
    ----------
    raising : bool
        Also consider subtree raising: replace a split by one of its children and route all rows of the split through
        that child. This is a heuristic. Each node takes the best of four options given the choices below it, and
        sweeps repeat until nothing changes, because rerouted rows may allow further pruning. The first sweep costs
        O(rows · depth²); later sweeps revisit only nodes with new rows and ancestors of changed nodes.

    References
    ----------
    J. R. Quinlan (1987). Simplifying decision trees. International Journal of Man-Machine Studies 27.

    T. Elomaa and M. Kääriäinen (2001). An analysis of reduced error pruning. Journal of Artificial Intelligence
    Research 15.

    Examples
    --------
    >>> import secateur as sc
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> tree = DecisionTreeClassifier(random_state=0).fit(X[::2], y[::2])
    >>> sc.prune_path(tree, X[1::2], y[1::2], solver="reduced_error").table["n_leaves"].tolist()
    [7, 6]
    """

    raising: bool = False

    name = "reduced_error"
    minimises_errors = True
    needs_unseen_rows = True

    @property
    def needs_rows(self) -> bool:
        """Whether rows must be rerouted, which only raising does; otherwise sums at the nodes are enough."""
        return self.raising

    def unsupported(self, problem: Problem) -> str | None:
        """Return a reason if the model is boosted or, with raising, if rows cannot be rerouted.

        Raising does not handle categorical splits, several targets, regression losses other than the squared error,
        or rows whose features are unavailable.
        """
        if not problem.forest.trees_predict_target:
            return ONLY_OWN_PREDICTIONS
        if self.raising and len(problem.forest.categories.row):
            return "raising does not support categorical splits, but this model has some. Use raising=False."
        if self.raising and len(problem.forest.n_classes) > 1:
            return "raising supports one target, but this classifier has several. Use raising=False."
        if self.raising and not problem.forest.n_classes and problem.loss.name != "squared_error":
            return (
                f"raising supports only squared error for regression, but the loss is {problem.loss.name!r}. Use "
                "loss='squared_error' or raising=False."
            )
        if self.raising and (problem.row_source.is_remote or problem.sample.rows is None):
            return "raising reroutes rows and needs their features, which are not available here. Use raising=False."
        return None

    def path(self, problem: Problem) -> Path:
        """Return the unpruned forest and its reduced-error pruning."""
        forest = problem.forest
        if self.raising:
            keep = np.concatenate([_raise_tree(problem, tree) for tree in range(forest.n_trees)])
            return two_points(problem, keep, repr(self))
        return two_points(problem, cut_below(forest, kernels.cheapest_cut(forest.right, problem.risk)), repr(self))


def _raise_tree(problem: Problem, tree: int) -> NDArray[np.bool_]:
    """Return the mask of one tree after pruning and subtree raising."""
    forest, sample = problem.forest, problem.sample
    # `unsupported` has refused samples without features.
    assert sample.rows is not None
    start, stop = forest.tree_start[tree], forest.tree_start[tree + 1]
    nodes = slice(start, stop)
    # The kernel takes int64, and NumPy 1 would keep int32 in the arithmetic below.
    right, end = (ids[nodes].astype(np.int64) for ids in (forest.right, forest.end))
    label, target, table = np.empty(0, np.intp), sample.y, np.empty((0, 0))
    if forest.n_classes:
        label, target, table = sample.y[:, 0], np.empty((0, 0)), problem.loss.labels(forest.value[nodes])
    splits = kernels.SplitArrays(
        np.where(right == -1, -1, right - start),
        forest.feature[nodes],
        inclusive_threshold(forest)[nodes],
        forest.default_left[nodes],
    )
    return kernels.raise_tree(
        problem.risk[nodes] * sample.total_weight,
        sample.leaves[tree].astype(np.int64),
        sample.rows,
        label,
        target,
        sample.weight,
        splits,
        end - start,
        table,
        forest.value[nodes],
    )
