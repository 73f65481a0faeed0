"""Descend on the rows of one fold and evaluate the result on its validation rows."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from secateur.forest.subforest import kept_decision
from secateur.path.build import Point
from secateur.problem import Problem
from secateur.solvers.ensemble.additive_model import mean_loss
from secateur.solvers.ensemble.descent_path import RowDescent
from secateur.solvers.goal import FoldProblem
from secateur.solvers.keep_promises import Promises

Floats = NDArray[np.float64]
AnyDescent = RowDescent[Any]


class RunSettings(NamedTuple):
    """The settings of one run: a ridge for refitted leaf values, or `kept` for original ones."""

    ridge: float
    kept: bool = False

    @property
    def columns(self) -> dict[str, float]:
        """The entries of the run in the table of a path."""
        return {"ridge": self.ridge, "kept": float(self.kept)}


KEPT = RunSettings(0.0, kept=True)


MakeDescent = Callable[[Problem, RunSettings], AnyDescent]
"""Returns the descent of a run on a problem."""


class FoldSearch:
    """The descents on the rows of one fold, and the validation rows on which their states are evaluated.

    Attributes
    ----------
    problem : Problem
    rows : LocalRows
        The validation rows.
    weight : (n_rows,)
        Their weights, which sum to 1.
    descent : RowDescent
        The descent of the current run.
    empty : (float, state)
        The ensemble without trees, which is optimal at an infinite penalty.
    unpruned : (n_rows,)
        The loss of the unpruned model on each validation row.
    """

    def __init__(self, fold: FoldProblem, make: MakeDescent, first: RunSettings, *, free: bool) -> None:
        self.problem, self.rows, self._make = fold.problem, fold.validation_rows, make
        self.weight = self.rows.weight / self.rows.total_weight
        self.descent = self._first = make(self.problem, first)
        self._kept = self._first if first.kept else None
        self._promises = Promises(self.problem, free=free)
        self.empty = (np.inf, self.descent.state.copy())
        self.unpruned = self._losses_of(self.rows.scores(self.problem.forest))
        self._points: list[tuple[float, NDArray[np.uint8], Floats, dict[str, float], float]] = []

    def use(self, run: RunSettings) -> AnyDescent:
        """Switch to the descent of a run and return it; runs with different ridges share one descent."""
        if run.kept:
            self._kept = self._kept or self._make(self.problem, run)
            self.descent = self._kept
        else:
            self.descent = self._first
            self.descent.set_ridge(run.ridge)
        return self.descent

    def losses(self, run: RunSettings, *, promised: bool) -> Floats:
        """Return the loss of the current state on each validation row, (n_rows,).

        With `promised`, values that break a promise of the model are replaced, as they are in the pruned model.
        """
        descent, forest = self.descent, self.problem.forest
        # A mean of trees is valid by construction.
        if promised and not descent.turns_back:
            keep, value = descent.decide(descent.state)
            kept = self._promises.values(keep, value, original=run.kept)
            if kept is not value:
                return self._losses_of(self.rows.scores(forest, kept_decision(forest, keep, kept)))
        return self._losses_of(descent.predict(descent.state, self.rows))

    def _losses_of(self, raw: Floats) -> Floats:
        return np.nan_to_num(self.problem.loss.rows(self.problem.forest, raw, self.rows.y), nan=np.inf)

    def mean(self, of_rows: Floats) -> tuple[float, float]:
        """Return the mean over the validation rows and its standard error."""
        mean = self.weight @ of_rows
        return float(mean), float(np.sqrt(self.weight**2 @ (of_rows - mean) ** 2))

    def n_nodes(self) -> int:
        """Return the number of nodes of the current state."""
        return self.descent.size(self.descent.state)

    def advance(self, penalty: float, run: RunSettings, max_sweeps: int) -> None:
        """Descend at one penalty: briefly, then for at most `max_sweeps` sweeps."""
        descent = self.use(run)
        descent.step(penalty)
        if max_sweeps:
            descent.descend(penalty, screened=True, max_sweeps=max_sweeps)

    def evaluate(self, penalty: float, run: RunSettings, *, brief: bool, promised: bool) -> tuple[float, float, Any]:
        """Put the current state on the path; return its loss, the standard error of the increase, and a copy."""
        losses = self.losses(run, promised=promised)
        self.record(penalty, run, brief=brief)
        _, error = self.mean(losses - self.unpruned)
        return float(self.weight @ losses), error, self.descent.state.copy()

    def record(self, penalty: float, run: RunSettings, *, brief: bool) -> None:
        """Put the current state on the path; `brief` marks one on the way to the pruning that is searched for."""
        descent = self.descent
        keep, value = descent.decide(descent.state)
        more = {**run.columns, "brief": float(brief)}
        if descent.turns_back:
            more["rising"] = float(descent.rising)
        risk = mean_loss(descent.ensemble, self.problem, descent.raw(descent.state))
        self._points.append((penalty, np.packbits(keep), value, more, risk))

    def forget(self) -> None:
        """Free the descents, whose states are as large as the forest; the recorded points stay."""
        del self.descent, self._first, self._kept

    def points(self, run: RunSettings | None = None) -> Iterator[Point]:
        """Yield the recorded states, or only those of one run, as points of a path."""
        for penalty, bits, value, more, risk in self._points:
            if run is not None and run.columns.items() - more.items():
                continue
            keep = np.unpackbits(bits, count=self.problem.forest.n_nodes).astype(bool)
            yield Point(penalty, keep, value, more, risk)
