"""Arrays as plain values that JSON can hold, and holds in few characters."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def plain(value: Any) -> Any:
    """Return a value, or all in a container, as JSON has it; numbers JSON cannot hold become None."""
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
    """Return numbers to some significant digits, for pictures; tables show them in full."""
    return [None if not math.isfinite(number) else float(f"{number:.{digits}g}") for number in numbers.tolist()]


def changes(present: NDArray[np.bool_]) -> list[int]:
    """Return the points at which something comes or goes; it counts as present before point 0."""
    found: list[int] = (np.flatnonzero(np.diff(present, prepend=True))).tolist()
    return found
