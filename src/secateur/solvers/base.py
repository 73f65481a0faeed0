"""What a solver is: frozen settings and two methods."""

from abc import ABC, abstractmethod
from dataclasses import fields
from typing import ClassVar

from secateur.costs import Cost
from secateur.forest import Forest
from secateur.losses import Loss
from secateur.path import Path
from secateur.problem import Problem


class Solver(ABC):
    """A way to search prunings. Subclasses are frozen dataclasses of settings, `repr=False`, and final."""

    name: ClassVar[str]
    needs_unseen_rows: ClassVar[bool] = False
    """Whether rows the model was grown on tell this method nothing."""

    @property
    def supports_symmetric(self) -> bool:
        """Whether it cuts nothing but whole levels or trees where the trees allow nothing else (symmetric trees)."""
        return False

    @property
    def needs_rows(self) -> bool:
        """Whether it looks at rows one by one, so that they must be on this machine; else sums over them will do."""
        return True

    @property
    def many_passes(self) -> bool:
        """Whether it goes over rows that are elsewhere many times, so that they are better kept as it needs them."""
        return self.needs_rows

    @property
    def changes(self) -> tuple[str, ...]:
        """What it changes besides the shape: "value", "tree_weight", "base"; not every model has a place for those."""
        return ()

    @property
    def uses_ensemble_loss(self) -> bool:
        """Whether the risk is the loss of the whole model, and not the mean of the trees' own losses."""
        return False

    def __repr__(self) -> str:
        """Return the name and the settings that are not the usual ones."""
        settings = [field for field in fields(self) if getattr(self, field.name) != field.default]  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(f'{s.name}={getattr(self, s.name)!r}' for s in settings)})"

    def default_loss(self, forest: Forest) -> Loss | None:
        """Return the loss to use when the caller names none; None for the model's usual one."""
        return None

    def default_cost(self) -> Cost | None:
        """Return the cost to use when the caller names none; None for the number of nodes."""
        return None

    def with_budget(
        self, *, max_nodes: int | None = None, max_trees: int | None = None, max_cost: float | None = None
    ) -> "Solver":
        """Return a solver whose path has points that use up such a budget; itself if it has no such aim."""
        return self

    @abstractmethod
    def unsupported(self, problem: Problem) -> str | None:
        """Return why this solver cannot take the problem, or None if it can."""

    @abstractmethod
    def path(self, problem: Problem) -> Path:
        """Return prunings from the unpruned forest to the most pruned."""


def check_choices(solver: Solver, **known: tuple[str | None, ...]) -> None:
    """Raise ValueError for a setting that is none of those known."""
    for name, choices in known.items():
        if getattr(solver, name) not in choices:
            raise ValueError(
                f"{name}={getattr(solver, name)!r} is unknown; known are {', '.join(map(repr, choices))}. "
                "Use one of these."
            )
