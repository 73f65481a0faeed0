"""Reduced-error pruning (REP), Quinlan 1987: bottom-up, a subtree goes when it is no better than a leaf."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.forest import Forest
from secateur.losses import Loss, ZeroOne
from secateur.path import Path
from secateur.problem import Problem
from secateur.routing import inclusive_threshold
from secateur.solvers.base import Solver
from secateur.solvers.pruned_once import ONLY_OWN_PREDICTIONS, cut_below, two_points

_ROUNDING = 1e-12


@final
@dataclass(frozen=True)
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
        heuristic: each choice is the best of four given the choices below. O(rows · depth²).
    """

    raising: bool = False

    name = "reduced_error"

    def default_loss(self, forest: Forest) -> Loss | None:
        """Count wrong labels, as the method's name says."""
        return ZeroOne() if forest.n_classes else None

    def unsupported(self, problem: Problem) -> str | None:
        """Return a reason for boosting; with raising also for categorical splits and rows that are not there."""
        if not problem.forest.trees_predict_target:
            return ONLY_OWN_PREDICTIONS
        if self.raising and len(problem.forest.categories.row):
            return "raising does not handle categorical splits. Use raising=False."
        if self.raising and problem.sample.rows is None:
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
    """Return the mask of one tree after pruning and raising, bottom-up."""
    forest, sample = problem.forest, problem.sample
    start, stop = forest.tree_start[tree], forest.tree_start[tree + 1]
    order = np.argsort(sample.leaves[tree], kind="stable")
    first = np.searchsorted(sample.leaves[tree][order], np.arange(stop - start + 1))
    stand_in = np.arange(forest.n_nodes, dtype=np.int64)
    is_leaf = ~forest.is_split
    worth = np.zeros(forest.n_nodes)
    for v in range(stop - 1, start - 1, -1):
        rows = order[first[v - start] : first[forest.end[v] - start]]
        worth[v] = _loss(problem, rows, np.full(len(rows), v))
        if not forest.is_split[v]:
            continue
        sides = (v + 1, int(forest.right[v]))
        options = [
            worth[v],  # a leaf
            *(_loss(problem, rows, _ends(problem, rows, side, stand_in, is_leaf)) for side in sides),
            worth[sides[0]] + worth[sides[1]],  # the split
        ]
        enough = min(options) + _ROUNDING * max(options)
        taken = next(i for i, option in enumerate(options) if option <= enough)
        worth[v] = options[taken]
        is_leaf[v] = taken == 0
        if taken in (1, 2):
            stand_in[v] = stand_in[sides[taken - 1]]
    return _reachable(forest, int(start), int(stop), stand_in, is_leaf)


def _ends(
    problem: Problem,
    rows: NDArray[np.intp],
    top: int,
    stand_in: NDArray[np.int64],
    is_leaf: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """Return the node in which each row ends when it is sent through what the subtree at `top` has become."""
    forest, features = problem.forest, problem.sample.rows
    assert features is not None  # asked for in `unsupported`
    threshold = inclusive_threshold(forest)
    return kernels.descend(
        rows, features, top, forest.right, forest.feature, threshold, forest.default_left, stand_in, is_leaf
    )


def _loss(problem: Problem, rows: NDArray[np.intp], nodes: NDArray[np.int64]) -> float:
    """Return the total loss of rows that end in the nodes given."""
    sample = problem.sample
    return float(sample.weight[rows] @ problem.loss.rows(problem.forest, problem.forest.value[nodes], sample.y[rows]))


def _reachable(
    forest: Forest, start: int, stop: int, stand_in: NDArray[np.int64], is_leaf: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return which nodes of a tree are there, walking down from what stands in for its root."""
    keep = np.zeros(stop - start, bool)
    waiting = [int(stand_in[start])]
    while waiting:
        v = waiting.pop()
        keep[v - start] = True
        if not is_leaf[v]:
            waiting += [int(stand_in[v + 1]), int(stand_in[forest.right[v]])]
    return keep
