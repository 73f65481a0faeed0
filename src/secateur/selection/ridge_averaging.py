"""Which ridge a number of nodes asks for: rows held out weigh those that were tried, and their mean is taken.

The lowest of a few noisy losses is often just the luckiest; a mean is not, and may lie between the ridges tried.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from secateur.path.rules import fullest
from secateur.selection.cross_validation import Fold

_TRUST = 0.25
"""What a row counts where losses are compared: they are of the same trees on the same rows, and say less than rows of
their own would. Chosen on data sets that are in no table of the benchmarks."""


def average_ridges(folds: Iterable[Fold], max_nodes: int) -> float | None:
    """Return the ridge to go on with; None if values are better kept as they are.

    Of each ridge, and of kept values, the largest model that each trial has within the budget is judged. A loss makes a
    ridge likely as it would for normal errors of unknown size, (loss / lowest)^(-rows / 2), but rows count less. Kept
    values must be likelier than all ridges together.
    """
    n_rows, judged = 0, []
    for fold in folds:
        judged.append(_losses(fold, max_nodes))
        n_rows += len(fold.judging)
    kinds = sorted(set.intersection(*map(set, judged)))
    ridge, kept = np.array(kinds).T
    weight = _likelihood(np.array([sum(losses[kind] for losses in judged) for kind in kinds]), n_rows)
    if weight[kept > 0].sum() > weight[kept == 0].sum():
        return None
    mean = np.average(np.log(ridge[kept == 0]), weights=weight[kept == 0])
    return float(f"{np.exp(mean):.3g}")


def _losses(fold: Fold, max_nodes: int) -> dict[tuple[float, float], float]:
    """Return the loss of the largest model within the budget, times the rows' weight, by ridge and by whether kept."""
    table = fold.path.table
    pruned = np.arange(1, len(fold.path))
    small = pruned[table["n_nodes"][pruned] <= max_nodes]
    points = np.sort(fullest(table, small if len(small) else pruned[-1:]))  # where none fits, select will say so
    judged = fold.path.take(points).evaluate_sample(fold.judging, rows="some rows")
    kinds = zip(table["ridge"][points].tolist(), table["kept"][points].tolist(), strict=True)
    return dict(zip(kinds, (fold.judging.total_weight * judged.table["loss"][1:]).tolist(), strict=True))


def _likelihood(loss: NDArray[np.float64], n_rows: int) -> NDArray[np.float64]:
    """Return how likely losses are, compared to the lowest."""
    least = loss.min()
    if least <= 0:
        return (loss == least).astype(np.float64)
    return np.asarray((loss / least) ** (-_TRUST * n_rows / 2))
