"""Search for the smallest pruning within a bound on the validation loss, or with the lowest validation loss."""

from typing import final

import numpy as np

from secateur.solvers.ensemble._fold_search import KEPT, RunSettings
from secateur.solvers.ensemble._goal_search import BISECTIONS, MANY_KEPT, NEAR, GoalSearch, Visit

_SLACK = 0.01
"""Without limits, the smallest pruning whose loss is within this fraction of the lowest is selected."""
_SMALLEST = 1e-4
"""Prunings with original values are tried down to this multiple of the smallest penalty of a walk."""


@final
class LossSearch(GoalSearch):
    """Search for the smallest pruning whose validation loss is within a bound.

    Without a limit on the loss, the bound is one per cent above the lowest loss of a walk.
    """

    def find(self) -> None:
        """Set `best`, unless no pruning meets the goal."""
        if self.goal.max_loss_increase is None:
            self._find_lowest()
            return
        self.bound = self.unpruned + self.goal.max_loss_increase * abs(self.unpruned)
        self.guard = self.goal.guard
        self._meet_loss()

    def _meet_loss(self) -> None:
        """Find the smallest pruning whose validation loss is within the bound."""
        visits: list[Visit] = self._walk_to_bound([], 0, self.first_ridge) if self.ridges else []
        if self.best is None and self.first_ridge > 0 and visits[-1].run == self.runs[self.first_ridge]:
            # If no larger ridge is better, a smaller one may be: it branches off at one of the stored states.
            stored = [index for index, visit in enumerate(visits) if visit.states]
            visits = visits[: stored[min(1, len(stored) - 1)] + 1]
            self.return_to(visits[-1])
            after = int(np.searchsorted(-self.penalties, -visits[-1].penalty, side="right"))
            self._walk_to_bound(visits, after, 0, self.first_ridge)
        self._try_original()

    def _walk_to_bound(self, visits: list[Visit], k: int, ridge: int, n_ridges: int | None = None) -> list[Visit]:
        """Walk until the loss is near the bound, then approach it; go on with larger ridges if that fails.

        Only the first `n_ridges` are tried; by default all of them.

        Returns the walk, which begins with `visits`.
        """
        n_ridges = len(self.ridges) if n_ridges is None else n_ridges
        visits, k, ridge, near = self.walk(visits, k, ridge, n_ridges=n_ridges)
        while near:
            run, start = self.runs[ridge], len(self.thorough)
            before = visits[max(len(visits) - 2, 0)]
            self.best = self._shrink(k, run) if self.turns_back else self._approach(before, k, run)
            self.way = visits
            if self.best is not None or ridge + 1 >= n_ridges:
                break
            visits = self.thorough[start:] or visits
            self.return_to(visits[-1])
            k = min(k + len(self.thorough) - start, len(self.penalties) - 1)
            visits, k, ridge, near = self.walk(visits, k, ridge + 1, n_ridges=n_ridges)
        return visits

    def _find_lowest(self) -> None:
        """Find the smallest pruning whose loss is within one per cent of the lowest."""
        visits: list[Visit] = []
        if self.ridges:
            visits, k, ridge, _ = self.walk([], 0, self.first_ridge)
            lowest = min(self.unpruned, *(visit.loss for visit in visits))
            self.bound = lowest + _SLACK * abs(lowest)
            run, self.way = self.runs[ridge], visits
            if self.turns_back:
                self.best = self._rise(k, run)
            else:
                good = next((i for i, visit in enumerate(visits) if visit.loss <= self.bound), None)
                if good is not None and good > 0:
                    self.repeat(visits[:good])
                    index = int(np.searchsorted(-self.penalties, -visits[good].penalty))
                    self.best = self._approach(visits[good - 1], index, visits[good].run)
        else:
            self.bound = self.unpruned + _SLACK * abs(self.unpruned)
        self._try_original()

    def _approach(self, before: Visit, k: int, run: RunSettings) -> Visit | None:
        """Descend thoroughly from a visit above the bound until the bound is met, then bisect the penalty."""
        self.return_to(before)
        visits: list[Visit] = []
        while not visits or self.upper(visits[-1]) > self.bound:
            if k == len(self.penalties) or self.hopeless(visits, k):
                return None
            before = visits[-1] if visits else before
            visits.append(self.visit(self.penalties[k], run, thorough=True))
            k += 1
        return self._bisect(before, visits[-1])

    def _bisect(self, outside: Visit, inside: Visit) -> Visit:
        """Return the smallest of some prunings within the bound at penalties between two visits.

        Each bisection starts from the visit at the larger penalty, or for a mean of trees from the other one.
        """
        best = inside
        for _ in range(BISECTIONS):
            self.return_to(inside if self.turns_back else outside)
            visit = self.visit(float(np.sqrt(outside.penalty * inside.penalty)), inside.run, thorough=True)
            if self.upper(visit) > self.bound:
                outside = visit
            else:
                inside = visit
                best = min(best, visit, key=lambda one: one.n_nodes)
        return best

    def _shrink(self, k: int, run: RunSettings) -> Visit | None:
        """Go on until the bound is met, and then back to larger penalties until it no longer is.

        For means of trees, prunings on the way back are better: a tree that is there already carries its share.
        """
        visit = self.visit(self.penalties[k], run)
        steps = 2
        while steps > 0 and k + 1 < self.n_regular:
            k += 1
            visit = self.visit(self.penalties[k], run)
            steps -= self.upper(visit) <= self.bound
        return self._rise(k, run)

    def _rise(self, k: int, run: RunSettings) -> Visit | None:
        """Visit larger and larger penalties until the bound is exceeded; return the smallest pruning within it."""
        best: Visit | None = None
        for fold in self.folds:
            fold.descent.start_rising()
        for penalty in self.penalties[k::-1]:
            visit = self.visit(float(penalty), run, thorough=True)
            if self.upper(visit) <= self.bound:
                best = visit
            elif best is not None:
                return self._bisect(visit, best)
            elif self.upper(visit) > self.bound + NEAR * abs(self.unpruned):
                break
        return best

    def _try_original(self) -> None:
        """Look for a smaller pruning with original leaf values; it is only worth the time if many nodes stay anyway."""
        if not self.keep or (self.best is not None and self.best.n_nodes <= MANY_KEPT * self.n_unpruned):
            return
        refitted, start = self.best, len(self.thorough)
        self.best = self._prune_original()
        if self.best is None and refitted is None and not self.turns_back:
            # Prunings that grow from the empty model may be better than those that shrink from the unpruned one.
            for fold in self.folds:
                fold.use(KEPT).start_empty()
            self._walk_to_bound([], 0, len(self.ridges))
        elif self.best is None or (refitted is not None and self.best.n_nodes >= refitted.n_nodes):
            self.best = refitted
            del self.thorough[start:]

    def _prune_original(self) -> Visit | None:
        """Return the smallest pruning within the bound at penalties that rise from the unpruned model."""
        for fold in self.folds:
            fold.use(KEPT).start_full()
        found = None
        for k in range(self.n_regular - 1, -1, -2):
            visit = self.visit(self.penalties[k], KEPT, thorough=True)
            if self.upper(visit) > self.bound:
                if found is not None:
                    self.return_to(found)
                    between = self.visit(self.penalties[k + 1], KEPT, thorough=True)
                    found = between if self.upper(between) <= self.bound else found
                break
            found = visit
        penalty = smallest = float(self.penalties[self.n_regular - 1])
        while found is None and penalty > _SMALLEST * smallest:
            penalty /= 4.0
            for fold in self.folds:
                fold.use(KEPT).start_full()
            visit = self.visit(penalty, KEPT, thorough=True)
            found = visit if self.upper(visit) <= self.bound else None
        return found
