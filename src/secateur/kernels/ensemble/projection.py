"""Project leaf values on the range of a model's predictions: probability simplices or intervals.

References
----------
C. Michelot (1986), A finite algorithm for finding the projection of a point onto the canonical simplex of Rⁿ, Journal
of Optimization Theory and Applications 50.
"""

import numpy as np

from secateur.kernels._jit import kernel
from secateur.kernels.ensemble.mean_arrays import Range

MANY = 16
"""Number of entries from which the entries that are not 0 yet are copied, so that later rounds visit only these."""


@kernel
def project(z: np.ndarray, share: float, bounds: Range) -> None:
    """Replace z by the nearest point of share · C."""
    n_blocks = bounds.block.shape[0] - 1
    for block in range(n_blocks):
        first, stop = bounds.block[block], bounds.block[block + 1]
        if stop - first >= MANY:
            project_on_large_simplex(z, first, stop, share)
        else:
            project_on_simplex(z, first, stop, share)
    if n_blocks < 1:
        for k in range(z.shape[0]):
            z[k] = min(max(z[k], share * bounds.low[k]), share * bounds.high[k])


@kernel
def project_on_simplex(z: np.ndarray, first: int, stop: int, total: float) -> None:
    """Replace z[first:stop] by the nearest point with nonnegative entries that sum to `total` (Michelot 1986).

    Entries that become negative are set to 0 and stay there, so the loop ends after at most as many rounds as entries.
    """
    n_free = stop - first
    zero = -np.inf
    while True:
        excess = -total
        for k in range(first, stop):
            if z[k] > zero:
                excess += z[k]
        step = excess / n_free
        n_negative = 0
        for k in range(first, stop):
            if z[k] > zero:
                z[k] -= step
                if z[k] < 0.0:
                    n_negative += 1
        if n_negative == 0:
            break
        for k in range(first, stop):
            if z[k] > zero and z[k] < 0.0:
                z[k] = -np.inf
        n_free -= n_negative
    for k in range(first, stop):
        if z[k] == -np.inf:
            z[k] = 0.0


@kernel
def project_on_large_simplex(z: np.ndarray, first: int, stop: int, total: float) -> None:
    """Do the same as `project_on_simplex` for many entries, most of which become 0 in the first rounds.

    The nearest point is max(z − step, 0). Every round computes the step from the entries above the last one.
    """
    free = np.empty(stop - first)
    n_free = stop - first
    for k in range(n_free):
        free[k] = z[first + k]
    step = -np.inf
    while True:
        sum0, sum1, sum2, sum3 = -total, 0.0, 0.0, 0.0
        for k in range(0, n_free - 3, 4):
            sum0 += free[k]
            sum1 += free[k + 1]
            sum2 += free[k + 2]
            sum3 += free[k + 3]
        for k in range(n_free - n_free % 4, n_free):
            sum0 += free[k]
        step = (sum0 + sum1 + sum2 + sum3) / n_free
        n_left = 0
        for k in range(n_free):
            # Without a branch, which could not be predicted.
            free[n_left] = free[k]
            n_left += 1 if free[k] > step else 0
        # The largest entry exceeds the mean step, except through rounding.
        if n_left == n_free or n_left == 0:
            break
        n_free = n_left
    for k in range(first, stop):
        z[k] = max(z[k] - step, 0.0)
