"""Keep the promises of a model on the path of any solver: the range of its predictions and monotonic constraints.

Some solvers fit values that only the sum over all trees makes valid, or not even that. This module replaces or moves
such values, so that every point of the path keeps what the unpruned model promises.
"""

import logging
from dataclasses import replace
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.forest import Forest
from secateur.forest.monotonicity import check_monotonicity
from secateur.forest.promises import PredictionRange, constrained_splits, range_of
from secateur.forest.subforest import Decision, split_kept, subforest
from secateur.path import Path
from secateur.path.build import tree_risk
from secateur.path.evaluation import LossesAt
from secateur.problem import Problem
from secateur.solvers.base import Solver
from secateur.solvers.ensemble.mean_values import MeanValues
from secateur.solvers.ensemble.nearest_values import NearestValues

Floats = NDArray[np.float64]
logger = logging.getLogger("secateur")


def keep_promises(solver: Solver, problem: Problem, path: Path) -> Path:
    """Return the path with values that keep the model's range of predictions and its monotonic constraints.

    Values out of range are replaced: by the original ones if the solver keeps these up to tree weights and an
    intercept, otherwise by values fitted on the kept nodes: probabilities to the targets, numbers to the predictions of
    the given values. Values out of order are moved. A point with original
    values that violates a constraint, although the unpruned model keeps it, is dropped.
    """
    promises = Promises(problem, free=solver.free_values)
    if path.values is None:
        return _drop_violations(path) if promises.constrained else path
    values, changed = list(path.values), []
    for point in range(1, len(path)):
        original = solver.keeps_leaves or ("kept" in path.table and path.table["kept"][point] == 1)
        value = promises.values(path.masks.keep(point), values[point], original=original)
        if value is not values[point]:
            values[point] = value
            changed.append(point)
    return _with_values(path, problem, values, changed)


class Promises:
    """The range of predictions and the monotonic constraints that the values of a pruning must keep.

    Parameters
    ----------
    problem : Problem
    free : bool
        Whether predictions may leave the range.
    """

    def __init__(self, problem: Problem, *, free: bool) -> None:
        self._problem = problem
        self._natural = None if free else range_of(problem.forest)
        self.constrained = len(constrained_splits(problem.forest)) > 0
        self._mean_values = cache(lambda: MeanValues(problem))
        self._nearest_values = cache(partial(NearestValues, problem))

    def values(self, keep: NDArray[np.bool_], value: Floats, *, original: bool) -> Floats:
        """Return values of the kept nodes that keep the promises, (n_kept, width); `value` itself if it does.

        `original` says that the values are those of the model, up to tree weights and an intercept.
        """
        forest = self._problem.forest
        if self._natural is not None:
            value = self._in_range(self._natural, keep, value, original=original)
        return in_order(forest, keep, value, self._problem.weight) if self.constrained else value

    def _in_range(self, natural: PredictionRange, keep: NDArray[np.bool_], value: Floats, *, original: bool) -> Floats:
        """Return the values of the kept nodes; others if predictions may leave the range."""
        forest = self._problem.forest
        nodes, split = split_kept(forest, keep)
        leaf = ~split
        tree = np.searchsorted(forest.tree_start, nodes[leaf], side="right") - 1
        if natural.contains_means(value[leaf] / forest.unit, tree, forest.n_classes):
            return _normalised(value, forest) if natural.simplex else value
        if original:
            return forest.value[keep]
        return self._mean_values().refit(keep) if natural.simplex else self._nearest_values(natural).values(keep, value)


def _normalised(value: Floats, forest: Forest) -> Floats:
    """Return class probabilities without the rounding errors of their sums."""
    blocks = np.split(value / forest.unit, np.cumsum(forest.n_classes)[:-1], axis=1)
    total = np.hstack([np.repeat(block.sum(axis=1, keepdims=True), block.shape[1], axis=1) for block in blocks])
    exact = np.abs(total - 1).max(initial=0.0) <= np.finfo(np.float64).eps
    return value if exact else value / total


def in_order(forest: Forest, keep: NDArray[np.bool_], value: Floats, weight: Floats) -> Floats:
    """Return the values of the kept nodes, moved if they violate a constraint; `weight` is that of all nodes."""
    ordered = np.zeros_like(forest.value)
    ordered[keep] = value
    kernels.order_values(forest.tree_start, forest.right, _signs(forest), keep, weight, ordered)
    return value if np.array_equal(ordered[keep], value) else ordered[keep]


def _with_values(path: Path, problem: Problem, values: list[Floats], changed: list[int]) -> Path:
    """Return the path with other values at some points, and their risk computed again."""
    if not changed:
        return path
    path = replace(path, values=values, table={**path.table, "risk": path.table["risk"].copy()})
    if path.info.is_ensemble_risk:
        query = LossesAt(path.decisions, tuple(changed), problem.loss)
        path.table["risk"][changed] = problem.row_source.total(problem.forest, query) / problem.total_weight
    else:
        path.table["risk"][changed] = [tree_risk(problem, path.decision(point)) for point in changed]
    return path


def _drop_violations(path: Path) -> Path:
    """Return the path without points that violate a constraint, unless the unpruned model does."""
    forest = path.forest
    if kernels.all_in_order(forest.right, _signs(forest), forest.value) or not check_monotonicity(forest).holds:
        return path
    tree = np.repeat(np.arange(forest.n_trees), np.diff(forest.tree_start))
    violates, before = np.zeros(forest.n_trees, bool), np.ones(forest.n_nodes, bool)
    holds = []
    for point in range(len(path)):
        # Only trees that differ from those of the point before are checked again.
        keep = path.masks.keep(point)
        changed = np.bincount(tree, keep != before, forest.n_trees) > 0
        if changed.any():
            kept = np.flatnonzero(changed & keep[forest.root])
            check = check_monotonicity(subforest(forest, Decision(keep & changed[tree])))
            violates[changed] = False
            violates[kept[[violation.tree for violation in check.violations]]] = True
        holds.append(not violates.any())
        before = keep
    if all(holds):
        return path
    logger.info("%d of %d points violate a monotonic constraint and are left out.", holds.count(False), len(path))
    return path.take(np.flatnonzero(holds))


def _signs(forest: Forest) -> NDArray[np.int8]:
    """Return the constraints on the values of trees, reversed where a tree has a negative weight, (n_nodes, width)."""
    tree = np.repeat(np.arange(forest.n_trees), np.diff(forest.tree_start))
    direction = np.where(forest.tree_weight < 0, -1, 1).astype(np.int8)
    return constrained_splits(forest) * direction[tree][:, None]
