"""Define the interface of a solver: frozen hyper-parameters, `unsupported` and `path`."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import fields
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from secateur.costs import Cost
from secateur.errors import InvalidInputError, UnsupportedProblemError
from secateur.forest import Forest
from secateur.losses import Loss
from secateur.path import Path
from secateur.path.matching import match_by_cost, match_by_penalty
from secateur.problem import Problem
from secateur.solvers.goal import FoldProblem, Goal


class Solver(ABC):
    """Search the prunings of a forest. Subclasses are final frozen dataclasses of hyper-parameters, `repr=False`.

    The properties below are constants of most solvers, which override them by plain class attributes.
    """

    name: ClassVar[str]
    needs_unseen_rows: ClassVar[bool] = False
    """Whether this method needs rows the model was not trained on."""
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
        return None

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

    def search(self, folds: Sequence[FoldProblem], goal: Goal) -> tuple["Solver", list[Path]]:
        """Search for the pruning that meets a goal, instead of computing the whole path.

        Returns
        -------
        solver : Solver
            Its path on all rows has the pruning that was found.
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
