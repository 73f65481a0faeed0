"""Encode targets: class codes or real values, one column per target."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGEST = 1e60
"""Largest absolute value of targets and leaf values; the fourth power of a larger one may overflow."""


def as_columns(y: Any, n_targets: int) -> NDArray[Any]:
    """Return y as (n_rows, n_targets); raise ValueError if it has another shape."""
    y = np.asarray(y)
    y = y[:, None] if y.ndim == 1 else y
    if y.ndim != 2 or y.shape[1] != n_targets:
        raise ValueError(
            f"y has shape {y.shape}; the model predicts {n_targets} target(s). Pass y as it was for training."
        )
    return y


def as_real_target(y: NDArray[np.generic]) -> NDArray[np.float64]:
    """Return y (n_rows, n_targets) as float64; raise ValueError if it is not numeric, finite and below `LARGEST`."""
    try:
        values = np.asarray(y, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"y cannot be read as numbers ({error}); this model predicts a number. Convert y to float."
        ) from error
    if not np.isfinite(values).all():
        raise ValueError(
            f"y has {int((~np.isfinite(values)).sum())} missing or infinite values; every row needs a target. "
            "Drop those rows."
        )
    if np.abs(values).max(initial=0.0) > LARGEST:
        raise ValueError(
            f"y has values such as {values.flat[np.abs(values).argmax()]:g}, whose squares are too large to compare; "
            f"at most {LARGEST:g} is allowed. Drop those rows, or train the model on a target in another unit."
        )
    return values


def check_known_labels(found: NDArray[np.generic], known: NDArray[np.generic]) -> None:
    """Raise ValueError unless the model knows all labels found."""
    unknown = [label for label in found.tolist() if label not in set(known.tolist())]
    if unknown:
        raise ValueError(
            f"y has labels the model does not know: {unknown[:5]}; it knows {known.tolist()[:10]}. "
            "Drop those rows, or pass y as it was for training."
        )


def class_codes(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.intp]:
    """Return the index of each label of y in `classes`."""
    if (y.dtype.kind == "f" and np.isnan(y).any()) or (y.dtype == object and any(label != label for label in y)):
        raise ValueError("y has missing values; every row needs a label. Drop those rows.")
    found, inverse = np.unique(y, return_inverse=True)
    check_known_labels(found, classes)
    position = {label: code for code, label in enumerate(classes.tolist())}
    return np.array([position[label] for label in found.tolist()], dtype=np.intp)[inverse]
