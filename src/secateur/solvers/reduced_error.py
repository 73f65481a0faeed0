"""Reduced-error pruning (REP), Quinlan 1987: bottom-up, a subtree goes when it is no better than a leaf."""

from collections.abc import Callable
from dataclasses import dataclass, replace
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
RowLosses = Callable[[NDArray[np.intp], NDArray[np.intp], int, NDArray[np.int64]], NDArray[np.float64]]


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
    needs_unseen_rows = True

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
    """Return the mask of one tree after pruning and raising, bottom-up.

    Splits of the same height have no row in common, so all of them are decided at once.
    """
    alone, end = _one_tree(problem.forest, tree)
    leaves = problem.sample.leaves[tree]
    stand_in = np.arange(alone.n_nodes)
    is_leaf = ~alone.is_split
    worth = np.zeros(alone.n_nodes)
    losses = _row_losses(problem, alone)
    height = kernels.subtree_height(alone.right)
    order = np.argsort(leaves, kind="stable")
    first = np.searchsorted(leaves[order], np.arange(alone.n_nodes + 1))
    for level in range(height.max() + 1):
        nodes = np.flatnonzero(height == level)
        rows, owner = _rows_below(order, first[nodes], first[end[nodes]])
        worth[nodes] = losses(rows, owner, len(nodes), nodes[owner])
        is_leaf[nodes] = True
        nodes = nodes[(worth[nodes] > 0) & alone.is_split[nodes]]  # nothing beats a leaf without loss
        sides = np.array([nodes + 1, alone.right[nodes]])
        options = [worth[nodes], worth[sides[0]], worth[sides[1]], worth[sides].sum(axis=0)]
        for side, other in ((0, 1), (1, 0)):
            # A side that is raised still gets its own rows, whose loss is known; those of the other side are new to it.
            rows, owner = _rows_below(order, first[sides[other]], first[end[sides[other]]])
            ends = _ends(problem, alone, rows, sides[side][owner], stand_in, is_leaf)
            options[1 + side] = options[1 + side] + losses(rows, owner, len(nodes), ends)
        enough = np.min(options, axis=0) + _ROUNDING * np.max(options, axis=0)
        taken = (np.array(options) <= enough).argmax(axis=0)  # a leaf before a raised side before the split
        worth[nodes] = np.array(options)[taken, np.arange(len(nodes))]
        is_leaf[nodes[taken != 0]] = False
        for k in (1, 2):
            stand_in[nodes[taken == k]] = stand_in[sides[k - 1][taken == k]]
    return _reachable(alone, stand_in, is_leaf)


def _one_tree(forest: Forest, tree: int) -> tuple[Forest, NDArray[np.int64]]:
    """Return one tree as a forest of its own, and where the subtree of each of its nodes ends."""
    start, stop = forest.tree_start[tree], forest.tree_start[tree + 1]
    right = forest.right[start:stop]
    alone = replace(
        forest,
        tree_start=np.array([0, stop - start]),
        right=np.where(right == -1, -1, right - start).astype(np.int32),
        feature=forest.feature[start:stop],
        threshold=forest.threshold[start:stop],
        default_left=forest.default_left[start:stop],
        value=forest.value[start:stop],
        weight=forest.weight[start:stop],
        tree_weight=forest.tree_weight[tree : tree + 1],
        tree_output=forest.tree_output[tree : tree + 1],
    )
    return alone, alone.end


def _rows_below(
    order: NDArray[np.intp], first: NDArray[np.intp], last: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows `order[first[k]:last[k]]` of all k, one after another, and for each row its k."""
    size = last - first
    owner = np.repeat(np.arange(len(size)), size)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(size) - size, size)
    return order[first[owner] + place], owner


def _ends(
    problem: Problem,
    alone: Forest,
    rows: NDArray[np.intp],
    tops: NDArray[np.int64],
    stand_in: NDArray[np.int64],
    is_leaf: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """Return the node in which each row ends when it is sent through what the subtree at its top has become."""
    features = problem.sample.rows
    assert features is not None  # asked for in `unsupported`
    threshold = inclusive_threshold(alone)
    return kernels.descend(
        rows, tops, features, alone.right, alone.feature, threshold, alone.default_left, stand_in, is_leaf
    )


def _row_losses(problem: Problem, alone: Forest) -> RowLosses:
    """Return a function of rows, their owners, and the nodes they end in: the total loss of each owner's rows.

    Where there is one label to predict, the loss of every node for every label is a table to look up.
    """
    loss, y, weight = problem.loss, problem.sample.y, problem.sample.weight
    table = None
    if len(alone.n_classes) == 1:
        codes = [np.full((alone.n_nodes, 1), code) for code in range(alone.n_classes[0])]
        table = np.column_stack([loss.rows(alone, alone.value, code) for code in codes])

    def total(
        rows: NDArray[np.intp], owner: NDArray[np.intp], n_owners: int, ends: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        each = loss.rows(alone, alone.value[ends], y[rows]) if table is None else table[ends, y[rows, 0]]
        return np.bincount(owner, weight[rows] * each, minlength=n_owners).astype(np.float64)

    return total


def _reachable(alone: Forest, stand_in: NDArray[np.int64], is_leaf: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which nodes of a tree are there, walking down from what stands in for its root."""
    keep = np.zeros(alone.n_nodes, bool)
    waiting = [int(stand_in[0])]
    while waiting:
        v = waiting.pop()
        keep[v] = True
        if not is_leaf[v]:
            waiting += [int(stand_in[v + 1]), int(stand_in[alone.right[v]])]
    return keep
