"""Search for one pruning by block descent, instead of computing the whole path.

A walk along decreasing penalties ends soon after the goal is met: a budget of nodes, a bound on the validation loss, or
the lowest validation loss. On the way it descends briefly; only near the goal it descends until it converges. Larger
ridges branch off the walk and replace it where their validation loss is lower. With several folds, all of them are
visited at the same penalty, and their mean loss decides.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from secateur._util.threads import in_threads
from secateur.solvers.ensemble._fold_search import KEPT, AnyDescent, FoldSearch, MakeDescent, RunSettings
from secateur.solvers.ensemble._ridge_averaging import average_ridges
from secateur.solvers.ensemble.mean_of_trees import OVERSHOOT
from secateur.solvers.goal import FoldProblem, Goal

T = TypeVar("T")

_SWEEPS_AT_GOAL = 6
"""Largest number of sweeps at a penalty near the goal."""
_NEAR = 0.02
"""The walk ends when the loss exceeds its bound by at most this fraction of the unpruned loss."""
_RIDGE_EVERY = 3
"""Number of penalties after which the next larger ridge is tried."""
_PATIENCE = 5
"""Number of penalties without a lower loss after which the search for the lowest loss ends."""
_SLACK = 0.01
"""Without limits, the smallest pruning whose loss is within this fraction of the lowest is selected."""
_MANY_KEPT = 0.1
"""Fraction of kept nodes above which prunings with original leaf values are tried, too."""
_BISECTIONS = 2
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


class GoalSearch:
    """Search for the pruning that meets a goal.

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
    best : Visit, optional
        The pruning found.
    thorough : list of Visit
        The visits near the goal, at whose penalties the path of all rows has points.
    """

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
        first = RunSettings(ridges[0]) if ridges else KEPT
        n_jobs = folds[0].problem.n_jobs
        self.folds = in_threads(lambda fold: FoldSearch(fold, make, first, free=free), folds, n_jobs)
        descent = self.folds[0].descent
        # Larger models need larger ridges: the walk begins with the second smallest and never returns to it.
        self.first_ridge = min(1, len(ridges) - 1)
        self.penalties = _from_first_entry(descent, goal.max_nodes if self.fills_budget else None)
        self.turns_back = descent.turns_back
        weight = np.array([fold.rows.total_weight for fold in self.folds])
        self.fold_weight = (weight / weight.sum()).tolist()
        self.unpruned = self._mean([float(fold.weight @ fold.unpruned) for fold in self.folds])
        self.n_unpruned = float(np.mean([fold.problem.forest.n_nodes for fold in self.folds]))
        self.n_outputs = self.folds[0].problem.forest.n_outputs
        self.bound, self.guard = -np.inf, 0.0
        self.best: Visit | None = None
        self.thorough: list[Visit] = []
        self._n_visits = 0

    def run(self) -> None:
        """Search; afterwards `best` is set, unless no pruning meets the goal."""
        if self.goal.max_loss_increase is not None:
            self.bound = self.unpruned + self.goal.max_loss_increase * abs(self.unpruned)
            self.guard = self.goal.guard
            self._meet_loss()
        elif self.goal.max_nodes is not None:
            self._meet_nodes(self.goal.max_nodes)
        else:
            self._find_lowest()
        if self.goal.refit and self.best is not None and (self.goal.curve or self.fills_budget):
            self._record_walk(self.best.run)

    def penalties_found(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Return the penalties to visit briefly and those to visit thoroughly, to find `best` on other rows."""
        assert self.best is not None
        thorough = sorted({visit.penalty for visit in self.thorough if visit.run == self.best.run}, reverse=True)
        return tuple(penalty for penalty in self.penalties.tolist() if penalty > thorough[0]), tuple(thorough)

    def _record_walk(self, run: RunSettings) -> None:
        """Put the walk with the settings of the pruning found on the path, to which the path of all rows is matched."""
        penalties = self.penalties.tolist() if self.fills_budget else self.penalties_found()[0]

        def walk(fold: FoldSearch) -> None:
            descent = fold.use(run)
            descent.start_empty()
            for penalty in penalties:
                descent.step(penalty)
                fold.record(penalty, run, brief=True)
                if self.fills_budget and fold.n_nodes() > (self.goal.max_nodes or 0):
                    return

        self._each_fold(walk)

    @property
    def fills_budget(self) -> bool:
        """Whether the goal is to use up a budget of nodes."""
        return self.goal.max_nodes is not None and self.goal.max_loss_increase is None

    def forget(self) -> None:
        """Free all states after the search; the points on the path stay."""
        for fold in self.folds:
            fold.forget()
        for visit in [*self.thorough, *([self.best] if self.best else [])]:
            visit.states = []

    # Visits.

    def _each_fold(self, function: Callable[[FoldSearch], T]) -> list[T]:
        """Return the result of a function for each fold; folds run side by side in threads."""
        return in_threads(function, self.folds, self.folds[0].problem.n_jobs)

    def _mean(self, of_folds: list[float]) -> float:
        return float(np.dot(self.fold_weight, of_folds))

    def _visit(self, penalty: float, run: RunSettings, *, thorough: bool = False) -> Visit:
        """Descend at one penalty on all folds, from their current states, and evaluate the result."""
        self._each_fold(lambda fold: fold.advance(penalty, run, _SWEEPS_AT_GOAL if thorough else 0))
        visit = self._evaluate(penalty, run, brief=self.goal.refit and not thorough, promised=thorough)
        if thorough:
            self.thorough.append(visit)
        return visit

    def _evaluate(self, penalty: float, run: RunSettings, *, brief: bool = False, promised: bool = True) -> Visit:
        """Evaluate the current states on the validation rows and put them on the path."""
        losses, errors, states = zip(
            *self._each_fold(lambda fold: fold.evaluate(penalty, run, brief=brief, promised=promised)), strict=True
        )
        self._report()
        error = float(np.sqrt(np.dot(np.square(self.fold_weight), np.square(errors))))
        n_nodes = float(np.mean([fold.n_nodes() for fold in self.folds]))
        return Visit(penalty, run, n_nodes, self._mean(list(losses)), error, list(states))

    def _return_to(self, visit: Visit) -> None:
        """Let the states of all folds be those of an earlier visit."""
        for fold, state in zip(self.folds, visit.states, strict=True):
            fold.use(visit.run).state = state.copy()

    def _repeat(self, visits: list[Visit]) -> None:
        """Restore the states of the last of some visits, by walking there again if they are no longer stored."""
        if visits[-1].states:
            return
        for fold in self.folds:
            fold.use(visits[0].run).start_empty()
            for visit in visits:
                fold.use(visit.run).step(visit.penalty)
            visits[-1].states.append(fold.descent.state.copy())

    def _report(self) -> None:
        progress, total = self.folds[0].problem.progress, 2 * len(self.penalties)
        self._n_visits += 1
        if progress is not None:
            progress(min(self._n_visits, total), total, "pruning")

    def _upper(self, visit: Visit) -> float:
        """Return the loss of a visit plus the guard."""
        return visit.loss + self.guard * visit.error

    # A bound on the loss.

    def _meet_loss(self) -> None:
        """Find the smallest pruning whose validation loss is within the bound."""
        if self.ridges:
            visits, k, ridge, near = self._walk([], 0, self.first_ridge)
            while near and len(visits) > 1:
                run, start = RunSettings(self.ridges[ridge]), len(self.thorough)
                self.best = self._shrink(k, run) if self.turns_back else self._approach(visits[-2], k, run)
                if self.best is not None or ridge + 1 == len(self.ridges):
                    break
                visits = self.thorough[start:] or visits
                self._return_to(visits[-1])
                k = min(k + len(self.thorough) - start, len(self.penalties) - 1)
                visits, k, ridge, near = self._walk(visits, k, ridge + 1)
        self._try_original()

    def _walk(
        self, visits: list[Visit], k: int, ridge: int, budget: float = np.inf
    ) -> tuple[list[Visit], int, int, bool]:
        """Walk from penalty `k` on until the loss is near its bound or the budget exceeded, or neither will be.

        Every few penalties, the next larger ridge is tried at the last two. It replaces the current one if its loss is
        lower than that of the walk at the same size.

        Returns
        -------
        visits : list of Visit
        k, ridge : int
            Indices of the last penalty and of the last ridge.
        near : bool
            Whether the loss is near the bound or the budget exceeded.
        """

        def is_near(visit: Visit) -> bool:
            return self._upper(visit) <= self.bound + _NEAR * abs(self.unpruned) or visit.n_nodes > budget

        while k < len(self.penalties):
            visits.append(self._visit(self.penalties[k], RunSettings(self.ridges[ridge])))
            if len(visits) > _TRAIL:
                visits[-_TRAIL - 1].states = []
            near, lost = is_near(visits[-1]), budget == np.inf and self._hopeless(visits, k)
            large = len(visits) > 2 and visits[-1].n_nodes >= 40 * self.n_outputs
            if ridge + 1 < len(self.ridges) and large and (near or lost or k % _RIDGE_EVERY == 0):
                tried = self._try_ridge(visits, RunSettings(self.ridges[ridge + 1]))
                if tried:
                    visits[-2:] = tried
                    ridge, lost, near = ridge + 1, False, is_near(visits[-1])
            if near or lost:
                return visits, k, ridge, near
            k += 1
        return visits, k - 1, ridge, False

    def _try_ridge(self, visits: list[Visit], run: RunSettings) -> list[Visit]:
        """Repeat the last two visits with another ridge; return them if that is better, otherwise go back."""
        self._return_to(visits[-3])
        tried = [self._visit(visit.penalty, run) for visit in visits[-2:]]
        size, loss = np.log([visit.n_nodes for visit in visits]), np.array([self._upper(visit) for visit in visits])
        order = np.argsort(size, kind="stable")
        if self._upper(tried[1]) < np.interp(np.log(tried[1].n_nodes), size[order], loss[order]):
            return tried
        self._return_to(visits[-1])
        return []

    def _hopeless(self, visits: list[Visit], k: int) -> bool:
        """Return whether the loss has stopped falling, or falls too slowly to reach the bound."""
        loss = [self._upper(visit) for visit in visits]
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
        return loss[-1] - self.bound > per_penalty * (len(self.penalties) - 1 - k)

    def _approach(self, before: Visit, k: int, run: RunSettings) -> Visit | None:
        """Descend thoroughly from a visit above the bound until the bound is met, then bisect the penalty."""
        self._return_to(before)
        visits: list[Visit] = []
        while not visits or self._upper(visits[-1]) > self.bound:
            if k == len(self.penalties) or self._hopeless(visits, k):
                return None
            before = visits[-1] if visits else before
            visits.append(self._visit(self.penalties[k], run, thorough=True))
            k += 1
        return self._bisect(before, visits[-1])

    def _bisect(self, outside: Visit, inside: Visit) -> Visit:
        """Return the smallest of some prunings within the bound at penalties between two visits.

        Each bisection starts from the visit at the larger penalty, or for a mean of trees from the other one.
        """
        best = inside
        for _ in range(_BISECTIONS):
            self._return_to(inside if self.turns_back else outside)
            visit = self._visit(float(np.sqrt(outside.penalty * inside.penalty)), inside.run, thorough=True)
            if self._upper(visit) > self.bound:
                outside = visit
            else:
                inside = visit
                best = min(best, visit, key=lambda one: one.n_nodes)
        return best

    def _shrink(self, k: int, run: RunSettings) -> Visit | None:
        """Go on until the bound is met, and then back to larger penalties until it no longer is.

        For means of trees, prunings on the way back are better: a tree that is there already carries its share.
        """
        visit = self._visit(self.penalties[k], run)
        steps = 2
        while steps > 0 and k + 1 < len(self.penalties):
            k += 1
            visit = self._visit(self.penalties[k], run)
            steps -= self._upper(visit) <= self.bound
        return self._rise(k, run)

    def _rise(self, k: int, run: RunSettings) -> Visit | None:
        """Visit larger and larger penalties until the bound is exceeded; return the smallest pruning within it."""
        best: Visit | None = None
        for fold in self.folds:
            fold.descent.start_rising()
        for penalty in self.penalties[k::-1]:
            visit = self._visit(float(penalty), run, thorough=True)
            if self._upper(visit) <= self.bound:
                best = visit
            elif best is not None:
                return self._bisect(visit, best)
            elif self._upper(visit) > self.bound + _NEAR * abs(self.unpruned):
                break
        return best

    def _try_original(self) -> None:
        """Look for a smaller pruning with original leaf values, from the unpruned model to larger penalties.

        It is only worth the time if a large part of the nodes stays anyway.
        """
        if not self.keep or (self.best is not None and self.best.n_nodes <= _MANY_KEPT * self.n_unpruned):
            return
        for fold in self.folds:
            fold.use(KEPT).start_full()
        start, found = len(self.thorough), None
        for k in range(len(self.penalties) - 1, -1, -2):
            visit = self._visit(self.penalties[k], KEPT, thorough=True)
            if self._upper(visit) > self.bound:
                if found is not None:
                    self._return_to(found)
                    between = self._visit(self.penalties[k + 1], KEPT, thorough=True)
                    found = between if self._upper(between) <= self.bound else found
                break
            found = visit
        if found is not None and (self.best is None or found.n_nodes < self.best.n_nodes):
            self.best = found
        else:
            del self.thorough[start:]

    # The lowest loss.

    def _find_lowest(self) -> None:
        """Find the smallest pruning whose loss is within one per cent of the lowest."""
        visits: list[Visit] = []
        if self.ridges:
            visits, k, ridge, _ = self._walk([], 0, self.first_ridge)
            lowest = min(self.unpruned, *(visit.loss for visit in visits))
            self.bound = lowest + _SLACK * abs(lowest)
            run = RunSettings(self.ridges[ridge])
            if self.turns_back:
                self.best = self._rise(k, run)
            else:
                good = next((i for i, visit in enumerate(visits) if visit.loss <= self.bound), None)
                if good is not None and good > 0:
                    self._repeat(visits[:good])
                    index = int(np.searchsorted(-self.penalties, -visits[good].penalty))
                    self.best = self._approach(visits[good - 1], index, visits[good].run)
        else:
            self.bound = self.unpruned + _SLACK * abs(self.unpruned)
        self._try_original()

    # A budget of nodes.

    def _meet_nodes(self, budget: int) -> None:
        """Find the pruning with the lowest loss that uses up a budget of nodes.

        All ridges branch off one walk shortly before the budget.
        """
        first = RunSettings(self.ridges[self.first_ridge]) if self.ridges else KEPT
        if self.goal.refit or self.turns_back or first.kept:
            self._walk_to_budget(first, budget)
        else:
            visits, _, last, over = self._walk([], 0, self.first_ridge, budget)
            first = RunSettings(self.ridges[last])
            for number, fold in enumerate(self.folds):
                trail = [(visit.penalty, visit.states[number]) for visit in visits if visit.states]
                fold.descent.trail = [fold.empty, *trail]
            if not over and len(visits) > 1:
                self._settle_at_lowest(visits)
                return
        runs = [first, *(RunSettings(ridge) for ridge in self.ridges if ridge != first.ridge)]
        if self.keep and not first.kept and budget > _MANY_KEPT * self.n_unpruned:
            runs.append(KEPT)
            self._walk_to_budget(KEPT, budget)
        candidates = {run: self._at_budget(run, budget, first) for run in runs}
        if self.goal.refit and first.ridge > 0 and min(self.ridges) > 0:
            n_rows = sum(len(fold.rows) for fold in self.folds)
            ridge = average_ridges({run: visit.loss for run, visit in candidates.items()}, n_rows)
            run = KEPT if ridge is None else RunSettings(ridge)
            self.best = candidates.get(run) or self._at_budget(run, budget, first)
        else:
            run = min(candidates, key=lambda run: candidates[run].loss)
            self.best = candidates[run]
            for fold in () if self.goal.refit else self.folds:
                descent = fold.use(run)
                back = 1 if run in (first, KEPT) else len(descent.trail) - 1
                for penalty, _ in descent.meet(budget, *descent.bracket(budget, back)):
                    self.best = self._evaluate(penalty, run)
        self.thorough = [self.best] if self.best else []

    def _walk_to_budget(self, run: RunSettings, budget: int) -> None:
        """Walk on each fold until its budget is exceeded; a mean of trees then returns to it from above."""

        def walk(fold: FoldSearch) -> None:
            for penalty, _ in fold.use(run).walk(OVERSHOOT * budget if self.turns_back else budget):
                if fold.n_nodes() <= budget:
                    fold.record(penalty, run, brief=False)
                self._report()

        self._each_fold(walk)

    def _settle_at_lowest(self, visits: list[Visit]) -> None:
        """Descend thoroughly at the penalty with the lowest loss."""
        lowest = max(int(np.argmin([visit.loss for visit in visits])), 1)
        self._repeat(visits[:lowest])
        self._return_to(visits[lowest - 1])
        self.best = self._visit(visits[lowest].penalty, visits[lowest].run, thorough=True)

    def _at_budget(self, run: RunSettings, budget: int, first: RunSettings) -> Visit:
        """Evaluate the largest pruning within the budget that a few bisections of the penalty find."""

        def meet(fold: FoldSearch) -> float:
            descent = fold.use(run)
            back = 1 if run in (first, KEPT) else len(descent.trail) - 1
            (penalty, descent.state), _ = descent.bisect(
                budget, *descent.bracket(budget, back), _BISECTIONS, brief=True
            )
            return float(penalty)

        return self._evaluate(self._each_fold(meet)[-1], run)


def _from_first_entry(descent: AnyDescent, budget: int | None) -> NDArray[np.float64]:
    """Return the penalties from the last one at which no tree enters the empty ensemble, in decreasing order."""
    penalties = descent.penalties() if budget is None else descent.penalties_below(budget)
    state = descent.state.copy()
    descent.step(penalties[0])
    largest = descent.entry().max(initial=0.0)
    descent.state = state if descent.used().any() else descent.state
    n_above = int(np.count_nonzero(penalties > largest))
    return penalties[max(n_above - 1, 0) :]
