"""Values for nodes that have none worth using."""

import numpy as np
from numpy.typing import NDArray

from secateur import kernels

Floats = NDArray[np.float64]


def cover_mean(right: NDArray[np.int32], value: Floats, weight: Floats) -> Floats:
    """Return values in which every split has the cover-weighted mean of the leaves below it.

    Boosting libraries store something else at their splits, or nothing. Where no cover is left, all leaves count
    the same.

    Parameters
    ----------
    right : (n_nodes,)
    value : (n_nodes, width)
    weight : (n_nodes,)
    """
    mean: Floats = kernels.cover_mean(right, np.ascontiguousarray(value), np.ascontiguousarray(weight))
    return mean
