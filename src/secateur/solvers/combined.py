"""Combine the paths of several solvers into one path, from which validation rows select a point."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from secateur.costs import Cost
from secateur.forest import Forest
from secateur.losses import Loss
from secateur.path import Path
from secateur.path.combine import join_paths
from secateur.path.rules import evenly_spaced
from secateur.problem import Problem
from secateur.solvers.base import Solver

Floats = NDArray[np.float64]
_OF_EACH = 100
"""Maximum number of points taken from each solver's path."""


@final
@dataclass(frozen=True, repr=False)
class Several(Solver):
    """Run several solvers on the same problem and merge their paths; the column `origin` names each point's solver.

    The column `risk` is the loss of the whole ensemble at every point. If a solver evaluates trees individually, its
    own risk is in the column `tree_risk`, and its bounds refer to that column.
    """

    solvers: tuple[Solver, ...]

    name = "several"
    uses_ensemble_loss = True  # points of different solvers are compared by the ensemble's loss

    @property
    def free_values(self) -> bool:
        """Whether values of one of the solvers may leave the range of the model's predictions."""
        return any(solver.free_values for solver in self.solvers)

    @property
    def changes(self) -> tuple[str, ...]:
        """Parameters changed by at least one of the solvers."""
        return tuple(dict.fromkeys(what for solver in self.solvers for what in solver.changes))

    def default_loss(self, forest: Forest) -> Loss | None:
        """Return the first default loss among the solvers, or None."""
        return next((loss for loss in (one.default_loss(forest) for one in self.solvers) if loss), None)

    def default_cost(self) -> Cost | None:
        """Return the first default cost among the solvers, or None."""
        return next((cost for cost in (one.default_cost() for one in self.solvers) if cost), None)

    def with_budget(
        self, *, max_nodes: int | None = None, max_trees: int | None = None, max_cost: float | None = None
    ) -> "Several":
        """Return the combination of all solvers, each with the budget set."""
        aims = {"max_nodes": max_nodes, "max_trees": max_trees, "max_cost": max_cost}
        return Several(tuple(solver.with_budget(**aims) for solver in self.solvers))  # type: ignore[arg-type]

    def unsupported(self, problem: Problem) -> str | None:
        """Return the first reason given by any of the solvers, or None."""
        return next((reason for reason in (one.unsupported(problem) for one in self.solvers) if reason), None)

    def path(self, problem: Problem) -> Path:
        """Return the unpruned forest and the points of all solvers, sorted by decreasing cost."""
        paths = [_thinned(path) for path in [solver.path(problem) for solver in self.solvers]]
        names = ["" if "origin" in path.table else one.name for one, path in zip(self.solvers, paths, strict=True)]
        joined = join_paths(paths, names)
        bounded = any("bound" in path.table for path in paths)
        more: dict[str, NDArray[Any]] = {"bound": joined.column("bound")} if bounded else {}
        more["origin"] = np.array(["", *joined.table["origin"][1:]])
        # A risk of single trees moves to `tree_risk`; `trace_path` computes the ensemble's risk instead of NaN.
        whole = np.array([path.info.is_ensemble_risk for path in paths])[joined.place[:, 0]]
        risk = np.where(whole, joined.column("risk"), np.nan)
        more["tree_risk"] = np.where(whole, np.nan, joined.column("risk"))
        values = [_values(paths[k], point) for k, point in joined.place]
        return joined.retrace(problem, repr(self), more=more, ensemble=True, risk=risk, values=values)


def _values(path: Path, point: int) -> Floats:
    """Return the values of the nodes kept at a point, (n_kept, width)."""
    if path.values is not None:
        return path.values[point]
    return path.forest.value[path.masks.keep(point)]


def _thinned(path: Path) -> Path:
    """Return at most `_OF_EACH` points: evenly spaced in cost, plus both ends of the largest drops in cost."""
    if len(path) <= _OF_EACH:
        return path
    cost = path.table["cost"]
    steps = np.argsort(np.diff(cost))[: _OF_EACH // 4]
    spread = evenly_spaced(cost, _OF_EACH // 2)
    return path.take(np.concatenate([spread, steps, steps + 1, [len(path) - 1]]))
