"""Encode targets: class codes or real values, one column per target."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.errors import InvalidInputError

LARGEST = 1e60
"""Largest absolute value of targets and leaf values; the fourth power of a larger one may overflow."""


def as_columns(y: Any, n_targets: int) -> NDArray[Any]:
    """Return y as (n_rows, n_targets); raise InvalidInputError if it has another shape."""
    y = np.asarray(y)
    y = y[:, None] if y.ndim == 1 else y
    if y.ndim != 2 or y.shape[1] != n_targets:
        raise InvalidInputError(
            f"y has shape {y.shape}, but the model predicts {n_targets} target(s). Pass y in the shape used for "
            "training."
        )
    return y


def as_real_target(y: NDArray[np.generic]) -> NDArray[np.float64]:
    """Return y (n_rows, n_targets) as float64.

    Raises
    ------
    InvalidInputError
        If a value is not numeric, not finite, or above `LARGEST` in absolute value.
    """
    try:
        values = np.asarray(y, np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"y cannot be converted to numbers ({error}), but this model predicts a number. Pass a numeric y."
        ) from error
    if not np.isfinite(values).all():
        raise InvalidInputError(
            f"y contains {int((~np.isfinite(values)).sum())} missing or infinite values, but every row needs a target. "
            "Drop those rows."
        )
    if np.abs(values).max(initial=0.0) > LARGEST:
        raise InvalidInputError(
            f"y contains values such as {values.flat[np.abs(values).argmax()]:g}, but absolute values must be at most "
            f"{LARGEST:g}, so that losses do not overflow. Drop those rows, or train the model on a target in another "
            "unit."
        )
    return values


def check_known_labels(found: NDArray[np.generic], known: NDArray[np.generic]) -> None:
    """Raise InvalidInputError if a label is not among the labels of the model."""
    unknown = [label for label in found.tolist() if label not in set(known.tolist())]
    if unknown:
        raise InvalidInputError(
            f"y contains labels that the model was not trained on: {unknown[:5]}; its labels are "
            f"{known.tolist()[:10]}. Drop those rows, or encode y as for training."
        )


def class_codes(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.intp]:
    """Return the index of each label of y in `classes`."""
    if (y.dtype.kind == "f" and np.isnan(y).any()) or (y.dtype == object and any(label != label for label in y)):
        raise InvalidInputError("y contains missing values, but every row needs a label. Drop those rows.")
    found, inverse = np.unique(y, return_inverse=True)
    check_known_labels(found, classes)
    position = {label: code for code, label in enumerate(classes.tolist())}
    return np.array([position[label] for label in found.tolist()], dtype=np.intp)[inverse]
