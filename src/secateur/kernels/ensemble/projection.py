"""Project leaf values on the range of a model's predictions: probability simplices or intervals.

References
----------
C. Michelot (1986), A finite algorithm for finding the projection of a point onto the canonical simplex of Rⁿ, Journal
of Optimization Theory and Applications 50.
"""

import numpy as np

from secateur.kernels._jit import kernel
from secateur.kernels.ensemble.mean_arrays import Range


@kernel
def project(z: np.ndarray, share: float, bounds: Range) -> None:
    """Replace z by the nearest point of share · C."""
    n_blocks = bounds.block.shape[0] - 1
    for block in range(n_blocks):
        project_on_simplex(z, bounds.block[block], bounds.block[block + 1], share)
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
