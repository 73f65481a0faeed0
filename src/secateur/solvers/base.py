"""Define the interface of a solver: frozen hyper-parameters and their checks, `unsupported` and `path`."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from secateur.costs import Cost
from secateur.errors import InvalidInputError, UnsupportedProblemError
from secateur.forest import Forest
from secateur.losses import Loss, ZeroOne
from secateur.path import Path
from secateur.path.evaluation import match_by_cost, match_by_penalty
from secateur.problem import Problem
from secateur.solvers.goal import FoldProblem, Goal


class Solver(ABC):
    """Search the prunings of a forest. Subclasses are final frozen dataclasses of hyper-parameters, `repr=False`.

    The properties below are constants of most solvers, which override them by plain class attributes.
    """

    name: ClassVar[str]
    needs_unseen_rows: ClassVar[bool] = False
    """Whether this method needs rows the model was not trained on."""
    minimises_errors: ClassVar[bool] = False
    """Whether the method is defined by numbers of wrong labels, so that zero-one is its default loss of classifiers."""
    fills_budget: ClassVar[bool] = False
    """Whether points computed for a node budget exhaust it, so that the largest of each run is selected."""
    many_passes: ClassVar[bool] = False
    """Whether the solver makes many passes over remote rows, so that they should be persisted first."""

    @property
    def free_values(self) -> bool:
        """Whether values may leave the range of the model's predictions, by `values="free"`."""
        return getattr(self, "values", None) == "free"

    @property
    def keeps_leaves(self) -> bool:
        """Whether values are the original ones, up to the weights of trees and an intercept."""
        return False

    @property
    def supports_symmetric(self) -> bool:
        """Whether the solver prunes symmetric (oblivious) trees by whole levels or whole trees only."""
        return False

    @property
    def needs_rows(self) -> bool:
        """Whether the solver reads single rows, which are then collected; otherwise sums over rows are enough."""
        return True

    @property
    def changes(self) -> tuple[str, ...]:
        """Parameters changed besides the structure: "value", "tree_weight", "base". Some models cannot store these."""
        return ()

    @property
    def uses_ensemble_loss(self) -> bool:
        """Whether the risk is the loss of the whole ensemble instead of the mean of the single trees' losses."""
        return False

    def __repr__(self) -> str:
        """Return the class name and the hyper-parameters that differ from their defaults."""
        settings = [field for field in fields(self) if getattr(self, field.name) != field.default]  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(f'{s.name}={getattr(self, s.name)!r}' for s in settings)})"

    def default_loss(self, forest: Forest) -> Loss | None:
        """Return the solver's default loss, or None to use the default loss of the model."""
        return ZeroOne() if self.minimises_errors and forest.n_classes else None

    def default_cost(self) -> Cost | None:
        """Return the solver's default cost, or None to use the number of nodes."""
        return None

    def with_budget(
        self, *, max_nodes: int | None = None, max_trees: int | None = None, max_cost: float | None = None
    ) -> "Solver":
        """Return a solver whose path has points that exhaust the budget; `self` if it cannot target one."""
        return self

    def why_no_search(self, goal: Goal) -> str | None:
        """Return why this solver cannot `search` for a goal, None if it can."""
        return "this solver computes the whole path"

    def search(self, folds: Sequence[FoldProblem], goal: Goal) -> tuple["Solver | None", list[Path]]:
        """Search for the pruning that meets a goal, instead of computing the whole path.

        Returns
        -------
        solver : Solver, or None
            Its path on all rows has the pruning that was found; None if no pruning meets the goal.
        paths : list of Path
            For each fold, the unpruned forest and the prunings visited.
        """
        raise UnsupportedProblemError(f"{type(self).__name__} cannot search: {self.why_no_search(goal)}.")

    def match(self, path: Path, other: Path, *, same_size: bool = False) -> NDArray[np.intp]:
        """Return for each point of `path` the corresponding point of another path of this solver, (n_points,).

        With `same_size`, points of the same size correspond, if the solver can match by size. Points of several
        origins, of which only the costs are comparable, are matched by cost, others by penalty.
        """
        return match_by_cost(path, other) if "origin" in path.info.runs else match_by_penalty(path, other)

    @abstractmethod
    def unsupported(self, problem: Problem) -> str | None:
        """Return the reason why this solver cannot handle the problem, or None if it can."""

    @abstractmethod
    def path(self, problem: Problem) -> Path:
        """Return the path of prunings, from the unpruned forest to the most pruned one."""


def check_choices(solver: Solver, **known: tuple[str | None, ...]) -> None:
    """Raise an error if a hyper-parameter is not among its known choices."""
    for name, choices in known.items():
        if getattr(solver, name) not in choices:
            raise InvalidInputError(
                f"{name}={getattr(solver, name)!r} is unknown; known are {', '.join(map(repr, choices))}. "
                "Use one of these."
            )


def check_at_least(solver: Solver, **minimum: float) -> None:
    """Raise InvalidInputError if a hyper-parameter is below its minimum or NaN; None is valid."""
    for name, least in minimum.items():
        value = getattr(solver, name)
        if value is not None and not value >= least:
            raise InvalidInputError(
                f"{name}={value!r}, but it must be at least {least}. Set {name} to {least} or more."
            )


def check_valid(solver: Solver, name: str, valid: bool, needed: str, example: str) -> None:
    """Raise InvalidInputError if a hyper-parameter is not valid; `needed` describes the valid values."""
    if not valid:
        raise InvalidInputError(
            f"{name}={getattr(solver, name)!r}, but it must be {needed}. Use for example {name}={example}."
        )


def check_penalties(penalties: Any, smallest: float) -> None:
    """Raise InvalidInputError unless `penalties` is a count or positive numbers and `smallest` is in (0, 1]."""
    if isinstance(penalties, tuple):
        valid = len(penalties) > 0 and bool(np.isfinite(penalties).all()) and min(penalties) > 0
    else:
        valid = isinstance(penalties, int) and penalties >= 1
    if not valid:
        raise InvalidInputError(
            f"penalties={penalties!r}, but it must be the number of penalties, at least 1, or a tuple of positive "
            "numbers. Use for example penalties=40."
        )
    if not 0 < smallest <= 1:
        raise InvalidInputError(
            f"smallest={smallest!r}, but it must be greater than 0 and at most 1. Use for example smallest=1e-3."
        )


def decreasing_penalties(penalties: int | tuple[float, ...], largest: float, smallest: float) -> NDArray[np.float64]:
    """Return the penalties in decreasing order: those given, or a geometric grid from `largest`.

    The last penalty of the grid is `smallest * largest`.
    """
    if isinstance(penalties, tuple):
        return np.array(sorted(penalties, reverse=True), np.float64)
    return (largest or 1.0) * np.geomspace(1.0, smallest, penalties)
