"""Certify which prunings of a path change few predictions, exactly and with a family-wise confidence.

The number of validation rows whose prediction changes is binomial, so that the test holds for any number of rows. Each
run of a solver is a sequence of ever smaller prunings, which is tested from its largest point down: later points need
no correction for the earlier ones, because the order does not depend on the rows. Runs share the probability of error.

References
----------
C. J. Clopper and E. S. Pearson (1934). The use of confidence or fiducial limits illustrated in the case of the
binomial. Biometrika 26.
W. Maurer, L. A. Hothorn and W. Lehmacher (1995). Multiple comparisons in drug clinical trials and preclinical assays:
a-priori ordered hypotheses. Biometrie in der chemisch-pharmazeutischen Industrie 6.
W. Hoeffding (1963). Probability inequalities for sums of bounded random variables. JASA 58.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta, binom

from secateur.errors import InvalidInputError
from secateur.path.confidence import check_confidence

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ChangedTest:
    """The result of `certify_changed`.

    Attributes
    ----------
    certified : (n_points,) bools
    p_value : (n_points,)
        Probability of at most as many changes, if a share `max_changed` of all rows changed.
    fewest : int
        Number of changes at the best of the points with which a run begins.
    n_rows, n_runs : int
    max_changed, confidence : float
    """

    certified: Bools
    p_value: Floats
    fewest: int
    n_rows: int
    n_runs: int
    max_changed: float
    confidence: float

    @property
    def rows_needed(self) -> int | None:
        """How many rows would certify a point if the share of changes stays that of `fewest`; None if none would."""
        return rows_for_changed(self.max_changed, self.confidence, self.n_runs, self.fewest / self.n_rows)

    def shortfall(self) -> str:
        """Return what was found, what is needed and what to do if nothing is certified."""
        bound = upper_bound(self.fewest, self.n_rows, 1 - (1 - self.confidence) / self.n_runs)
        found = (
            f"{self.n_rows:,} rows cannot show with a confidence of {self.confidence:.12g} that at most "
            f"{self.max_changed:.3g} of the predictions change: with {self.fewest or 'none'} changed, up to "
            f"{bound:.3g} might."
        )
        needed = self.rows_needed
        if needed is None:
            return f"{found} Fewer changes are needed, not more rows. Allow a larger max_changed."
        return (
            f"{found} Pass about {needed:,} rows as validation (targets are not needed), or allow a larger max_changed."
        )


def certify_changed(
    n_changed: ArrayLike, n_rows: int, runs: ArrayLike, order: ArrayLike, max_changed: float, confidence: float
) -> ChangedTest:
    """Certify the points that change at most a share `max_changed` of the predictions, by exact binomial tests.

    A point is certified wrongly with probability at most 1 − confidence for all points together. Rows with weights have
    no binomial number; `certify_mean` can test changed − max_changed instead.

    Parameters
    ----------
    n_changed : (n_points,) ints
        Number of validation rows whose prediction differs from the unpruned model's. The unpruned model needs no
        certificate and should be left out.
    n_rows : int
    runs : (n_points,)
        The run of each point; any labels.
    order : (n_points,)
        The size of each point. Within a run, points are tested from the largest to the smallest until one fails; points
        of the same size in the order of the path.
    max_changed : float
        In (0, 1).
    confidence : float
        Above 0 and at most 0.999.

    Examples
    --------
    >>> certify_changed([1, 9, 2], 1000, ["a", "a", "a"], [50, 20, 5], 0.01, 0.95).certified.tolist()
    [True, False, False]
    """
    n_changed, order = np.asarray(n_changed), np.asarray(order)
    codes = np.unique(np.asarray(runs), return_inverse=True)[1]
    _check(n_changed, n_rows, codes, order, max_changed, confidence)
    n_runs = int(codes.max()) + 1
    # P(Binomial(n, max_changed) ≤ k) is the p-value of the hypothesis that more rows change (Clopper and Pearson 1934).
    p_value = np.asarray(binom.cdf(n_changed, n_rows, max_changed), np.float64)
    passed = p_value <= (1 - confidence) / n_runs
    certified, firsts = np.zeros(len(codes), bool), []
    for run in range(n_runs):
        points = np.flatnonzero(codes == run)
        points = points[np.argsort(-order[points], kind="stable")]
        # Fixed sequence: a point is tested only if all before it passed (Maurer et al. 1995).
        certified[points] = np.logical_and.accumulate(passed[points])
        firsts.append(int(n_changed[points[0]]))
    return ChangedTest(certified, p_value, min(firsts), n_rows, n_runs, max_changed, confidence)


def rows_for_changed(max_changed: float, confidence: float, n_runs: int = 1, share: float = 0.0) -> int | None:
    """Return how many rows suffice to certify a point at which a share of the rows changes; None if no number does.

    This is log(n_runs / (1 − confidence)) / KL(share, max_changed), from P(Binomial(n, q) ≤ n·share) ≤ exp(−n KL)
    (Hoeffding 1963, theorem 1). Without a change it is exact: log((1 − confidence) / n_runs) / log(1 − max_changed).

    Examples
    --------
    >>> rows_for_changed(0.01, 0.95, n_runs=4)
    437
    """
    if share >= max_changed:
        return None
    divergence = (1 - share) * math.log((1 - share) / (1 - max_changed))
    divergence += share * math.log(share / max_changed) if share else 0.0
    return math.ceil(math.log(n_runs / (1 - confidence)) / divergence)


def upper_bound(n_changed: int, n_rows: int, confidence: float) -> float:
    """Return the upper Clopper–Pearson bound of a share: P(Binomial(n_rows, bound) ≤ n_changed) = 1 − confidence."""
    if n_changed >= n_rows:
        return 1.0
    return float(beta.ppf(confidence, n_changed + 1, n_rows - n_changed))


def _check(
    n_changed: NDArray[np.int64],
    n_rows: int,
    codes: NDArray[np.intp],
    order: NDArray[np.int64],
    max_changed: float,
    confidence: float,
) -> None:
    check_confidence(confidence)
    if not 0 < max_changed < 1:
        raise InvalidInputError(f"max_changed={max_changed}, but a number between 0 and 1 is needed. Pass 0.01, say.")
    if not (n_changed.shape == codes.shape == order.shape == (len(codes),)) or not len(codes):
        raise InvalidInputError(
            f"n_changed, runs and order have the shapes {n_changed.shape}, {codes.shape} and {order.shape}, but one "
            "number for each point, and at least one point, is needed. Pass arrays of equal length."
        )
    if n_rows < 1 or n_changed.min() < 0 or n_changed.max() > n_rows:
        raise InvalidInputError(
            f"Between {n_changed.min()} and {n_changed.max()} of {n_rows} rows are changed, but numbers from 0 to a "
            "positive number of rows are needed. Pass counts of rows, not shares."
        )
