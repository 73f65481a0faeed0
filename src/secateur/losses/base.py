"""Define the interface of a loss function, per row and per node."""

from abc import ABC, abstractmethod
from dataclasses import astuple, is_dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from secateur.forest import Forest
from secateur.forest.node_sums import NodeStats

Floats = NDArray[np.float64]


class Loss(ABC):
    """Measure the error of a prediction per row; nonnegative, and 0 for a perfect prediction."""

    name: ClassVar[str]
    task: ClassVar[str]
    additive: ClassVar[bool] = True
    """Whether the loss of a row is independent of other rows and `nodes` is exact, so that node losses add up."""
    counts_errors: ClassVar[bool] = False
    """Whether the loss is the number of wrong labels."""

    def unsupported(self, forest: Forest) -> str | None:
        """Return the reason why this loss does not apply to `forest`, or None if it does."""
        task = "classification" if forest.n_classes else "regression"
        if task == self.task:
            return None
        fitting = "log_loss, brier, zero_one" if forest.n_classes else "squared_error, absolute_error"
        return f"The loss {self.name} is for {self.task}, but this is a {task} model. Use one of: {fitting}."

    def scale(self, y: NDArray[Any], weight: Floats) -> float | None:
        """Return the unit of increases where the unpruned model has no loss, as it is compared with itself.

        None if there is none, so that only a model without any loss is within a limit.
        """
        return None

    @property
    def text(self) -> str:
        """Name of the loss with its parameter, if any, as `loss_named` parses it."""
        numbers: tuple[float, ...] = astuple(self) if is_dataclass(self) else ()
        return ":".join([self.name, *(f"{number:g}" for number in numbers)])

    @abstractmethod
    def rows(self, forest: Forest, raw: Floats, y: NDArray[Any]) -> Floats:
        """Return the loss of each row, (n_rows,), for raw scores (n_rows, n_outputs) and encoded targets `y`."""

    @abstractmethod
    def nodes(self, forest: Forest, stats: NodeStats) -> Floats:
        """Return the total loss of the rows at each node if they get the node's value as prediction, (n_nodes,)."""

    def labels(self, p: Floats) -> Floats:
        """Return the loss for each possible true label, given the probabilities `p`, both (n_nodes, n_classes).

        Losses of regressors have no labels.
        """
        raise TypeError(f"The loss {self.name} is for {self.task}; it is not a function of a label.")
