"""Describe the columns of the data a model is used on, and the features that its trees compute from them."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class InputColumns:
    """Map each feature of the trees to the input column it is computed from.

    Trees may split on derived features: a Pipeline encodes its input columns, CatBoost computes statistics of
    categories.

    Attributes
    ----------
    names : tuple of str, or None
        The names given for training; None for unnamed columns.
    origin : (n_features,) int32
        The input column behind each feature of the forest.
    numeric : (n_columns,) bool
        The columns of numbers that trees compare as `Adapter.cast` returns them, without further encoding.
    """

    names: tuple[str, ...] | None
    origin: NDArray[np.int32]
    numeric: NDArray[np.bool_]

    @property
    def n_columns(self) -> int:
        """The number of input columns."""
        return len(self.numeric)


class ColumnRoles(NamedTuple):
    """Name the columns of a Spark DataFrame that a model uses; the defaults are those of Spark ML."""

    features: str = "features"
    label: str = "label"
    weight: str | None = None
