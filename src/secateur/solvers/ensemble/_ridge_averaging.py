"""Choose the ridge for a node budget: average the candidate ridges, weighted by their likelihood on held-out rows.

The minimum of a few noisy losses is subject to selection bias. A weighted mean is less so, and it may lie between the
candidates.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from secateur.path.evaluation import Fold
from secateur.path.rules import fullest

_TRUST = 0.25
"""Effective weight of a row in the likelihood. The candidates share trees and rows, so their losses carry less
information than independent rows. Tuned on data sets that are not in the benchmark tables."""


def average_ridges(folds: Iterable[Fold], max_nodes: int) -> float | None:
    """Return the geometric mean of the candidate ridges, weighted by likelihood; None if values should be kept.

    For each ridge, and for the original values, the largest model within the budget is evaluated on every fold. The
    likelihood is that of normal errors with unknown variance, (loss / lowest)^(−rows / 2), with the number of rows
    scaled by `_TRUST`. Original values are preferred if they are more likely than all ridges together.
    """
    n_rows, losses = 0, []
    for fold in folds:
        losses.append(_losses(fold, max_nodes))
        n_rows += len(fold.validation_rows)
    runs = sorted(set.intersection(*map(set, losses)))
    ridge, kept = np.array(runs).T
    weight = _likelihood(np.array([sum(of_fold[run] for of_fold in losses) for run in runs]), n_rows)
    if weight[kept > 0].sum() > weight[kept == 0].sum():
        return None
    mean = np.average(np.log(ridge[kept == 0]), weights=weight[kept == 0])
    return float(f"{np.exp(mean):.3g}")


def _losses(fold: Fold, max_nodes: int) -> dict[tuple[float, float], float]:
    """Return the total loss of the largest model within the budget, keyed by (ridge, kept)."""
    table = fold.path.table
    pruned = np.arange(1, len(fold.path))
    small = pruned[table["n_nodes"][pruned] <= max_nodes]
    # If no point fits the budget, `select` raises the error later.
    points = np.sort(fullest(table, small if len(small) else pruned[-1:], fold.path.info.runs))
    evaluated = fold.path.take(points).evaluate_sample(fold.validation_rows, rows="the rows of a fold")
    losses = (fold.validation_rows.total_weight * evaluated.table["loss"][1:]).tolist()
    found: dict[tuple[float, float], float] = {}
    for ridge, kept, loss in zip(table["ridge"][points].tolist(), table["kept"][points].tolist(), losses, strict=True):
        found[ridge, kept] = min(loss, found.get((ridge, kept), np.inf))
    return found


def _likelihood(loss: NDArray[np.float64], n_rows: int) -> NDArray[np.float64]:
    """Return the likelihood of each loss relative to that of the lowest, (n_candidates,)."""
    least = loss.min()
    if least <= 0:
        return (loss == least).astype(np.float64)
    return np.asarray((loss / least) ** (-_TRUST * n_rows / 2))
