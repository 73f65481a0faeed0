"""Lasso over whole trees: ISLE (Friedman and Popescu 2003), eq. (8) of ForestPrune (Liu and Mazumder 2023)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import final

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.path import Path
from secateur.path.build import Point, trace_points
from secateur.problem import Problem
from secateur.solvers.base import Solver
from secateur.solvers.ensemble.additive_model import (
    Additive,
    State,
    additive,
    decide,
    empty_state,
    loss_of,
    not_additive,
    too_many_pairs,
)
from secateur.solvers.penalty_grid import check_penalties, falling
from secateur.solvers.whole_trees.reweight import normal_equations, reweighed

Floats = NDArray[np.float64]
_MAX_SWEEPS = 1_000


@final
@dataclass(frozen=True, repr=False)
class TreeLasso(Solver):
    """Give every tree a weight, many of them 0, at every penalty of a falling sequence; trees of weight 0 are dropped.

    It minimises

        1/n Σ_rows (y − b − Σ_t β_t tree_t(x))² + penalty · Σ_t |β_t|

    where tree_t is what tree t adds to the model, so that β = 1 for all is the model itself. Weights may be negative. y
    is a number, or 1 and 0 for the classes, with a sum over classes and a mean over targets; b is one intercept per
    output.

    Convex, and solved to a duality gap of at most `tolerance` times the squared error without trees: the column `gap`
    is by how much the objective may be above the minimum. O(rows · trees²) once for the Gram matrix of the trees, then
    O(trees²) per sweep whatever the number of rows.

    Parameters
    ----------
    penalties : int or tuple of float
        How many, from the one that drops every tree down to `smallest` times that; or which.
    smallest : float
    tolerance : float
    """

    penalties: int | tuple[float, ...] = 50
    smallest: float = 1e-4
    tolerance: float = 1e-8

    name = "tree_lasso"

    def __post_init__(self) -> None:
        check_penalties(self.penalties, self.smallest)
        if not 0 < self.tolerance < 1:
            raise ValueError(f"tolerance={self.tolerance!r}; it must be between 0 and 1. Try 1e-8.")

    @property
    def changes(self) -> tuple[str, ...]:
        """Values: weights and intercept are folded into them."""
        return ("value",)

    @property
    def supports_symmetric(self) -> bool:
        """Yes: whole trees go."""
        return True

    @property
    def uses_ensemble_loss(self) -> bool:
        """Yes: trees are weighed together."""
        return True

    def unsupported(self, problem: Problem) -> str | None:
        """Return a reason for models that are no sums of numbers or of probabilities."""
        return cannot_reweigh(problem)

    def path(self, problem: Problem) -> Path:
        """Return the unpruned forest and the weighted trees at each penalty, by falling size."""
        return trace_points(problem, self._points(additive(problem)), repr(self), ensemble=True)

    def _points(self, ensemble: Additive) -> Iterator[Point]:
        """Yield what was found at each penalty; the ensemble without trees only once."""
        whole = whole_trees(ensemble)
        gram, match = normal_equations(ensemble, whole, np.arange(ensemble.forest.n_trees))
        square = loss_of(ensemble, empty_state(ensemble))
        penalties = falling(self.penalties, largest_penalty(match), self.smallest)
        empty_before = False
        for penalty, beta, gap in lasso_path(gram, match, square, penalties, self.tolerance):
            if not (empty_before and not beta.any()):
                keep, value = decide(ensemble, reweighed(ensemble, whole, beta))
                yield Point(penalty, keep, value, {"gap": gap})
            empty_before = not beta.any()


def cannot_reweigh(problem: Problem) -> str | None:
    """Return why whole trees cannot be weighed by squared error, or None if they can."""
    reason = not_additive(problem.forest)
    if reason:
        return f"{reason}Use fewer_trees."
    if not problem.forest.response.linear:
        return "trees are weighed by squared error, and this model sums log-odds. Use fewer_trees or block_descent."
    reason = too_many_pairs(problem.forest)
    return reason and f"{reason}Use block_descent."


def whole_trees(ensemble: Additive) -> State:
    """Return the state in which every tree is there as it was grown, with weight 1."""
    forest = ensemble.forest
    status = np.where(forest.is_split, 1, 2).astype(np.int8)
    return replace(empty_state(ensemble), status=status, contribution=ensemble.original, factor=np.ones(forest.n_trees))


def largest_penalty(match: Floats) -> float:
    """Return the smallest penalty at which no tree has a weight."""
    return 2 * float(np.abs(match).max(initial=0.0))


def lasso_path(
    gram: Floats, match: Floats, square: float, penalties: Floats, tolerance: float
) -> Iterator[tuple[float, Floats, float]]:
    """Yield penalty, weights and duality gap, each descent starting from the weights before."""
    beta = np.zeros(len(match))
    for penalty in penalties.tolist():
        beta, gap, _ = kernels.fit_tree_lasso(gram, match, square, penalty, beta, tolerance * square, _MAX_SWEEPS)
        yield penalty, beta, float(gap)
