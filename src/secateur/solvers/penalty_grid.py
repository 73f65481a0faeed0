"""Sequences of penalties: how many, or which; checked, and laid out from the largest to the smallest."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def check_penalties(penalties: Any, smallest: float) -> None:
    """Raise ValueError unless `penalties` is a count or a tuple of positive numbers, and `smallest` a share."""
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
    """Return the penalties, the largest first: those given, or evenly spaced on a logarithmic scale."""
    if isinstance(penalties, tuple):
        return np.array(sorted(penalties, reverse=True), np.float64)
    return (largest or 1.0) * np.geomspace(1.0, smallest, penalties)
