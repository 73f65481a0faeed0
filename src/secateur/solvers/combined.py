"""The points of several solvers on one path, for other rows to choose from."""

from dataclasses import dataclass, replace
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
"""How many points of a solver are taken at most."""


@final
@dataclass(frozen=True, repr=False)
class Several(Solver):
    """Ask several solvers the same question; the path has the points of all, and `origin` says where each comes from.

    The risk is the loss of the whole model at every point. Where a solver judges trees by themselves, its own risk is
    in the column `tree_risk`, to which its bounds belong.
    """

    solvers: tuple[Solver, ...]

    name = "several"

    @property
    def changes(self) -> tuple[str, ...]:
        """What any of them changes."""
        return tuple(dict.fromkeys(what for solver in self.solvers for what in solver.changes))

    @property
    def uses_ensemble_loss(self) -> bool:
        """Yes: that is how points of different solvers are compared."""
        return True

    def default_loss(self, forest: Forest) -> Loss | None:
        """Return the first that any of them has."""
        return next((loss for loss in (one.default_loss(forest) for one in self.solvers) if loss), None)

    def default_cost(self) -> Cost | None:
        """Return the first that any of them has."""
        return next((cost for cost in (one.default_cost() for one in self.solvers) if cost), None)

    def with_budget(
        self, *, max_nodes: int | None = None, max_trees: int | None = None, max_cost: float | None = None
    ) -> "Several":
        """Return the same, each with its budget."""
        aims = {"max_nodes": max_nodes, "max_trees": max_trees, "max_cost": max_cost}
        return Several(tuple(solver.with_budget(**aims) for solver in self.solvers))  # type: ignore[arg-type]

    def unsupported(self, problem: Problem) -> str | None:
        """Return the reason of the first that has one."""
        return next((reason for reason in (one.unsupported(problem) for one in self.solvers) if reason), None)

    def path(self, problem: Problem) -> Path:
        """Return the unpruned forest and the points of all solvers, the most expensive first."""
        paths = [solver.path(problem) for solver in self.solvers]
        return join(problem, [_thinned(path) for path in paths], [one.name for one in self.solvers], repr(self))


def join(problem: Problem, paths: list[Path], names: list[str], solver: str) -> Path:
    """Return one path with the points of several, which judge the same forest."""
    forest = problem.forest
    chosen = [(k, point) for k, path in enumerate(paths) for point in range(1, len(path))]
    cost = [float(paths[k].table["cost"][point]) for k, point in chosen]
    chosen = [(0, 0), *(chosen[i] for i in np.argsort(-np.array(cost), kind="stable"))]

    def column(name: str) -> Floats:
        return np.array([paths[k].table[name][point] if name in paths[k].table else np.nan for k, point in chosen])

    more: dict[str, NDArray[Any]] = {"bound": column("bound")} if any("bound" in path.table for path in paths) else {}
    told = [str(paths[k].table["origin"][point]) if "origin" in paths[k].table else "" for k, point in chosen]
    origin = [part or names[k] for (k, _), part in zip(chosen, told, strict=True)]
    more["origin"] = np.array(["", *origin[1:]])
    whole = [path.facts.get("judges") == "ensemble" for path in paths]
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
    facts = {name: fact for path in paths[::-1] for name, fact in path.facts.items() if name == "exact"}
    return replace(joined, facts={**joined.facts, **facts})


def _values(path: Path, point: int) -> Floats:
    """Return the values of the nodes a point keeps."""
    if path.values is not None:
        return path.values[point]
    return path.forest.value[path.masks.keep(point)]


def _thinned(path: Path) -> Path:
    """Return some of the points, spread evenly over the cost, those before the largest steps among them."""
    if len(path) <= _OF_EACH:
        return path
    cost = path.table["cost"]
    grid = np.linspace(cost[0], cost[-1], _OF_EACH // 2)
    spread = np.searchsorted(-cost, -grid).clip(0, len(path) - 1)
    steps = np.argsort(np.diff(cost))[: _OF_EACH // 4]
    return path.take(np.unique(np.concatenate([spread, steps, steps + 1, [len(path) - 1]])))
