"""Hold the user's rows before they are routed: arrays and tables in memory, files read in batches, or a cluster."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.data.batches import Batches
from secateur.data.row_source import RowSource
from secateur.data.rows import LocalRows, read_sample
from secateur.errors import InvalidInputError
from secateur.libraries.adapter import Adapter


class RowProvider(ABC):
    """Hold the user's rows as given, local or remote."""

    @abstractmethod
    def sample(self, adapter: Adapter) -> RowSource:
        """Return the rows routed through the model."""

    @abstractmethod
    def others(self, given: tuple[Any, ...]) -> "RowProvider":
        """Return a provider of the same kind for other rows, such as validation rows."""


@dataclass(frozen=True, eq=False)
class Rows(RowProvider):
    """Hold rows in memory, or in files that are read in batches.

    Attributes
    ----------
    X, y, weight, groups
        As the user passed them.
    index : (n_rows,), optional
        The positions of these rows among the user's rows; None if they are all of them in order.
    """

    X: Any
    y: Any = None
    weight: Any = None
    groups: Any = None
    index: NDArray[np.intp] | None = None

    @property
    def can_train(self) -> bool:
        """Whether a model can be trained on a subset of the rows."""
        return not isinstance(self.X, Batches)

    def take(self, index: NDArray[np.intp]) -> "Rows":
        """Return a subset of the rows, in the container types of the input."""
        if not self.can_train:
            raise InvalidInputError(
                "validation='cv' and 'refit' train clones on a subset of the rows, but X is read in batches and cannot "
                "be indexed. Pass validation=0.25 or validation=(X_val, y_val)."
            )
        from sklearn.utils import _safe_indexing

        def pick(values: Any) -> Any:
            return None if values is None else _safe_indexing(values, index)

        return Rows(pick(self.X), pick(self.y), pick(self.weight), pick(self.groups), index)

    def sample(self, adapter: Adapter) -> LocalRows:
        """Return the rows routed through the model."""
        return replace(read_sample(adapter, self.X, self.y, self.weight, self.groups), row_index=self.index)

    def others(self, given: tuple[Any, ...]) -> "Rows":
        """Return the rows of a tuple (X, y), (X, y, sample_weight) or (X, y, sample_weight, groups)."""
        if self.groups is not None and len(given) < 4:
            raise InvalidInputError(
                f"groups was given, but validation has {len(given)} entries and none for the groups of its rows. Pass "
                "validation=(X_val, y_val, sample_weight, groups_val); sample_weight may be None."
            )
        return Rows(*given)


def row_provider(X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> RowProvider:
    """Return X if it is a RowProvider, otherwise a provider of the given arrays or tables."""
    if not isinstance(X, RowProvider):
        return Rows(X, y, sample_weight, groups)
    if groups is not None:
        raise InvalidInputError("groups was given, but the rows are remote. Leave out groups, or pass rows in memory.")
    return X
