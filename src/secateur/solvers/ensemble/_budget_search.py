"""Search for the pruning with the lowest validation loss within a budget of nodes."""

from typing import final

import numpy as np

from secateur.solvers.ensemble._fold_search import KEPT, FoldSearch, RunSettings
from secateur.solvers.ensemble._goal_search import BISECTIONS, MANY_KEPT, SWEEPS_AT_GOAL, GoalSearch, Visit
from secateur.solvers.ensemble._ridge_averaging import average_ridges
from secateur.solvers.ensemble.mean_of_trees import OVERSHOOT

_MANY, _BRANCH = 16, 4
"""Number of outputs from which other ridges branch off the walk, and how many states before its end they do."""


@final
class BudgetSearch(GoalSearch):
    """Search for the pruning that uses up a budget of nodes; all ridges branch off one walk shortly before it.

    If the pruning is computed again on all rows, the ridges are averaged by their likelihood. Otherwise the ridge with
    the lowest validation loss is used.
    """

    fills_budget = True

    def find(self) -> None:
        """Set `best`, unless no pruning meets the goal."""
        assert self.goal.max_nodes is not None
        if self.goal.refit:
            self._find_settings(self.goal.max_nodes)
        else:
            self._find_pruning(self.goal.max_nodes)
        self.thorough = [self.best] if self.best else []

    def _find_settings(self, budget: int) -> None:
        """Find the ridge for a budget that is used up on all rows later."""
        first = RunSettings(self.ridges[self.first_ridge]) if self.ridges else KEPT
        self._walk_to_budget(first, budget)
        candidates = self._candidates(first, budget)
        run = min(candidates, key=lambda run: candidates[run].loss)
        if self.ridges and min(self.ridges) > 0:
            n_rows = sum(fold.rows.total_weight for fold in self.folds)
            ridge = average_ridges({run: visit.loss for run, visit in candidates.items()}, n_rows)
            run = KEPT if ridge is None else RunSettings(ridge)
        self.best = candidates.get(run) or self._at_budget(run, budget, first)

    def _find_pruning(self, budget: int) -> None:
        """Find the pruning within the budget with the lowest loss, at the budget or on the way."""
        first = RunSettings(self.ridges[self.first_ridge]) if self.ridges else KEPT
        visits: list[Visit] = []
        if self.turns_back or first.kept:
            self._walk_to_budget(first, budget)
        else:
            visits, _, last, _ = self.walk([], 0, self.first_ridge, budget)
            first = RunSettings(self.ridges[last])
            for number, fold in enumerate(self.folds):
                trail = [(visit.penalty, visit.states[number]) for visit in visits if visit.states]
                # A run from the empty model on is better than one that branches off, but many outputs take long.
                fold.descent.trail = [fold.empty, *trail][-_BRANCH if self.n_outputs >= _MANY else 0 :]
        candidates = self._candidates(first, budget)
        run = min(candidates, key=lambda run: candidates[run].loss)
        self.best = candidates[run]
        for fold in self.folds:
            descent = fold.use(run)
            for penalty, _ in descent.meet(budget, *descent.bracket(budget, self._back(run, first, fold))):
                self.best = self.evaluate(penalty, run)
        within = [visit for visit in visits if visit.n_nodes <= budget]
        if len(within) > 1 and min(visit.loss for visit in within) < self.best.loss:
            self._try_lowest(within, self.best)

    def _candidates(self, first: RunSettings, budget: int) -> dict[RunSettings, Visit]:
        """Return the largest pruning within the budget for some ridges, and for original values if many nodes stay.

        From the ridge of the walk, larger ones are tried as long as the loss decreases, otherwise smaller ones. For
        small models the loss depends on the ridge irregularly, and all ridges are tried.
        """
        found = {first: self._at_budget(first, budget, first)}
        if self.keep and not first.kept and budget > MANY_KEPT * self.n_unpruned:
            self._walk_to_budget(KEPT, budget)
            found[KEPT] = self._at_budget(KEPT, budget, first)
        if first.kept:
            return found
        place = list(self.ridges).index(first.ridge)
        for ridges in (self.ridges[place + 1 :], self.ridges[:place][::-1]):
            lowest = found[first].loss
            for run in map(RunSettings, ridges):
                found[run] = self._at_budget(run, budget, first)
                if self.is_large(budget) and found[run].loss >= lowest:
                    break
                lowest = min(lowest, found[run].loss)
            if self.is_large(budget) and lowest < found[first].loss:
                break
        return found

    def _back(self, run: RunSettings, first: RunSettings, fold: FoldSearch) -> int:
        """Return how many penalties before the budget a run branches off the walk."""
        return 1 if run in (first, KEPT) else len(fold.descent.trail) - 1

    def _walk_to_budget(self, run: RunSettings, budget: int) -> None:
        """Walk on each fold until its budget is exceeded; a mean of trees then returns to it from above."""

        def walk(fold: FoldSearch) -> None:
            for penalty, _ in fold.use(run).walk(OVERSHOOT * budget if self.turns_back else budget):
                if fold.n_nodes() <= budget:
                    fold.record(penalty, run, brief=True)
                self.report()

        self.each_fold(walk)

    def _try_lowest(self, visits: list[Visit], full: Visit) -> None:
        """Descend thoroughly at the penalty with the lowest loss, and use the result if it is clearly better.

        It is if its loss is lower than that of the full budget by more than the standard error of the difference.
        """
        before = self.losses(full)
        lowest = max(int(np.argmin([visit.loss for visit in visits])), 1)
        self.repeat(visits[:lowest])
        self.return_to(visits[lowest - 1])
        penalty, run = visits[lowest].penalty, visits[lowest].run
        self.each_fold(lambda fold: fold.advance(penalty, run, SWEEPS_AT_GOAL))
        after = self.each_fold(lambda fold: fold.losses(run, promised=True))
        if self.is_clearly_lower(after, before):
            self.best = self.evaluate(penalty, run)

    def _at_budget(self, run: RunSettings, budget: int, first: RunSettings) -> Visit:
        """Evaluate the largest pruning within the budget that a few bisections of the penalty find."""

        def meet(fold: FoldSearch) -> float:
            descent = fold.use(run)
            (penalty, descent.state), _ = descent.bisect(
                budget, *descent.bracket(budget, self._back(run, first, fold)), BISECTIONS, brief=True
            )
            return float(penalty)

        return self.evaluate(self.each_fold(meet)[-1], run)
