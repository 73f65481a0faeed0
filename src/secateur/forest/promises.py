"""Read from a forest what its predictions promise: probabilities, a natural range, monotonic constraints.

A mean of trees predicts within the range of its leaf values. If these are class probabilities, so is every prediction;
if none of them is negative, no prediction is. The pruned model must keep this.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.errors import InvalidInputError
from secateur.forest.forest import Forest

_ROUNDING = 1e-6
"""Largest deviation of the sum of stored probabilities from 1: libraries may store them in single precision."""


@dataclass(frozen=True)
class PredictionRange:
    """The set that contains all leaf values of a mean of trees, and therefore all predictions.

    Attributes
    ----------
    simplex : bool
        Whether the values of each target are class probabilities.
    low, high : float
        Bounds of the values; infinite if there is none.
    """

    simplex: bool
    low: float
    high: float

    def contains(self, value: NDArray[np.floating], n_classes: tuple[int, ...]) -> bool:
        """Return whether all rows of `value`, (n, n_outputs), lie in the range."""
        if not ((value >= self.low) & (value <= self.high)).all():
            return False
        blocks = np.split(value, np.cumsum(n_classes)[:-1], axis=1) if self.simplex else []
        return all(bool((np.abs(block.sum(axis=1) - 1) <= _ROUNDING).all()) for block in blocks)

    def contains_means(
        self, value: NDArray[np.floating], tree: NDArray[np.integer], n_classes: tuple[int, ...]
    ) -> bool:
        """Return whether every mean of one value of each tree lies in the range.

        Parameters
        ----------
        value : (n, n_outputs)
            The values of all leaves.
        tree : (n,)
            The tree of each leaf, in order.
        n_classes : tuple of int
        """
        if self.contains(value, n_classes):
            return True
        if self.simplex or not len(value):
            return not len(value)
        first = np.flatnonzero(np.diff(tree, prepend=-1))
        # No row can get less than the mean of the lowest leaves of all trees, or more than that of the highest.
        extremes = [reduce(value, first).mean(axis=0) for reduce in (np.minimum.reduceat, np.maximum.reduceat)]
        return self.contains(np.array(extremes), ())

    def __str__(self) -> str:
        if self.simplex:
            return "class probabilities"
        return f"numbers from {self.low:g}" + (f" to {self.high:g}" if np.isfinite(self.high) else "")


def is_plain_mean(forest: Forest) -> bool:
    """Return whether predictions are the unweighted mean of predictions of single trees."""
    return bool(
        forest.trees_predict_target
        and forest.aggregation == "mean"
        and not forest.base.any()
        and (forest.tree_output < 0).all()
        and (forest.tree_weight == 1.0).all()
        and forest.n_trees > 0
    )


def keeps_range(natural: PredictionRange, pruned: Forest) -> bool:
    """Return whether all predictions of a pruned forest lie in the range of the unpruned one."""
    leaf = ~pruned.is_split
    tree = np.repeat(np.arange(pruned.n_trees), np.diff(pruned.tree_start))[leaf]
    return natural.contains_means(pruned.value[leaf] / pruned.unit, tree, pruned.n_classes)


def range_of(forest: Forest) -> PredictionRange | None:
    """Return the natural range of the predictions of a mean of trees; None if there is none.

    It consists of class probabilities, or of the numbers from 0 to 1, or of the numbers from 0, whichever is the
    smallest set that contains all leaf values.
    """
    if not is_plain_mean(forest):
        return None
    value = forest.value[~forest.is_split]
    value /= forest.unit
    ranges = [PredictionRange(True, 0.0, 1.0 + _ROUNDING)]
    if not forest.n_classes:
        ranges = [PredictionRange(False, 0.0, 1.0), PredictionRange(False, 0.0, np.inf)]
    return next((found for found in ranges if found.contains(value, forest.n_classes)), None)


def constrained_splits(forest: Forest) -> NDArray[np.int8]:
    """Return the monotonic constraint on the two sides of each split, (n_nodes, width); no rows if there are none.

    The entry is 1 if values on the left must not exceed those on the right, -1 for the reverse, and 0 elsewhere. Of a
    binary classifier with two outputs the first decreases where the second increases. Categorical splits are free.
    """
    width = forest.value.shape[1]
    if forest.monotone is None or not forest.monotone.any():
        return np.empty((0, width), np.int8)
    ordered = forest.is_split & ~forest.is_categorical
    sign = np.where(ordered, forest.monotone[forest.feature], 0).astype(np.int8)
    output = np.ones(width, np.int8)
    if forest.n_classes == (2,) and width == 2:
        output[0] = -1
    return np.ascontiguousarray(sign[:, None] * output)


def monotone_signs(constraints: Any, n_features: int, names: Sequence[str] | None = None) -> NDArray[np.int8] | None:
    """Return a library's monotonic constraints as 1, -1 or 0 for each feature, (n_features,); None if there are none.

    Parameters
    ----------
    constraints : sequence of numbers, text such as "(1,0,-1)", mapping from names to numbers, or None
        Only the signs of the numbers count. Features after the last number are not constrained.
    n_features : int
    names : sequence of str, optional
        The names by which a mapping refers to features.

    Raises
    ------
    InvalidInputError
        If the constraints do not fit the features, as after a change of parameters of a trained model.
    """
    if isinstance(constraints, str):
        constraints = re.findall(r"[-+]?\d+", constraints)
    signs = np.zeros(n_features, np.int8)
    try:
        if isinstance(constraints, Mapping):
            index = {name: i for i, name in enumerate(names or ())}
            for name, number in constraints.items():
                signs[index[name]] = np.sign(int(number))
        elif constraints is not None:
            given = [np.sign(int(number)) for number in constraints]
            # Raises ValueError if there are too many.
            signs[:] = given + [0] * (n_features - len(given))
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInputError(
            f"The model has the monotonic constraints {constraints!r:.80}, which do not fit its {n_features} features. "
            "secateur needs the constraints of training. Restore them with set_params, or train the model again."
        ) from error
    return signs if signs.any() else None
