"""Select the best subset of whole trees within a node budget by branch and bound.

This is best subset tree selection, Problem (9) of ForestPrune (Liu and Mazumder 2023).
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, final

import numpy as np

from secateur.path import Path
from secateur.path.build import Point, trace_points
from secateur.problem import Problem
from secateur.solvers.base import Solver, check_at_least, check_choices, decreasing_penalties
from secateur.solvers.ensemble.additive_model import Additive, additive, decide, empty_state, loss_of
from secateur.solvers.whole_trees._branch_and_bound import pose, search, solve
from secateur.solvers.whole_trees.reweight import normal_equations, reweighed
from secateur.solvers.whole_trees.tree_lasso import cannot_reweigh, largest_penalty, lasso_path, whole_trees

_BUDGET_FRACTIONS = (1 / 50, 1 / 20, 1 / 10, 1 / 5)
"""Default budgets, as fractions of the model's nodes."""


@final
@dataclass(frozen=True, repr=False)
class BestSubset(Solver):
    """Select whole trees within a node budget, and their weights, to minimise the squared error.

    The solver minimises over subsets S of the trees, weights β and one intercept b per output

        1/n Σ_rows (y − b − Σ_{t in S} β_t tree_t(x))² + r · Σ β_t²     with   Σ_{t in S} nodes of t ≤ max_nodes

    where tree_t is the contribution of tree t to the model and y the target, one-hot encoded for classes. The ridge r,
    a millionth of the trees' mean variance, makes the weights unique.

    The problem is NP-hard. Branch and bound starts from the best lasso and greedy solutions, and stops at a proof of
    optimality or at the time limit. The column `bound` is a certified lower bound: no subset within the budget has an
    `objective` below it, however early the search stops. The column `gap` is (objective − bound) / objective.
    Optimality is proved up to the precision of the arithmetic, about 1e-9 of the squared error without trees. When the
    time limit is reached first, the result depends on the speed of the computer. Computing the Gram matrix takes
    O(rows · trees²); the search is exponential in the number of trees in the worst case.

    Parameters
    ----------
    max_nodes : int, optional
        Node budget. By default the path has one point each for 1/50, 1/20, 1/10 and 1/5 of the model's nodes.
    time_limit : float
        Seconds for all budgets together, not counting the Gram matrix and the lasso path.
    values : "keep" or "free"
        A forest that averages its trees may have a natural range of predictions, such as class probabilities. Where
        the weighted sum could leave it, "keep" gives the chosen trees equal weights, and "free" does not.

    References
    ----------
    Liu and Mazumder (2023), ForestPrune: compact depth-pruned tree ensembles, AISTATS. Problem (9).

    Examples
    --------
    >>> import secateur as sc
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> forest = RandomForestRegressor(10, max_depth=3, random_state=0).fit(X, y)
    >>> path = sc.prune_path(forest, X, y, solver=sc.solvers.BestSubset(max_nodes=50))
    >>> bool(path.table["n_nodes"][-1] <= 50), bool(path.table["gap"][-1] < 1e-6)
    (True, True)
    """

    max_nodes: int | None = None
    time_limit: float = 10.0
    values: Literal["keep", "free"] = "keep"

    name = "best_subset"
    changes = ("value",)
    supports_symmetric = True
    keeps_leaves = True
    uses_ensemble_loss = True

    def __post_init__(self) -> None:
        check_at_least(self, max_nodes=1, time_limit=0)
        check_choices(self, values=("keep", "free"))

    def with_budget(
        self, *, max_nodes: int | None = None, max_trees: int | None = None, max_cost: float | None = None
    ) -> "BestSubset":
        """Return a copy with a node budget; a budget already set takes precedence."""
        return replace(self, max_nodes=self.max_nodes or max_nodes)

    def unsupported(self, problem: Problem) -> str | None:
        """Return why the model is not a sum of trees with squared error, or None if it is."""
        return cannot_reweigh(problem)

    def path(self, problem: Problem) -> Path:
        """Return the unpruned forest and the best subset found for each budget, the largest first."""
        path = trace_points(problem, self._points(additive(problem)), repr(self), ensemble=True)
        for name in ("budget", "objective", "bound", "gap"):
            path.table[name][0] = np.nan
        return path

    def _points(self, ensemble: Additive) -> Iterator[Point]:
        """Yield the best subset found for each budget; the time left is divided equally among the budgets left."""
        unpruned, forest = whole_trees(ensemble), ensemble.forest
        gram, match = normal_equations(ensemble, unpruned, np.arange(forest.n_trees))
        square = loss_of(ensemble, empty_state(ensemble))
        trees = pose(gram, match, square, np.diff(forest.tree_start))
        penalties = decreasing_penalties(50, largest_penalty(match), 1e-4)
        starts = [np.flatnonzero(beta) for _, beta, _ in lasso_path(gram, match, square, penalties, 1e-6)]
        budgets = (
            [self.max_nodes]
            if self.max_nodes
            else [max(round(fraction * forest.n_nodes), 1) for fraction in _BUDGET_FRACTIONS]
        )
        end = time.monotonic() + self.time_limit
        for index, budget in enumerate(budgets):
            now = time.monotonic()
            found = search(trees, budget, starts, now + (end - now) / (len(budgets) - index))
            factor = np.zeros(forest.n_trees)
            factor[found.chosen] = solve(trees, found.chosen)[1]
            keep, value = decide(ensemble, reweighed(ensemble, unpruned, factor))
            gap = (found.objective - found.bound) / max(found.objective, 1e-300)
            facts = {"budget": budget, "objective": found.objective, "bound": found.bound, "gap": gap}
            yield Point(np.nan, keep, value, facts)
