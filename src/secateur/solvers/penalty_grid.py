"""Validate a penalty grid and generate it in decreasing order."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.errors import InvalidInputError


def check_penalties(penalties: Any, smallest: float) -> None:
    """Raise InvalidInputError unless `penalties` is a count or positive numbers and `smallest` is in (0, 1]."""
    if isinstance(penalties, tuple):
        valid = len(penalties) > 0 and bool(np.isfinite(penalties).all()) and min(penalties) > 0
    else:
        valid = isinstance(penalties, int) and penalties >= 1
    if not valid:
        raise InvalidInputError(
            f"penalties={penalties!r}, but it must be the number of penalties, at least 1, or a tuple of positive "
            "numbers. Use for example penalties=40."
        )
    if not 0 < smallest <= 1:
        raise InvalidInputError(
            f"smallest={smallest!r}, but it must be greater than 0 and at most 1. Use for example smallest=1e-3."
        )


def decreasing_penalties(penalties: int | tuple[float, ...], largest: float, smallest: float) -> NDArray[np.float64]:
    """Return the penalties in decreasing order: those given, or a geometric grid from `largest`.

    The last penalty of the grid is `smallest * largest`.
    """
    if isinstance(penalties, tuple):
        return np.array(sorted(penalties, reverse=True), np.float64)
    return (largest or 1.0) * np.geomspace(1.0, smallest, penalties)
