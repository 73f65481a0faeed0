"""Prune each tree top-down by training errors with a continuity correction per leaf (PEP)."""

from dataclasses import dataclass
from typing import final

import numpy as np

from secateur import kernels
from secateur.path import Path
from secateur.problem import Problem
from secateur.solvers.base import Solver
from secateur.solvers.single_tree._two_point_path import ONLY_OWN_PREDICTIONS, cut_below, two_points

_ROUNDING = 1e-12


@final
@dataclass(frozen=True, repr=False)
class PessimisticError(Solver):
    """Pessimistic-error pruning (PEP): compare corrected training errors of a leaf and of its subtree.

    Let a split v with n rows make e(v) errors as a leaf, and let its subtree T with L leaves make e(T) errors. The
    split becomes a leaf if

        e(v) + ½ ≤ e(T) + L/2 + standard_errors · sqrt(ê |n − ê| / n),   ê = e(T) + L/2.

    The test runs from the root down, and descendants of a pruned node are not tested. The loss defines an error; by
    default it is a misclassified row. For regression the errors are squared errors, as in Nie et al. (2017). The
    standard error then depends on the unit of the target, and the rule usually prunes nearly everything.

    A heuristic without guarantee. O(nodes).

    Parameters
    ----------
    standard_errors : float
        Number of standard errors by which a subtree must beat its root as a leaf to be kept.

    References
    ----------
    J. R. Quinlan (1987). Simplifying decision trees. International Journal of Man-Machine Studies 27.

    Z. Nie, B. Lin, S. Huang, N. Ramakrishnan, W. Fan and J. Ye (2017). Pruning decision trees via max-heap projection.

    Examples
    --------
    >>> import secateur as sc
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> tree = DecisionTreeClassifier(random_state=0).fit(X, y)
    >>> sc.prune_path(tree, X, y, solver="pessimistic_error").table["n_leaves"].tolist()
    [12, 8]
    """

    standard_errors: float = 1.0

    name = "pessimistic_error"
    minimises_errors = True
    needs_rows = False

    def unsupported(self, problem: Problem) -> str | None:
        """Return a reason if the model is a boosted ensemble."""
        return None if problem.forest.trees_predict_target else ONLY_OWN_PREDICTIONS

    def path(self, problem: Problem) -> Path:
        """Return the unpruned forest and its pessimistic pruning."""
        forest = problem.forest
        errors = problem.risk * problem.total_weight
        leaves = kernels.sum_over_leaves(forest.right, np.ones(forest.n_nodes))
        corrected = kernels.sum_over_leaves(forest.right, errors) + leaves / 2
        n = np.where(problem.weight > 0, problem.weight, 1.0)
        spread = np.sqrt(np.abs(corrected * (n - corrected)) / n)
        # risk · total_weight is an integer number of errors up to rounding; the slack keeps exact ties.
        rounding = _ROUNDING * problem.total_weight
        cut = errors + 0.5 <= corrected + self.standard_errors * spread + rounding
        return two_points(problem, cut_below(forest, cut), repr(self))
