"""Validate a penalty grid and generate it in decreasing order."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def check_penalties(penalties: Any, smallest: float) -> None:
    """Raise ValueError unless `penalties` is a count or a tuple of positive numbers, and `smallest` is in (0, 1]."""
    if isinstance(penalties, tuple):
        good = len(penalties) > 0 and bool(np.isfinite(penalties).all()) and min(penalties) > 0
    else:
        good = isinstance(penalties, int) and penalties >= 1
    if not good:
        raise ValueError(
            f"penalties={penalties!r}; it must be how many, at least 1, or a tuple of positive numbers. "
            "Try penalties=40."
        )
    if not 0 < smallest <= 1:
        raise ValueError(f"smallest={smallest!r}; it must be above 0 and at most 1. Correct it.")


def falling(penalties: int | tuple[float, ...], largest: float, smallest: float) -> NDArray[np.float64]:
    """Return the penalties in decreasing order: those given, or a geometric grid from `largest`.

    The last penalty of the grid is `smallest * largest`.
    """
    if isinstance(penalties, tuple):
        return np.array(sorted(penalties, reverse=True), np.float64)
    return (largest or 1.0) * np.geomspace(1.0, smallest, penalties)
