"""Keep rows and targets as the user passed them, for metrics that look at them."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.data.batches import Batches


@dataclass(frozen=True, eq=False)
class GivenRows:
    """Hold the user's rows and targets, which are indexed only when they are needed.

    Attributes
    ----------
    X, y
        As the user passed them.
    index : (n_rows,), optional
        The positions of the chosen rows; None if all are chosen, in order.
    """

    X: Any
    y: Any
    index: NDArray[np.intp] | None = None

    def take(self, index: NDArray[np.intp]) -> "GivenRows":
        """Return the chosen rows with these indices."""
        return replace(self, index=index if self.index is None else self.index[index])

    @property
    def has_features(self) -> bool:
        """Whether X is at hand, and not only read in batches."""
        return not isinstance(self.X, Batches)

    def features(self) -> Any:
        """Return the chosen rows of X, in its container type."""
        return self._pick(self.X)

    def targets(self) -> Any:
        """Return the targets of the chosen rows, None if there are none."""
        return None if self.y is None else self._pick(self.y)

    def _pick(self, values: Any) -> Any:
        if self.index is None:
            return values
        from sklearn.utils import _safe_indexing

        return _safe_indexing(values, self.index)
