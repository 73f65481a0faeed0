"""Solve the pruning programs (IP0), (IP2) and (IP3) of Nan, Wang and Saligrama (2016) by linear programming on HiGHS.

`_integer_programs` builds the constraint matrices. The network matrix of Lemma 4.1 is never built: the pass over a tree
in `secateur.kernels.feature_cost.tree_prices` solves the same problem, as docs/shortest_path.md shows.

References
----------
Nan, Wang, Saligrama (2016): Optimally Pruning Decision Tree Ensembles With Feature Cost.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, final

import numpy as np

from secateur.path import Path
from secateur.path.build import Point, trace_points
from secateur.problem import Problem
from secateur.solvers.base import check_choices
from secateur.solvers.feature_cost._base import FeatureSolver
from secateur.solvers.feature_cost._column_generation import ColumnGeneration
from secateur.solvers.feature_cost._decomposition import (
    DecomposedProblem,
    DecomposedSolution,
    ask,
    cheapest,
    is_integral,
    largest_penalty,
    lower_bound,
    rounded,
    share_out,
    tidied,
)
from secateur.solvers.feature_cost._highs import load, solve, start_highs
from secateur.solvers.feature_cost._integer_programs import PROGRAMS, ancestry
from secateur.solvers.penalty_grid import check_penalties, falling

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
    tolerance: float = 1e-7
    max_iterations: int = 500

    name = "linear_program"

    def __post_init__(self) -> None:
        check_choices(self, **_CHOICES)
        if self.method == "dantzig_wolfe" and self.formulation != "ip3":
            raise ValueError(
                f"method='dantzig_wolfe' with formulation={self.formulation!r}; trees are taken apart where they share "
                "features, which is 'ip3'. Use that, or method='simplex'."
            )
        check_penalties(self.penalties, self.smallest)
        if not 0 < self.tolerance < 1:
            raise ValueError(f"tolerance={self.tolerance!r}; it must be between 0 and 1. Try 1e-7.")
        if self.max_iterations < 1:
            raise ValueError(f"max_iterations={self.max_iterations!r}; it must be at least 1. Try 500.")

    def unsupported(self, problem: Problem) -> str | None:
        """Return why the problem is unsupported.

        The reasons are a cost that is not shared, trees that predict no labels, and the formulation (IP1).
        """
        if self.formulation == "ip1":
            return (
                "the linear program of (IP1) has fractional vertices, so that its optimum need not be a pruning. "
                "Use formulation='ip3'."
            )
        return super().unsupported(problem)

    def path(self, problem: Problem) -> Path:
        """Return the path: the unpruned forest and the best pruning at each penalty, by decreasing size."""
        reason = self.unsupported(problem)
        if reason:
            raise ValueError(f"{self!r} cannot prune this: {reason}")
        question = ask(problem, self.errors, self.class_weight, apart=self.formulation == "ip2")
        engine = (
            Simplex(question, self.formulation)
            if self.method == "simplex"
            else ColumnGeneration(question, self.tolerance, self.max_iterations)
        )
        path = trace_points(problem, self._points(problem, question, engine), repr(self), ensemble=False)
        return _completed(path, question)

    def _points(
        self, problem: Problem, question: DecomposedProblem, engine: "Simplex | ColumnGeneration"
    ) -> Iterator[Point]:
        """Yield the solution at each penalty."""
        penalties = np.zeros(1)
        if self.formulation != "ip0":
            largest = 0.0 if isinstance(self.penalties, tuple) else largest_penalty(question, engine.solve)
            penalties = falling(self.penalties, largest, self.smallest)
        shared = self.formulation != "ip2" or question.forest.n_trees == 1
        tell = problem.watch("linear programs")
        for k, penalty in enumerate(penalties.tolist()):
            answer = engine.solve(penalty)
            more = {
                "bound": answer.bound * question.unit if shared else np.nan,
                "integral": float(answer.integral),
                "iterations": float(answer.iterations),
            }
            risk = question.value(answer.split)[0] * question.unit
            yield Point(penalty, question.keep(answer.split), more=more, risk=risk)
            if tell:
                tell(k + 1, len(penalties))


class Simplex:
    """Solve a linear program on HiGHS for a sequence of penalties, each warm-started from the previous basis."""

    def __init__(self, question: DecomposedProblem, formulation: str) -> None:
        self._question, self._program = question, PROGRAMS[formulation](question)
        self._above = ancestry(question.forest)
        self._highs = start_highs()
        program = self._program
        load(self._highs, program.errors, program.matrix, program.lower, program.upper)

    def solve(self, penalty: float) -> DecomposedSolution:
        """Return the pruning at an optimal vertex, and a lower bound.

        The bound splits the prices in proportion to the duals of the rows w_ki^(t) ≤ w_ki and prunes each tree
        separately at those prices. It holds for any nonnegative split, so it does not rely on the accuracy of HiGHS.
        """
        question, n_links = self._question, self._program.n_links
        x, duals = solve(self._highs, self._program.objective(penalty))
        stays = 1 - self._above @ x[: question.forest.n_nodes]
        wish = -duals[len(duals) - n_links :] if n_links else np.ones(len(question.item))
        worth, _ = cheapest(question, share_out(question, penalty, wish))
        split = tidied(question, rounded(question, stays, penalty))
        iterations = max(int(self._highs.getInfo().simplex_iteration_count), 0)
        return DecomposedSolution(split, lower_bound(question, worth), is_integral(stays), iterations)


def _completed(path: Path, question: DecomposedProblem) -> Path:
    """Return the path with the columns `objective` and `gap`.

    The first point, the unpruned forest at penalty 0, gets its own risk and bound.
    """
    table = dict(path.table)
    least = lower_bound(question, cheapest(question, np.zeros(len(question.item)))[0])
    first = {
        "penalty": 0.0,
        "risk": question.value(question.forest.is_split)[0] * question.unit,
        "bound": least * question.unit,
        "integral": 1.0,
        "iterations": 0.0,
    }
    for name, value in first.items():
        table[name] = np.append(value, table[name][1:] if name in table else [])
    table["objective"] = table["risk"] + table["penalty"] * table["cost"]
    table["bound"] = np.minimum(table["bound"], table["objective"])
    table["gap"] = table["objective"] - table["bound"]
    return replace(path, table=table)
