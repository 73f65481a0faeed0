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
    leaf = right == -1
    result = value.copy()
    for cover in (np.ones(len(right)), np.maximum(weight, 0.0)):
        cover = np.where(leaf, cover, 0.0)[:, None]
        sums = np.hstack([cover, cover * np.where(leaf[:, None], value, 0.0)])
        kernels.roll_up(right, sums)
        split = ~leaf & (sums[:, 0] > 0)
        result[split] = sums[split, 1:] / sums[split, :1]
    return result
