"""Feature cost where rows are in parts: each part cuts for itself, and profits move between parts until they agree."""

from dataclasses import dataclass, replace
from typing import Literal, final

import numpy as np

from secateur.data.row_source import RowSource
from secateur.data.rows import in_parts
from secateur.path import Path
from secateur.problem import Problem
from secateur.solvers.base import check_choices
from secateur.solvers.feature_cost._base import FeatureSolver
from secateur.solvers.feature_cost._consensus import Search
from secateur.solvers.feature_cost._partition_closure import forget
from secateur.solvers.feature_cost._partition_integers import count_in_parts
from secateur.solvers.feature_cost.primal_dual import nested_path
from secateur.solvers.penalty_grid import check_penalties, falling


@final
@dataclass(frozen=True, repr=False)
class PartitionCut(FeatureSolver):
    """Cut each part of the rows by itself, with profits moved between parts until they agree on what stays.

    It minimises at every penalty of a falling sequence, over all prunings of all trees,

        1/trees Σ_trees wrong labels of the tree + penalty · average price of the distinct features of a row

    as MinCut does, but rows stay where they are: in files, in a cluster, in parts of any size and number. Every part
    has a copy of the splits its rows come to. A split's profit, the errors it saves, is the sum of what it saves in
    the parts, and every part knows what its own rows buy. So the parts' best closures, exact minimum cuts in whole
    numbers, are together worth no less than the best pruning. Whatever is taken off a split's profit in one part and
    given to it in another leaves that true: Polyak's steps, with momentum, move profits until parts agree.
    Splits that many parts want, for several values of many, are prunings whose price the next pass tells. A pass is
    one question to all parts, and one bit and one number for every split and part.

    No pruning at all has an objective below the column `bound`; `gap` is by how much the objective is above. Points
    are made nested in the end, as in PrimalDual.

    Parameters
    ----------
    penalties : int or tuple of float
        How many, from one that is sure to leave no split that costs anything down to `smallest` times that; or which.
    smallest : float
    passes : int
        Questions to all parts at each penalty, at most.
    tolerance : float
        The gap to stop at, as a share of the objective.
    parts : int
        How many parts to make of rows that are in memory in one piece.
    errors, class_weight
        As in MinCut.
    """

    penalties: int | tuple[float, ...] = 20
    smallest: float = 1e-2
    passes: int = 30
    tolerance: float = 1e-3
    parts: int = 4
    errors: Literal["holdout", "train"] = "holdout"
    class_weight: Literal["balanced"] | tuple[float, ...] | None = None

    name = "partition_cut"

    def __post_init__(self) -> None:
        check_penalties(self.penalties, self.smallest)
        check_choices(self, errors=("holdout", "train"))
        for name in ("passes", "parts"):
            if not getattr(self, name) >= 1:
                raise ValueError(f"{name}={getattr(self, name)!r}; it must be at least 1. Correct it.")
        if not 0 <= self.tolerance < 1:
            raise ValueError(f"tolerance={self.tolerance!r}; it must be at least 0 and below 1. Try 1e-3.")

    @property
    def needs_rows(self) -> bool:
        """No: parts answer for their rows."""
        return False

    @property
    def many_passes(self) -> bool:
        """Yes: once in every pass."""
        return True

    def unsupported(self, problem: Problem) -> str | None:
        """Return a reason for what MinCut cannot take either, and for prices by row where rows have no number."""
        if problem.row_source.is_remote and getattr(problem.cost, "row_prices", None) is not None:
            return (
                "row_prices has a price for every row, and these rows are in parts that do not know their numbers. "
                "Use prices by feature, or bring the rows together."
            )
        return super().unsupported(problem)

    def path(self, problem: Problem) -> Path:
        """Return the unpruned forest and the pruning found at each penalty."""
        row_source = problem.row_source if problem.row_source.is_remote else in_parts(problem.sample, self.parts)
        try:
            return self._path(problem, row_source)
        finally:
            forget()

    def _path(self, problem: Problem, row_source: RowSource) -> Path:
        counted = count_in_parts(problem, row_source, self.errors, self.class_weight)
        search = Search(problem, row_source, counted, self.tolerance)
        unit = counted.judge.quantizer.unit / problem.forest.n_trees
        penalty = falling(self.penalties, unit * search.largest_penalty(), self.smallest)
        most, passes = search.run(penalty / unit, self.passes)
        splits = counted.splits
        path = nested_path(problem, counted.wrong, splits.group, search.stays(), penalty[::-1], repr(self))
        objective = path.table["risk"] + path.table["penalty"] * path.table["cost"]
        most = [search.factor * int(splits.profit.sum()), *most[::-1]]
        least = np.array([search.least(gain) for gain in most]) * (unit / problem.total_weight)
        bound = np.minimum(least * (1 - 1e-15), objective)
        more = {
            "objective": objective,
            "bound": bound,
            "gap": objective - bound,
            "passes": np.array([0, *passes[::-1]]),
        }
        return replace(path, table={**path.table, **more}, facts={**path.facts, "exact": counted.exact})
