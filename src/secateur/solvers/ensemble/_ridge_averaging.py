"""Choose the ridge for a node budget: average the candidate ridges, weighted by their likelihood on held-out rows.

The minimum of a few noisy losses is subject to selection bias. A weighted mean is less so, and it may lie between the
candidates.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

_TRUST = 0.25
"""Effective weight of a row in the likelihood. The candidates share trees and rows, so their losses carry less
information than independent rows. Tuned on data sets that are not in the benchmark tables."""


def average_ridges(losses: Mapping[tuple[float, bool], float], n_rows: float) -> float | None:
    """Return the geometric mean of the candidate ridges, weighted by likelihood; None if values should be kept.

    Parameters
    ----------
    losses : dict of (ridge, kept): float
        The mean held-out loss of the largest model within the budget, for each ridge and for original values.
    n_rows : float
        Number of held-out rows.

    Notes
    -----
    The likelihood is that of normal errors with unknown variance, (loss / lowest)^(−rows / 2), with the number of rows
    scaled by `_TRUST`. Original values are preferred if they are more likely than all ridges together.
    """
    ridge, kept = np.array(list(losses)).T
    weight = _likelihood(np.array(list(losses.values())), n_rows)
    if weight[kept > 0].sum() > weight[kept == 0].sum():
        return None
    mean = np.average(np.log(ridge[kept == 0]), weights=weight[kept == 0])
    return float(f"{np.exp(mean):.3g}")


def _likelihood(loss: NDArray[np.float64], n_rows: float) -> NDArray[np.float64]:
    """Return the likelihood of each loss relative to that of the lowest, (n_candidates,)."""
    least = loss.min()
    if least <= 0:
        return (loss == least).astype(np.float64)
    return np.asarray((loss / least) ** (-_TRUST * n_rows / 2))
