"""Move the leaf values of a pruned mean of trees into its range and change its predictions as little as possible.

A mean of trees predicts numbers from `low` to `high` for every combination of leaves if each tree has bounds for its
values whose means over the trees are `low` and `high`. Values between such bounds are fitted to the predictions of the
given values.

References
----------
C. L. Lawson and R. J. Hanson (1974), Solving least squares problems, chapter 23 (least squares with bounds).
"""

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.forest import Forest
from secateur.forest.promises import PredictionRange
from secateur.forest.subforest import split_kept
from secateur.problem import Problem
from secateur.solvers.ensemble.additive_model import as_numbers, split_means

Floats = NDArray[np.float64]
_RIDGE = 5.0
"""Each leaf is fitted as if this many extra rows had its given value."""
_SWEEPS, _ENOUGH = 30, 1e-3
"""Largest number of sweeps, and the gain of a sweep, as a fraction of the squared error, below which it is the last."""
_ROUNDING = 1e-6
"""By how much a finite upper bound is lowered, as libraries may store values in single precision."""


class NearestValues:
    """Values in a range of numbers whose predictions for the rows of a problem are nearest to those of given values.

    Parameters
    ----------
    problem : Problem
        Its forest is a plain mean of trees that predicts numbers.
    natural : PredictionRange
    """

    def __init__(self, problem: Problem, natural: PredictionRange) -> None:
        self._problem, self._natural = problem.local(), natural
        sample = self._problem.sample
        self._target = as_numbers(self._problem.forest, sample.y)

    def values(self, keep: NDArray[np.bool_], value: Floats) -> Floats:
        """Return values of the kept nodes in the range, (n_kept, n_outputs)."""
        forest = self._problem.forest
        nodes, split = split_kept(forest, keep)
        leaves = nodes[~split]
        tree = np.searchsorted(forest.tree_start, leaves, side="right") - 1
        first = np.flatnonzero(np.diff(tree, prepend=-1))
        leaf_of = self._leaf_of_rows(forest, keep, split, tree[first], first)
        # A tree contributes its value divided by the number of trees.
        scale = forest.unit * len(first)
        fitted = value / scale
        for output in range(value.shape[1]):
            fitted[~split, output] = self._fitted(fitted[~split, output], first, leaf_of, self._target[:, output])
        return split_means(forest, nodes, split, self._problem.weight[nodes], fitted) * scale

    def _leaf_of_rows(
        self,
        forest: Forest,
        keep: NDArray[np.bool_],
        split: NDArray[np.bool_],
        trees: NDArray[np.intp],
        first: NDArray[np.intp],
    ) -> list[NDArray[np.intp]]:
        """Return the kept leaf that each row reaches in each kept tree, counted from the first of the tree."""
        number = np.cumsum(~split)[kernels.lift_to_kept(forest.parent, keep)] - 1
        starts, leaves = forest.tree_start, self._problem.sample.leaves
        return [
            number[starts[tree] : starts[tree + 1]][leaves[tree]] - start
            for tree, start in zip(trees.tolist(), first.tolist(), strict=True)
        ]

    def _fitted(
        self, given: Floats, first: NDArray[np.intp], leaf_of: list[NDArray[np.intp]], target: Floats
    ) -> Floats:
        """Return the contributions of all leaves to one output, fitted within the bounds of their trees.

        `given` are contributions that may leave the range; those of a tree begin at `first`.
        """
        low, high = self._bounds(given, first)
        row_weight, fitted = self._problem.sample.weight, np.clip(given, low, high)
        parts = [slice(*ends) for ends in zip(first.tolist(), [*first[1:].tolist(), len(given)], strict=True)]
        weight = [np.bincount(of, row_weight, part.stop - part.start) for of, part in zip(leaf_of, parts, strict=True)]
        error, missing = target.copy(), np.zeros(len(target))
        for of, part in zip(leaf_of, parts, strict=True):
            error -= given[part][of]
            missing += (given[part] - fitted[part])[of]
        enough = _ENOUGH * float(row_weight @ error**2)
        distance = float(row_weight @ missing**2)
        for _ in range(_SWEEPS):
            for of, part, total in zip(leaf_of, parts, weight, strict=True):
                old, anchor = fitted[part], _RIDGE * given[part]
                step = np.bincount(of, row_weight * missing, len(old))
                new = np.clip((total * old + step + anchor) / (total + _RIDGE), low[part], high[part])
                missing -= (new - old)[of]
                fitted[part] = new
            before, distance = distance, float(row_weight @ missing**2)
            if before - distance <= enough:
                break
        # The lowest values of all trees are equal now, so that no sum of them is below the range by rounding.
        return fitted - low + self._natural.low / len(first)

    def _bounds(self, given: Floats, first: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """Return the bounds of each leaf: those of the values of its tree, moved in proportion to their distance."""
        lowest, highest = np.minimum.reduceat(given, first), np.maximum.reduceat(given, first)
        width = highest - lowest
        share = width / width.sum() if width.any() else np.full(len(first), 1.0 / len(first))
        low = lowest + (self._natural.low - lowest.sum()) * share
        high = np.full(len(first), np.inf)
        if np.isfinite(self._natural.high):
            high = highest + (self._natural.high * (1.0 - _ROUNDING) - highest.sum()) * share
        n_leaves = np.diff(first, append=len(given))
        return np.repeat(low, n_leaves), np.repeat(np.maximum(low, high), n_leaves)
