"""Solve the pruning programs (IP0), (IP2) and (IP3) of Nan, Wang and Saligrama (2016) by linear programming on HiGHS.

`_integer_programs` builds the constraint matrices. The network matrix of Lemma 4.1 is never built: the pass over a tree
in `secateur.kernels.feature_cost.tree_prices` solves the same problem, as docs/shortest_path.md shows.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

from secateur.errors import InvalidInputError, UnsupportedProblemError
from secateur.path import Path
from secateur.path.build import Point, trace_points
from secateur.path.evaluation import match_by_cost
from secateur.problem import Problem
from secateur.solvers.base import check_at_least, check_choices, check_penalties, check_valid, decreasing_penalties
from secateur.solvers.feature_cost._base import FeatureSolver
from secateur.solvers.feature_cost._budget_program import best_within
from secateur.solvers.feature_cost._column_generation import ColumnGeneration
from secateur.solvers.feature_cost._decomposition import (
    DecomposedProblem,
    DecomposedSolution,
    cheapest,
    decompose,
    is_integral,
    largest_penalty,
    lower_bound,
    reoptimised,
    rounded,
    split_prices,
)
from secateur.solvers.feature_cost._highs import load, solve, start_highs
from secateur.solvers.feature_cost._integer_programs import PROGRAMS, ancestry

_CHOICES: dict[str, tuple[str | None, ...]] = {
    "method": ("simplex", "dantzig_wolfe"),
    "formulation": ("ip0", "ip1", "ip2", "ip3"),
    "errors": ("holdout", "train"),
}


@final
@dataclass(frozen=True, repr=False)
class LinearProgram(FeatureSolver):
    """Compute the optimal pruning at given penalties on feature cost by linear programming.

    The solver minimises over all prunings of all trees

        1/trees Σ_trees wrong labels of the tree + penalty · average price of the distinct features of a row

    which is BudgetPrune's (IP3), as the paper does: it solves the linear relaxation, whose optimal solutions are
    integral (Theorem 4.2). It exists for comparison and for fidelity to the paper: `MinCut` finds the same optima for
    all penalties at once, in far less time and memory.

    The solution is **exact** up to the arithmetic of HiGHS, with a **certified** gap. The column `bound` is a lower
    bound on the objective of every pruning; it is computed from the dual solution but stays valid if the duals are
    inaccurate. `gap` is `objective` − `bound`. `integral` is 1 where the solution of the linear program was a pruning
    without rounding, and `iterations` counts the iterations. The program has nodes + needs + items columns and leaves
    + 2 · needs rows; a need is a (resource, row, tree) triple.

    With `max_cost`, the path also has the best pruning within each budget, which no penalty may reach. It is found by
    integer programming, and is optimal unless `time_limit` is reached. Such a point has the penalty 0, the column
    `budget`, and in `bound` a lower bound on the risk of every pruning within this budget.

    Requires highspy: pip install 'secateur[lp]'.

    Parameters
    ----------
    method : "simplex" or "dantzig_wolfe"
        "simplex" solves the whole program, each penalty warm-started from the basis of the previous one.
        "dantzig_wolfe" is column generation (section 5 of the paper): each tree is pruned separately at prices set by a
        smaller master program, until the gap is closed.
    formulation : "ip3", "ip2" or "ip0"
        "ip3": a feature is bought once for all trees. "ip2": each tree pays for its features; the reported cost is that
        of the ensemble, and there is no bound unless there is one tree. "ip0": the fewest errors regardless of cost, a
        path of one point. "ip1" has no path, since its linear program has optimal solutions that are not prunings.
    penalties : int or tuple of float
        The number of penalties, from the one at which nothing is bought down to `smallest` times that, on a logarithmic
        scale; or the penalties themselves.
    smallest : float
        The smallest penalty, as a fraction of the largest.
    errors : "holdout" or "train"
        The label predicted at a node: the model's, or the most frequent label of the rows at the node, as in the paper.
    class_weight : "balanced" or tuple of float, optional
        The weight of an error for rows of each class, in the order of the model's classes.
    max_cost : float or tuple of float, optional
        Budgets for the average price of a row, in the unit of the cost.
    time_limit : float
        Seconds for each budget. If it is reached, the result depends on the speed of the computer.
    tolerance : float
        The gap at which column generation stops, as a fraction of the objective.
    max_iterations : int
        Maximum number of column generation iterations at each penalty. If the limit is reached, `gap` is the remaining
        gap.

    References
    ----------
    Nan, Wang, Saligrama (2016): Optimally Pruning Decision Tree Ensembles With Feature Cost.

    Examples
    --------
    >>> import secateur as sc
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> forest = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X[::2], y[::2])
    >>> path = sc.prune_path(forest, X[1::2], y[1::2], solver=sc.solvers.LinearProgram(penalties=3))
    >>> bool((path.table["gap"][1:] < 1e-9).all())
    True
    """

    method: Literal["simplex", "dantzig_wolfe"] = "simplex"
    formulation: Literal["ip0", "ip1", "ip2", "ip3"] = "ip3"
    penalties: int | tuple[float, ...] = 20
    smallest: float = 1e-3
    errors: Literal["holdout", "train"] = "holdout"
    class_weight: Literal["balanced"] | tuple[float, ...] | None = None
    max_cost: float | tuple[float, ...] | None = None
    time_limit: float = 60.0
    tolerance: float = 1e-7
    max_iterations: int = 500

    name = "linear_program"

    def __post_init__(self) -> None:
        check_choices(self, **_CHOICES)
        if self.method == "dantzig_wolfe" and self.formulation != "ip3":
            raise InvalidInputError(
                f"method='dantzig_wolfe' with formulation={self.formulation!r} is not supported: it decomposes 'ip3', "
                "where trees share features. Use formulation='ip3' or method='simplex'."
            )
        check_penalties(self.penalties, self.smallest)
        check_valid(self, "tolerance", 0 < self.tolerance < 1, "between 0 and 1", "1e-7")
        check_at_least(self, max_iterations=1, time_limit=0)
        for budget in self._budgets:
            check_valid(self, "max_cost", budget >= 0, "None, or budgets of at least 0", "5.0")
        if self._budgets and self.formulation != "ip3":
            raise InvalidInputError(
                f"max_cost with formulation={self.formulation!r} is not supported: a budget is that of the ensemble. "
                "Use formulation='ip3'."
            )

    @property
    def _budgets(self) -> tuple[float, ...]:
        if self.max_cost is None:
            return ()
        return self.max_cost if isinstance(self.max_cost, tuple) else (self.max_cost,)

    def with_budget(
        self, *, max_nodes: int | None = None, max_trees: int | None = None, max_cost: float | None = None
    ) -> "LinearProgram":
        """Return a copy with this cost budget, unless `max_cost` is set or the formulation has no budgets."""
        return self if self.max_cost is not None or self.formulation != "ip3" else replace(self, max_cost=max_cost)

    def match(self, path: Path, other: Path, *, same_size: bool = False) -> NDArray[np.intp]:
        """Return for each point of `path` the corresponding point of another path of this solver, (n_points,).

        Points for a budget have no penalty, so with budgets points are matched by cost.
        """
        return match_by_cost(path, other) if self._budgets else super().match(path, other, same_size=same_size)

    def unsupported(self, problem: Problem) -> str | None:
        """Return why the problem is unsupported.

        The reasons are a cost that is not shared, trees that predict no labels, and the formulation (IP1).
        """
        if self.formulation == "ip1":
            return (
                "the linear relaxation of (IP1) has fractional vertices, so its optimum may not be a pruning. "
                "Use formulation='ip3'."
            )
        return super().unsupported(problem)

    def path(self, problem: Problem) -> Path:
        """Return the path: the unpruned forest and the best pruning at each penalty, by decreasing size."""
        reason = self.unsupported(problem)
        if reason:
            raise UnsupportedProblemError(f"{type(self).__name__} cannot prune this: {reason}")
        decomposed = decompose(problem, self.errors, self.class_weight, per_tree=self.formulation == "ip2")
        engine = (
            Simplex(decomposed, self.formulation)
            if self.method == "simplex"
            else ColumnGeneration(decomposed, self.tolerance, self.max_iterations)
        )
        path = trace_points(problem, self._points(problem, decomposed, engine), repr(self), ensemble=False)
        return _completed(path, decomposed)

    def _points(
        self, problem: Problem, decomposed: DecomposedProblem, engine: "Simplex | ColumnGeneration"
    ) -> Iterator[Point]:
        """Yield the solution at each penalty."""
        penalties = np.zeros(1)
        if self.formulation != "ip0":
            largest = 0.0 if isinstance(self.penalties, tuple) else largest_penalty(decomposed, engine.solve)
            penalties = decreasing_penalties(self.penalties, largest, self.smallest)
        shared = self.formulation != "ip2" or decomposed.forest.n_trees == 1
        report_progress = problem.watch("linear programs")
        for k, penalty in enumerate(penalties.tolist()):
            solution = engine.solve(penalty)
            more = {
                "bound": solution.bound * decomposed.unit if shared else np.nan,
                "integral": float(solution.integral),
                "iterations": float(solution.iterations),
                **({"budget": np.nan} if self._budgets else {}),
            }
            risk = decomposed.value(solution.split)[0] * decomposed.unit
            yield Point(penalty, decomposed.keep(solution.split), more=more, risk=risk)
            if report_progress:
                report_progress(k + 1, len(penalties))
        for budget in self._budgets:
            found = best_within(decomposed, budget / decomposed.unit, self.time_limit)
            risk = decomposed.value(found.split)[0] * decomposed.unit
            more = {"bound": found.bound * decomposed.unit, "integral": 1.0, "iterations": 0.0, "budget": budget}
            yield Point(0.0, decomposed.keep(found.split), more=more, risk=risk)


class Simplex:
    """Solve a linear program on HiGHS for a sequence of penalties, each warm-started from the previous basis."""

    def __init__(self, decomposed: DecomposedProblem, formulation: str) -> None:
        self._decomposed, self._program = decomposed, PROGRAMS[formulation](decomposed)
        self._above = ancestry(decomposed.forest)
        self._highs = start_highs()
        program = self._program
        load(self._highs, program.errors, program.matrix, program.lower, program.upper)

    def solve(self, penalty: float) -> DecomposedSolution:
        """Return the pruning at an optimal vertex, and a lower bound.

        The bound splits the prices in proportion to the duals of the rows w_ki^(t) ≤ w_ki and prunes each tree
        separately at those prices. It holds for any nonnegative split, so it does not rely on the accuracy of HiGHS.
        """
        decomposed, n_links = self._decomposed, self._program.n_links
        x, duals = solve(self._highs, self._program.objective(penalty))
        kept_fraction = 1 - self._above @ x[: decomposed.forest.n_nodes]
        proportion = -duals[len(duals) - n_links :] if n_links else np.ones(len(decomposed.item))
        tree_costs, _ = cheapest(decomposed, split_prices(decomposed, penalty, proportion))
        split = reoptimised(decomposed, rounded(decomposed, kept_fraction, penalty))
        iterations = max(int(self._highs.getInfo().simplex_iteration_count), 0)
        return DecomposedSolution(split, lower_bound(decomposed, tree_costs), is_integral(kept_fraction), iterations)


def _completed(path: Path, decomposed: DecomposedProblem) -> Path:
    """Return the path with the columns `objective` and `gap`.

    The first point, the unpruned forest at penalty 0, gets its own risk and bound.
    """
    table = dict(path.table)
    least = lower_bound(decomposed, cheapest(decomposed, np.zeros(len(decomposed.item)))[0])
    first = {
        "penalty": 0.0,
        "risk": decomposed.value(decomposed.forest.is_split)[0] * decomposed.unit,
        "bound": least * decomposed.unit,
        "integral": 1.0,
        "iterations": 0.0,
    }
    if "budget" in table:
        first["budget"] = np.nan
    for name, value in first.items():
        table[name] = np.append(value, table[name][1:] if name in table else [])
    table["objective"] = table["risk"] + table["penalty"] * table["cost"]
    table["bound"] = np.minimum(table["bound"], table["objective"])
    table["gap"] = table["objective"] - table["bound"]
    return replace(path, table=table)
