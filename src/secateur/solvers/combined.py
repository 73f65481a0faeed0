"""Combine the paths of several solvers into one path, from which validation rows select a point."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from secateur.costs import Cost
from secateur.forest import Forest
from secateur.forest.masks import PackedMasks
from secateur.losses import Loss
from secateur.path import Path
from secateur.path.build import trace_path
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
        paths = [solver.path(problem) for solver in self.solvers]
        return join(problem, [_thinned(path) for path in paths], [one.name for one in self.solvers], repr(self))


def join(problem: Problem, paths: list[Path], names: list[str], solver: str) -> Path:
    """Return one path with the points of several paths of the same forest, sorted by decreasing cost."""
    forest = problem.forest
    # Pairs (path, point) of all pruned points, sorted by decreasing cost, after the unpruned forest.
    chosen = [(k, point) for k, path in enumerate(paths) for point in range(1, len(path))]
    cost = [float(paths[k].table["cost"][point]) for k, point in chosen]
    chosen = [(0, 0), *(chosen[i] for i in np.argsort(-np.array(cost), kind="stable"))]

    def column(name: str) -> Floats:
        return np.array([paths[k].table[name][point] if name in paths[k].table else np.nan for k, point in chosen])

    more: dict[str, NDArray[Any]] = {"bound": column("bound")} if any("bound" in path.table for path in paths) else {}
    inner = [str(paths[k].table["origin"][point]) if "origin" in paths[k].table else "" for k, point in chosen]
    origin = [name or names[k] for (k, _), name in zip(chosen, inner, strict=True)]
    more["origin"] = np.array(["", *origin[1:]])
    # A risk that refers to single trees moves to `tree_risk`; `trace_path` computes the ensemble's risk instead of NaN.
    whole = [path.info.is_ensemble_risk for path in paths]
    risk = np.array([paths[k].table["risk"][point] if whole[k] else np.nan for k, point in chosen])
    more["tree_risk"] = np.array([np.nan if whole[k] else paths[k].table["risk"][point] for k, point in chosen])
    masks = PackedMasks(np.array([np.packbits(paths[k].masks.keep(point)) for k, point in chosen]), forest.n_nodes)
    values = [_values(paths[k], point) for k, point in chosen]
    joined = trace_path(
        problem,
        masks,
        column("penalty"),
        solver,
        more=more,
        ensemble=True,
        risk=risk,
        cost=column("cost"),
        values=values,
    )
    exact = next((path.info.exact for path in paths if path.info.exact is not None), None)
    return joined.with_info(exact=exact, runs=("origin",))


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
    grid = np.linspace(cost[0], cost[-1], _OF_EACH // 2)
    spread = np.searchsorted(-cost, -grid).clip(0, len(path) - 1)
    steps = np.argsort(np.diff(cost))[: _OF_EACH // 4]
    return path.take(np.unique(np.concatenate([spread, steps, steps + 1, [len(path) - 1]])))
