"""Hold the variables of a descent over a mean of trees, and the range of its leaf values."""

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from secateur.forest import Forest
from secateur.forest.promises import range_of
from secateur.kernels.ensemble.mean_arrays import LEAF, MeanArrays, Range

Floats = NDArray[np.float64]

_LARGE = 500_000
"""Number of values, nodes times outputs, from which the states to return to are packed."""


def leaf_range(forest: Forest, target: Floats, weight: Floats, bounded: bool) -> Range:
    """Return the set of leaf values that keeps the predictions of a mean of trees valid.

    Class probabilities form a simplex for each target; that of the second of two classes alone is a number from 0 to 1.
    Numbers lie in the natural range of the model, or with
    `bounded` between the lowest and the highest of its leaf values and the targets of the given rows.
    """
    center = weight @ target / weight.sum()
    natural = range_of(forest)
    low, high = np.full(len(center), -np.inf), np.full(len(center), np.inf)
    block = np.zeros(1, np.int64)
    if forest.n_classes:
        low, high = np.zeros(len(center)), np.ones(len(center))
        if len(center) > 1:
            block = np.concatenate([[0], np.cumsum(forest.n_classes)]).astype(np.int64)
    elif bounded:
        value = forest.value[~forest.is_split] / forest.unit
        low = np.minimum(value.min(axis=0), target.min(axis=0))
        high = np.maximum(value.max(axis=0), target.max(axis=0))
    elif natural is not None:
        low, high = np.full(len(center), natural.low), np.full(len(center), natural.high)
        center = np.clip(center, low, high)
    return Range(center, low, high, block)


@dataclass(frozen=True, eq=False)
class PackedMeanState:
    """A state of many values to return to, with values for the leaves in use only and without predictions.

    `state` has no rows of values and predictions; `leaves` are the leaves in use and `value` their values.
    """

    state: "MeanState"
    leaves: NDArray[np.intp]
    value: Floats

    @property
    def status(self) -> NDArray[np.int8]:
        """0 absent, 1 split, 2 leaf, (n_nodes,)."""
        return self.state.status

    def copy(self) -> "PackedMeanState":
        """Return the same object: it is never changed."""
        return self


@dataclass(frozen=True, eq=False)
class MeanState:
    """The variables of a descent over a mean of trees, which updates the arrays in place; see `MeanArrays`."""

    score: Floats
    score_target: Floats
    score_square: Floats
    status: NDArray[np.int8]
    value: Floats
    deviation: Floats
    size: NDArray[np.int64]
    entry: Floats

    @property
    def arrays(self) -> MeanArrays:
        """The arrays as the kernels take them."""
        return MeanArrays(*(getattr(self, field.name) for field in fields(self)))

    def copy(self) -> "MeanState | PackedMeanState":
        """Return an independent copy; a packed one if there are many values."""
        if self.value.size < _LARGE:
            return self.independent()
        none, leaves = np.empty(0), np.flatnonzero(self.status == LEAF)
        packed = replace(self, score=none[:, None], score_target=none, score_square=none, value=none[:, None])
        return PackedMeanState(packed.independent(), leaves, self.value[leaves])

    def independent(self) -> "MeanState":
        """Return an independent copy that is not packed."""
        return MeanState(*(getattr(self, field.name).copy() for field in fields(self)))


AnyMeanState = MeanState | PackedMeanState
