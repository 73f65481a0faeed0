"""Define the goal of a search: what the pruning must satisfy, and the rows of each fold that decide."""

from dataclasses import dataclass

from secateur.data.rows import LocalRows
from secateur.path.guard import NO_GUARD, Guard
from secateur.problem import Problem


@dataclass(frozen=True)
class Goal:
    """State what the selected pruning must satisfy; without any limit, its validation loss is to be the lowest.

    Attributes
    ----------
    max_nodes : int, optional
        Node budget.
    max_loss_increase : float, optional
        Largest increase of the validation loss, as a fraction of the loss of the unpruned model.
    guard : Guard
        What is added to a measured loss before it is compared with the bound.
    refit : bool
        Whether the pruning is computed again on all rows, so that the search only has to find its settings.
    curve : bool
        Whether the path is to have the prunings on the way, for a curve of the trade-off or as alternatives.
    """

    max_nodes: int | None = None
    max_loss_increase: float | None = None
    guard: Guard = NO_GUARD
    refit: bool = False
    curve: bool = False


@dataclass(frozen=True, eq=False)
class FoldProblem:
    """Hold the problem on the rows of one fold, and the validation rows of that fold."""

    problem: Problem
    validation_rows: LocalRows
