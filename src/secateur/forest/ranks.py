"""Represent the numbers that splits tell apart by integer ranks, so that intervals of numbers are exact.

The rank of a floating-point number preserves its order, and neighbouring numbers have ranks one apart. So an interval
of ranks that is empty contains no number of the forest's input dtype.
"""

import numpy as np
from numpy.typing import NDArray

from secateur.forest import Forest


def ranks(numbers: NDArray[np.floating]) -> NDArray[np.int64]:
    """Return the ranks of floating-point numbers: order-preserving integers, neighbours one apart; -0 and 0 share one.

    The bit pattern of a nonnegative float is monotone in its value; that of a negative float is reflected.
    """
    bits = np.ascontiguousarray(numbers).view(f"i{numbers.dtype.itemsize}")
    return np.where(bits < 0, np.iinfo(bits.dtype).min - bits, bits).astype(np.int64)


def last_left(forest: Forest) -> NDArray[np.int64]:
    """Return the rank of the largest number of the input dtype that each split routes left, (n_nodes,)."""
    with np.errstate(over="ignore"):
        nearest = forest.threshold.astype(forest.input_dtype)
    above = nearest > forest.threshold if forest.comparison == "<=" else nearest >= forest.threshold
    return ranks(nearest) - above


def infinite_ranks(forest: Forest) -> tuple[int, int]:
    """Return the ranks of minus and plus infinity in the input dtype."""
    low, high = ranks(np.array([-np.inf, np.inf], forest.input_dtype)).tolist()
    return low, high
