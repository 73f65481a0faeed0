"""Fit sparse tree weights by the lasso and drop trees of weight 0.

This is the post-processing step of ISLE (Friedman and Popescu 2003), eq. (8) of ForestPrune (Liu and Mazumder 2023).
The descent is `secateur.kernels.whole_trees.tree_lasso.fit_tree_lasso`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.kernels import State
from secateur.path import Path
from secateur.path.build import Point, trace_points
from secateur.problem import Problem
from secateur.solvers.base import Solver, check_choices, check_penalties, check_valid, decreasing_penalties
from secateur.solvers.ensemble.additive_model import (
    Additive,
    additive,
    decide,
    empty_state,
    loss_of,
    not_quadratic,
    too_many_pairs,
)
from secateur.solvers.whole_trees.reweight import normal_equations, reweighed

Floats = NDArray[np.float64]
_MAX_SWEEPS = 1_000
"""Maximum number of sweeps per penalty."""


@final
@dataclass(frozen=True, repr=False)
class TreeLasso(Solver):
    """Fit a sparse weight per tree by the lasso, at every penalty of a decreasing sequence.

    The solver minimises

        1/n Σ_rows (y − b − Σ_t β_t tree_t(x))² + penalty · Σ_t |β_t|

    where tree_t is the contribution of tree t to the model, so that β = 1 is the model itself. Trees of weight 0 are
    dropped; weights may be negative. For classes y is one-hot encoded; the loss is a sum over classes and a mean over
    targets. There is one intercept b per output.

    The problem is convex. It is solved to a duality gap of at most `tolerance` times the squared error without trees.
    The column `gap` is the duality gap, an upper bound on the distance of the objective to its minimum. The Gram matrix
    of the trees takes O(rows · trees²) once; a sweep takes O(trees²), whatever the number of rows.

    Parameters
    ----------
    penalties : int or tuple of float
        Number of penalties, or the penalties themselves. A number gives a sequence that starts at the penalty that
        drops every tree and ends at `smallest` times that.
    smallest : float
        Ratio of the smallest penalty to the largest.
    tolerance : float
        Duality gap to reach, relative to the squared error without trees.
    values : "keep" or "free"
        A forest that averages its trees may have a natural range of predictions, such as class probabilities. Where
        the weighted sum could leave it, "keep" gives the chosen trees equal weights, and "free" does not.

    References
    ----------
    Friedman and Popescu (2003), Importance sampled learning ensembles.

    Liu and Mazumder (2023), ForestPrune: compact depth-pruned tree ensembles, AISTATS. Equation (8).

    Examples
    --------
    >>> import secateur as sc
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> forest = RandomForestRegressor(20, max_depth=3, random_state=0).fit(X, y)
    >>> n_trees = sc.prune_path(forest, X, y, solver=sc.solvers.TreeLasso(penalties=10)).table["n_trees"].tolist()
    >>> n_trees[0], n_trees[-1]
    (20, 1)
    """

    penalties: int | tuple[float, ...] = 50
    smallest: float = 1e-4
    tolerance: float = 1e-8
    values: Literal["keep", "free"] = "keep"

    name = "tree_lasso"
    changes = ("value",)
    supports_symmetric = True
    keeps_leaves = True
    uses_ensemble_loss = True

    def __post_init__(self) -> None:
        check_penalties(self.penalties, self.smallest)
        check_choices(self, values=("keep", "free"))
        check_valid(self, "tolerance", 0 < self.tolerance < 1, "between 0 and 1", "1e-8")

    def unsupported(self, problem: Problem) -> str | None:
        """Return why the model is not a sum of trees with squared error, or None if it is."""
        return cannot_reweigh(problem)

    def path(self, problem: Problem) -> Path:
        """Return the unpruned forest and the weighted trees at each penalty, by decreasing size."""
        return trace_points(problem, self._points(additive(problem)), repr(self), ensemble=True)

    def _points(self, ensemble: Additive) -> Iterator[Point]:
        """Yield a point per penalty, but only one without trees."""
        unpruned = whole_trees(ensemble)
        gram, match = normal_equations(ensemble, unpruned, np.arange(ensemble.forest.n_trees))
        square = loss_of(ensemble, empty_state(ensemble))
        penalties = decreasing_penalties(self.penalties, largest_penalty(match), self.smallest)
        empty_before = False
        for penalty, beta, gap in lasso_path(gram, match, square, penalties, self.tolerance):
            if not (empty_before and not beta.any()):
                keep, value = decide(ensemble, reweighed(ensemble, unpruned, beta))
                yield Point(penalty, keep, value, {"gap": gap})
            empty_before = not beta.any()


def cannot_reweigh(problem: Problem) -> str | None:
    """Return why tree weights cannot be fitted by squared error, or None if they can."""
    reason = not_quadratic(problem.forest)
    if reason:
        return f"{reason}Use fewer_trees or block_descent."
    reason = too_many_pairs(problem.forest)
    return reason and f"{reason}Use block_descent."


def whole_trees(ensemble: Additive) -> State:
    """Return a state with all trees unpruned and of weight 1; its row arrays are those without trees."""
    forest = ensemble.forest
    status = np.where(forest.is_split, 1, 2).astype(np.int8)
    return empty_state(ensemble)._replace(status=status, contribution=ensemble.original, factor=np.ones(forest.n_trees))


def largest_penalty(match: Floats) -> float:
    """Return the smallest penalty at which all tree weights are 0."""
    return 2 * float(np.abs(match).max(initial=0.0))


def lasso_path(
    gram: Floats, match: Floats, square: float, penalties: Floats, tolerance: float
) -> Iterator[tuple[float, Floats, float]]:
    """Yield penalty, weights and duality gap along the penalties, with warm starts."""
    beta = np.zeros(len(match))
    for penalty in penalties.tolist():
        beta, gap, _ = kernels.fit_tree_lasso(gram, match, square, penalty, beta, tolerance * square, _MAX_SWEEPS)
        yield penalty, beta, float(gap)
