"""Feature cost by linear programs, as Nan, Wang and Saligrama 2016 solve it: (IP0), (IP2) and (IP3), on HiGHS."""

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
    """The best pruning at some penalties on the price of the features rows need, by linear programming.

    It minimises what `min_cut` minimises, BudgetPrune's (IP3), as the paper does: the linear program without the
    demand for whole numbers, whose optima are whole. For comparison, and for faith to the paper: min_cut finds the same
    optima, for all penalties at once, in far less time and memory.

    Exact up to the arithmetic of HiGHS, and certified: no pruning has an objective below the column `bound`, which is
    computed from the duals of the program without trusting them; `gap` is how far `objective` is above it. `integral`
    is 1 where the solution was a pruning as it stood, and `iterations` says what it took. The program has
    nodes + needs + items columns and leaves + 2 · needs rows, a need being a resource, a row and a tree.

    Needs highspy: pip install 'secateur[lp]'.

    Parameters
    ----------
    method : "simplex" or "dantzig_wolfe"
        The whole program, each penalty from the basis of the one before; or column generation, where every tree is
        pruned alone at prices that a smaller program sets, until the gap is closed.
    formulation : "ip3", "ip2" or "ip0"
        Features bought for all trees; each tree pays for itself (the cost shown is that of the ensemble, which has no
        bound then unless there is one tree); or the least errors whatever the price, a path of one point. "ip1" has no
        path, as its linear program has optima that are no prunings.
    penalties : int or tuple of float
        How many, from the one at which nothing is bought down to `smallest` times that; or which.
    smallest : float
    errors : "holdout" or "train"
        Which label a node is judged by: its own, or the most frequent of the rows that come to it, as in the paper.
    class_weight : "balanced" or tuple of float, optional
        What an error counts for rows of each class, in the order of the model's classes.
    tolerance : float
        The gap at which column generation ends, as a share of the objective.
    max_iterations : int
        How often column generation sets prices for each penalty; if that is not enough, `gap` says what is missing.
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
        """Return a reason for anything but feature cost and trees that give labels, and for (IP1)."""
        if self.formulation == "ip1":
            return (
                "the linear program of (IP1) has fractional vertices, so that its optimum need not be a pruning. "
                "Use formulation='ip3'."
            )
        return super().unsupported(problem)

    def path(self, problem: Problem) -> Path:
        """Return the unpruned forest and the best pruning at each penalty, by falling size."""
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
        """Yield what was found at each penalty."""
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
    """A linear program on HiGHS, solved for one penalty after another from the basis of the one before."""

    def __init__(self, question: DecomposedProblem, formulation: str) -> None:
        self._question, self._program = question, PROGRAMS[formulation](question)
        self._above = ancestry(question.forest)
        self._highs = start_highs()
        program = self._program
        load(self._highs, program.errors, program.matrix, program.lower, program.upper)

    def solve(self, penalty: float) -> DecomposedSolution:
        """Return the pruning at an optimal vertex."""
        question, n_links = self._question, self._program.n_links
        x, duals = solve(self._highs, self._program.objective(penalty))
        stays = 1 - self._above @ x[: question.forest.n_nodes]
        wish = -duals[len(duals) - n_links :] if n_links else np.ones(len(question.item))
        worth, _ = cheapest(question, share_out(question, penalty, wish))
        split = tidied(question, rounded(question, stays, penalty))
        iterations = max(int(self._highs.getInfo().simplex_iteration_count), 0)
        return DecomposedSolution(split, lower_bound(question, worth), is_integral(stays), iterations)


def _completed(path: Path, question: DecomposedProblem) -> Path:
    """Return the path with `objective` and `gap`, and with what is known of the unpruned forest, at penalty 0."""
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
