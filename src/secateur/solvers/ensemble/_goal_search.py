"""Search for one pruning by block descent, instead of computing the whole path.

A walk along decreasing penalties ends soon after the goal is met: a budget of nodes (`_budget_search`), a bound on the
validation loss or the lowest validation loss (`_loss_search`). On the way it descends briefly; only near the goal it
descends until it converges. Larger ridges branch off the walk and replace it where their validation loss is lower. With
several folds, all of them are visited at the same penalty, and their mean loss decides.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from secateur._util.threads import in_threads
from secateur.path.guard import NO_GUARD
from secateur.solvers.ensemble._fold_search import KEPT, AnyDescent, Floats, FoldSearch, MakeDescent, RunSettings
from secateur.solvers.goal import FoldProblem, Goal

T = TypeVar("T")

SWEEPS_AT_GOAL = 6
"""Largest number of sweeps at a penalty near the goal."""
NEAR = 0.02
"""The walk ends when the loss exceeds its bound by at most this fraction of the unpruned loss."""
_CLOSE = 0.05
"""Beyond the penalties of the path, the walk goes on while the loss exceeds its bound by at most this fraction."""
_RIDGE_EVERY, _RIDGE_SELDOM = 3, 12
"""Number of penalties after which the next larger ridge is tried. It doubles with each failure, up to the second."""
_LARGE = 40
"""Number of nodes per output from which the loss varies smoothly with the ridge."""
_PATIENCE = 5
"""Number of penalties without a lower loss after which the search for the lowest loss ends."""
MANY_KEPT = 0.1
"""Fraction of kept nodes above which prunings with original leaf values are tried, too."""
BISECTIONS = 2
"""Number of bisections of the penalty between a pruning that meets the goal and one that does not."""
_TRAIL = 8
"""Number of visits whose states are stored, to go back to."""


@dataclass(eq=False)
class Visit:
    """The result of a descent at one penalty, over all folds.

    Attributes
    ----------
    penalty : float
    run : RunSettings
    n_nodes : float
        Mean number of nodes.
    loss, error : float
        Mean validation loss, and the standard error of its difference from that of the unpruned model.
    states : list
        The states of the folds, from which the walk can go on; empty for visits long ago.
    """

    penalty: float
    run: RunSettings
    n_nodes: float
    loss: float
    error: float
    states: list[Any] = field(default_factory=list)


class GoalSearch(ABC):
    """Search for the pruning that meets a goal; subclasses know one kind of goal.

    Parameters
    ----------
    folds : list of FoldProblem
    make : MakeDescent
    ridges : list of float
        Candidates for refitted leaf values, in increasing order; empty if values are not refitted.
    keep : bool
        Whether original leaf values are a candidate.
    goal : Goal
    free : bool
        Whether predictions may leave the range of the model.

    Attributes
    ----------
    runs : list of RunSettings
        A run for each ridge, in increasing order, and last that with original leaf values.
    best : Visit, optional
        The pruning found.
    fills_budget : bool
        Whether the goal is to use up a budget of nodes.
    penalties : (n_penalties,)
        Those of the path, and smaller ones in case that the goal is not met by then.
    n_regular : int
        Number of those of the path.
    way : list of Visit
        The walk to `best`.
    thorough : list of Visit
        The visits near the goal, at whose penalties the path of all rows has points.
    """

    fills_budget = False

    def __init__(
        self,
        folds: Sequence[FoldProblem],
        make: MakeDescent,
        ridges: Sequence[float],
        keep: bool,
        goal: Goal,
        *,
        free: bool = False,
    ) -> None:
        self.goal, self.keep, self.ridges = goal, keep, ridges
        self.runs = [*map(RunSettings, ridges), KEPT]
        first = self.runs[0]
        n_jobs = folds[0].problem.n_jobs
        self.folds = in_threads(lambda fold: FoldSearch(fold, make, first, free=free), folds, n_jobs)
        descent = self.folds[0].descent
        # Larger models need larger ridges: the walk begins with the second smallest and never returns to it.
        self.first_ridge = min(1, len(ridges) - 1)
        n_smaller = len(descent.penalties_below(goal.max_nodes or 0)) - len(descent.penalties())
        self.penalties = _from_first_entry(descent, goal.max_nodes or 0)
        self.n_regular = len(self.penalties) - n_smaller
        self.turns_back = descent.turns_back
        weight = np.array([fold.rows.total_weight for fold in self.folds])
        self.fold_weight = (weight / weight.sum()).tolist()
        self.unpruned = self._mean([float(fold.weight @ fold.unpruned) for fold in self.folds])
        self.n_unpruned = float(np.mean([fold.problem.forest.n_nodes for fold in self.folds]))
        self.n_outputs = self.folds[0].problem.forest.n_outputs
        self.bound, self.guard = -np.inf, NO_GUARD
        self.best: Visit | None = None
        self.thorough: list[Visit] = []
        self.way: list[Visit] = []
        self._n_visits = 0

    @abstractmethod
    def find(self) -> None:
        """Set `best`, unless no pruning meets the goal."""

    def run(self) -> None:
        """Search, and put on the path what the path of all rows is matched with."""
        self.find()
        if self.goal.refit and self.best is not None and self.goal.curve:
            self.record_walk(self.best.run)

    def penalties_found(self) -> tuple[tuple[tuple[float, float], ...], tuple[float, ...]]:
        """Return the penalties to visit briefly, with their ridges, and those to visit thoroughly, to find `best`."""
        assert self.best is not None
        thorough = sorted({float(visit.penalty) for visit in self.thorough if visit.run == self.best.run}, reverse=True)
        ridges = {float(visit.penalty): visit.run.ridge for visit in self.way if not self.best.run.kept}
        brief = [(penalty, ridges.get(penalty, self.best.run.ridge)) for penalty in self.penalties.tolist()]
        brief = [(penalty, ridge) for penalty, ridge in brief if penalty > thorough[0]]
        return tuple(brief) or ((2.0 * thorough[0], self.best.run.ridge),), tuple(thorough)

    def record_walk(self, run: RunSettings) -> None:
        """Put the walk to the pruning that was found on the path, to which the path of all rows is matched."""
        way = [(penalty, run.ridge) for penalty in self.penalties.tolist()]
        if not self.fills_budget:
            way = list(self.penalties_found()[0])

        def walk(fold: FoldSearch) -> None:
            fold.use(run).start_empty()
            for penalty, ridge in way:
                fold.descent.set_ridge(ridge)
                fold.descent.step(penalty)
                fold.record(penalty, run, brief=True)
                if self.fills_budget and fold.n_nodes() > (self.goal.max_nodes or 0):
                    return

        self.each_fold(walk)

    def forget(self) -> None:
        """Free all states after the search; the points on the path stay."""
        for fold in self.folds:
            fold.forget()
        for visit in [*self.thorough, *([self.best] if self.best else [])]:
            visit.states = []

    def each_fold(self, function: Callable[[FoldSearch], T]) -> list[T]:
        """Return the result of a function for each fold; folds run side by side in threads."""
        return in_threads(function, self.folds, self.folds[0].problem.n_jobs)

    def _mean(self, of_folds: list[float]) -> float:
        return float(np.dot(self.fold_weight, of_folds))

    def _pooled(self, errors: Sequence[float]) -> float:
        return float(np.sqrt(np.dot(np.square(self.fold_weight), np.square(errors))))

    def losses(self, visit: Visit) -> list[Floats]:
        """Return the loss of a visit on each validation row of each fold, and return to it."""
        self.return_to(visit)
        return self.each_fold(lambda fold: fold.losses(visit.run, promised=True))

    def is_clearly_lower(self, losses: list[Floats], others: list[Floats]) -> bool:
        """Return whether the mean loss is lower by more than the standard error of the difference."""
        means, errors = zip(
            *(fold.mean(a - b) for fold, a, b in zip(self.folds, losses, others, strict=True)), strict=True
        )
        return self._mean(list(means)) + self._pooled(errors) < 0

    def visit(self, penalty: float, run: RunSettings, *, thorough: bool = False) -> Visit:
        """Descend at one penalty on all folds, from their current states, and evaluate the result."""
        self.each_fold(lambda fold: fold.advance(penalty, run, SWEEPS_AT_GOAL if thorough else 0))
        visit = self.evaluate(penalty, run, brief=not thorough, promised=thorough)
        if thorough:
            self.thorough.append(visit)
        return visit

    def evaluate(self, penalty: float, run: RunSettings, *, brief: bool = False, promised: bool = True) -> Visit:
        """Evaluate the current states on the validation rows and put them on the path."""
        losses, errors, states = zip(
            *self.each_fold(lambda fold: fold.evaluate(penalty, run, brief=brief, promised=promised)), strict=True
        )
        self.report()
        error = self._pooled(errors)
        n_nodes = float(np.mean([fold.n_nodes() for fold in self.folds]))
        return Visit(penalty, run, n_nodes, self._mean(list(losses)), error, list(states))

    def return_to(self, visit: Visit) -> None:
        """Let the states of all folds be those of an earlier visit."""
        for fold, state in zip(self.folds, visit.states, strict=True):
            fold.use(visit.run).state = state.copy()

    def repeat(self, visits: list[Visit]) -> None:
        """Restore the states of the last of some visits, by walking there again if they are no longer stored."""
        if visits[-1].states:
            return
        for fold in self.folds:
            fold.use(visits[0].run).start_empty()
            for visit in visits:
                fold.use(visit.run).step(visit.penalty)
            visits[-1].states.append(fold.descent.state.copy())

    def report(self) -> None:
        progress, total = self.folds[0].problem.progress, 2 * len(self.penalties)
        self._n_visits += 1
        if progress is not None:
            progress(min(self._n_visits, total), total, "pruning")

    def is_large(self, n_nodes: float) -> bool:
        """Return whether a model has so many nodes per output that its loss varies smoothly with the ridge."""
        return n_nodes >= _LARGE * self.n_outputs

    def upper(self, visit: Visit) -> float:
        """Return the loss of a visit plus the guard."""
        return float(self.guard.upper(visit.loss, visit.error, abs(self.unpruned)))

    def walk(
        self, visits: list[Visit], k: int, ridge: int, budget: float = np.inf, n_ridges: int | None = None
    ) -> tuple[list[Visit], int, int, bool]:
        """Walk from penalty `k` on until the loss is near its bound or the budget exceeded, or neither will be.

        Every few penalties, the next larger ridge is tried at the last two. It replaces the current one if its loss is
        lower than that of the walk at the same size; otherwise the next trial is later. Only the first `n_ridges` are.

        Returns
        -------
        visits : list of Visit
        k, ridge : int
            Indices of the last penalty and of the last of `runs`.
        near : bool
            Whether the loss is near the bound or the budget exceeded.
        """

        def is_near(visit: Visit) -> bool:
            return self.upper(visit) <= self.bound + NEAR * abs(self.unpruned) or visit.n_nodes > budget

        for fold in self.folds:
            fold.descent.start_falling()
        wait, due = _RIDGE_EVERY, k
        n_ridges = len(self.ridges) if n_ridges is None else n_ridges
        n_penalties = self.n_regular if self.bound == -np.inf and budget == np.inf else len(self.penalties)
        while k < n_penalties:
            visits.append(self.visit(self.penalties[k], self.runs[ridge]))
            for visit in visits[:-_TRAIL]:
                visit.states = []
            near, lost = is_near(visits[-1]), budget == np.inf and self.hopeless(visits, k)
            large = len(visits) > 2 and self.is_large(visits[-1].n_nodes)
            if ridge + 1 < n_ridges and large and (near or lost or k >= due):
                tried = self.try_ridge(visits, self.runs[ridge + 1])
                wait = _RIDGE_EVERY if tried else min(2 * wait, _RIDGE_SELDOM)
                due = k + wait
                if tried:
                    visits[-2:] = tried
                    ridge, lost, near = ridge + 1, False, is_near(visits[-1])
            if near or lost:
                return visits, k, ridge, near
            k += 1
        return visits, k - 1, ridge, False

    def try_ridge(self, visits: list[Visit], run: RunSettings) -> list[Visit]:
        """Repeat the last two visits with another ridge; return them if that is better, otherwise go back."""
        self.return_to(visits[-3])
        tried = [self.visit(visit.penalty, run) for visit in visits[-2:]]
        size, loss = np.log([visit.n_nodes for visit in visits]), np.array([self.upper(visit) for visit in visits])
        order = np.argsort(size, kind="stable")
        if self.upper(tried[1]) < np.interp(np.log(tried[1].n_nodes), size[order], loss[order]):
            return tried
        self.return_to(visits[-1])
        return []

    def hopeless(self, visits: list[Visit], k: int) -> bool:
        """Return whether the loss has stopped falling, or falls too slowly to reach the bound."""
        loss = [self.upper(visit) for visit in visits]
        if len(visits) < 4 or visits[-4].n_nodes < 20 * self.n_outputs or loss[-1] > 1.5 * self.unpruned:
            return False
        if self.bound == -np.inf:
            before, last = loss[:-_PATIENCE], loss[-_PATIENCE:]
            return len(before) > 0 and min(last) > min(before) * (1 - 2e-3)
        if min(loss[-3:]) >= min(loss[:-3]):
            return True
        if loss[-1] > 1.1 * self.unpruned:
            return False
        per_penalty = (loss[-4] - loss[-1]) / 3
        is_close = loss[-1] <= self.bound + _CLOSE * abs(self.unpruned)
        n_left = (len(self.penalties) if is_close else self.n_regular) - 1 - k
        return loss[-1] - self.bound > per_penalty * n_left


def _from_first_entry(descent: AnyDescent, budget: int) -> NDArray[np.float64]:
    """Return the penalties from the last one at which no tree enters the empty ensemble, in decreasing order."""
    penalties = descent.penalties_below(budget)
    state = descent.state.copy()
    descent.step(penalties[0])
    largest = descent.entry().max(initial=0.0)
    descent.state = state if descent.used().any() else descent.state
    n_above = int(np.count_nonzero(penalties > largest))
    return penalties[max(n_above - 1, 0) :]
