"""Shrink the means of tree nodes with few rows towards a prior or towards their ancestors.

References
----------
B. Cestnik and I. Bratko (1991). On estimating probabilities in tree pruning. EWSL-91. (The m-estimate.)

A. Agarwal, Y. S. Tan, O. Ronen, C. Singh and B. Yu (2022). Hierarchical shrinkage: improving the accuracy and
interpretability of tree-based methods. ICML 2022, equation (3).
"""

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.forest.forest import Forest

Floats = NDArray[np.float64]


def m_estimate(weight: Floats, mean: Floats, prior: Floats, m: float) -> Floats:
    """Return the means of nodes as if m more rows had the value `prior`, (n_nodes, width).

    Parameters
    ----------
    weight : (n_nodes,)
        Weight of the rows at each node. A node without rows, and with m = 0, has the prior.
    mean : (n_nodes, width)
    prior : (n_nodes, width) or (width,)
    m : float
    """
    total = weight + m
    share = np.divide(weight, total, out=np.zeros_like(weight), where=total > 0)[:, None]
    return share * mean + (1 - share) * prior


def hierarchical_shrinkage(forest: Forest, weight: Floats, mean: Floats, m: float) -> Floats:
    """Return the means of nodes, shrunk towards the means of all their ancestors, (n_nodes, width).

    The mean of a node is that of the root plus Σ (mean_v − mean_parent) / (1 + m / weight_parent) over the nodes v on
    the path to it.
    """
    child = forest.parent >= 0
    parent = forest.parent[child]
    step = mean.copy()
    total = weight[parent] + m
    share = np.divide(weight[parent], total, out=np.zeros(len(parent)), where=total > 0)
    step[child] = (mean[child] - mean[parent]) * share[:, None]
    return np.array([kernels.sum_down(forest.parent, column) for column in np.ascontiguousarray(step.T)]).T
