"""Compute values for splits of boosted trees, so that a split can become a leaf."""

import numpy as np
from numpy.typing import NDArray

from secateur import kernels

Floats = NDArray[np.float64]


def cover_mean(right: NDArray[np.int32], value: Floats, weight: Floats) -> Floats:
    """Return node values in which every split has the cover-weighted mean of the leaves below it.

    Boosting libraries store another quantity at their splits, or none. If the cover below a split is zero, all its
    leaves count equally.

    Parameters
    ----------
    right : (n_nodes,)
        Right child of each node, -1 at a leaf; nodes in preorder.
    value : (n_nodes, width)
    weight : (n_nodes,)
        Cover of each node: the training weight that reached it.
    """
    mean: Floats = kernels.cover_mean(right, np.ascontiguousarray(value), np.ascontiguousarray(weight))
    return mean
