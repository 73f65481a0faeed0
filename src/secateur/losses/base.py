"""What a loss is: how wrong a prediction is, for a row, and for all rows that end in the same node."""

from abc import ABC, abstractmethod
from dataclasses import astuple, is_dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from secateur.forest import Forest
from secateur.forest.node_sums import NodeStats

Floats = NDArray[np.float64]


class Loss(ABC):
    """A measure of error, per row, never negative, 0 when perfect."""

    name: ClassVar[str]
    task: ClassVar[str]
    additive: ClassVar[bool] = True
    """Whether a row's loss is its own affair, so that nodes have losses that add up."""

    def unsupported(self, forest: Forest) -> str | None:
        """Return why this loss cannot judge `forest`, or None if it can."""
        task = "classification" if forest.n_classes else "regression"
        if task == self.task:
            return None
        fitting = "log_loss, brier, zero_one" if forest.n_classes else "squared_error, absolute_error"
        return f"The loss {self.name} is for {self.task}, but the model does {task}. Use one of: {fitting}."

    @property
    def text(self) -> str:
        """The name, with its number where it has one: what `loss_named` reads."""
        numbers: tuple[float, ...] = astuple(self) if is_dataclass(self) else ()
        return ":".join([self.name, *(f"{number:g}" for number in numbers)])

    @abstractmethod
    def rows(self, forest: Forest, raw: Floats, y: NDArray[Any]) -> Floats:
        """Return the loss of each row, (n_rows,), for sums `raw` (n_rows, n_outputs) and encoded targets `y`."""

    @abstractmethod
    def nodes(self, forest: Forest, stats: NodeStats) -> Floats:
        """Return the total loss of the rows at each node when the tree alone predicts there, (n_nodes,)."""
