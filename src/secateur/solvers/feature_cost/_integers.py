"""Convert nonnegative floats to integer multiples of a unit, so that sums and comparisons are exact."""

from fractions import Fraction
from math import gcd, lcm

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_DENOMINATOR = 10**6
_MAX_DISTINCT = 100_000
_SMALLEST = float(np.finfo(float).smallest_subnormal)


def to_integers(values: Floats, largest: int) -> tuple[NDArray[np.int64], float]:
    """Return nonnegative values as integer multiples of a unit, and the unit.

    The conversion is exact if all values are multiples of a common unit (within a relative tolerance of 1e-12, so
    that 0.1 + 0.2 equals 0.3) and the largest multiple is at most `largest`. Otherwise values are rounded down to
    multiples of the largest value divided by `largest`.
    """
    distinct = np.unique(values)
    if not len(distinct) or distinct[-1] == 0:
        return np.zeros(values.shape, np.int64), 1.0
    if len(distinct) <= _MAX_DISTINCT:
        fractions = [Fraction(value).limit_denominator(_DENOMINATOR) for value in distinct.tolist()]
        close = np.abs(np.array([float(fraction) for fraction in fractions]) - distinct) <= 1e-12 * distinct
        common = lcm(*(fraction.denominator for fraction in fractions)) if close.all() else largest + 1
        step = gcd(*(int(fraction * common) for fraction in fractions)) if common <= largest**2 else 1
        if close.all() and int(fractions[-1] * common) // step <= largest:
            unit = step / common
            return np.rint(values / unit).astype(np.int64), unit
    # The unit cannot be smaller than the smallest subnormal float.
    if distinct[-1] <= largest * _SMALLEST:
        return np.rint(values / _SMALLEST).astype(np.int64), _SMALLEST
    unit = float(distinct[-1]) / largest
    return np.floor(values / unit * (1 - 1e-15)).astype(np.int64), unit
