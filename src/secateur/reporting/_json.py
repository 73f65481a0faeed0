"""Convert arrays to plain values that JSON can represent compactly."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def plain(value: Any) -> Any:
    """Convert a value, and recursively the entries of a container, to JSON types; non-finite numbers become None."""
    if isinstance(value, Mapping):
        return {str(name): plain(entry) for name, entry in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def rounded(numbers: NDArray[np.floating], digits: int = 4) -> list[float | None]:
    """Round numbers to `digits` significant digits, for plots; non-finite numbers become None."""
    return [None if not math.isfinite(number) else float(f"{number:.{digits}g}") for number in numbers.tolist()]


def changes(present: NDArray[np.bool_]) -> list[int]:
    """Return the points at which a mask changes; before point 0 it counts as True."""
    found: list[int] = (np.flatnonzero(np.diff(present, prepend=True))).tolist()
    return found
