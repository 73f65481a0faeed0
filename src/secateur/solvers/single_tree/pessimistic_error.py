"""Pessimistic-error pruning (PEP), Quinlan 1987: training errors with a correction for every leaf, top-down."""

from dataclasses import dataclass
from typing import final

import numpy as np

from secateur import kernels
from secateur.forest import Forest
from secateur.losses import Loss, ZeroOne
from secateur.path import Path
from secateur.problem import Problem
from secateur.solvers.base import Solver
from secateur.solvers.single_tree._two_point_path import ONLY_OWN_PREDICTIONS, cut_below, two_points

_ROUNDING = 1e-12


@final
@dataclass(frozen=True, repr=False)
class PessimisticError(Solver):
    """Prune by the rows the tree was grown on, counting half an error more per leaf.

    A split v with errors e(v) as a leaf, e(T) of the subtree below it with L leaves, and n rows is cut when

        e(v) + ½ ≤ e(T) + L/2 + standard_errors · sqrt(ê |n − ê| / n),   ê = e(T) + L/2,

    from the root down: what is below a cut is not looked at. Errors are counted by the loss (default: wrong labels).
    For numbers they are squared errors, as Nie et al. (2017) have it; the standard error then depends on
    the unit of the target and usually prunes nearly everything. A heuristic with no guarantee. O(nodes).

    Parameters
    ----------
    standard_errors : float
        How many standard errors the subtree must be better by to stay.
    """

    standard_errors: float = 1.0

    name = "pessimistic_error"

    @property
    def needs_rows(self) -> bool:
        """No: sums at the nodes will do."""
        return False

    def default_loss(self, forest: Forest) -> Loss | None:
        """Count wrong labels, for which the correction is meant."""
        return ZeroOne() if forest.n_classes else None

    def unsupported(self, problem: Problem) -> str | None:
        """Return a reason for boosting."""
        return None if problem.forest.trees_predict_target else ONLY_OWN_PREDICTIONS

    def path(self, problem: Problem) -> Path:
        """Return the unpruned forest and its pessimistic pruning."""
        forest = problem.forest
        errors = problem.risk * problem.total_weight
        leaves = kernels.sum_over_leaves(forest.right, np.ones(forest.n_nodes))
        corrected = kernels.sum_over_leaves(forest.right, errors) + leaves / 2
        n = np.where(problem.weight > 0, problem.weight, 1.0)
        spread = np.sqrt(np.abs(corrected * (n - corrected)) / n)
        rounding = _ROUNDING * problem.total_weight  # shares times weights are whole numbers but for that
        cut = errors + 0.5 <= corrected + self.standard_errors * spread + rounding
        return two_points(problem, cut_below(forest, cut), repr(self))
