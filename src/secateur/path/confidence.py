"""Certify which prunings of a path keep a limit on a mean loss, with a family-wise confidence over all of them.

A point that is selected among many looks better on the validation rows than it is. The test here allows for that: with
probability `confidence` over the draw of the rows, no certified point exceeds the limit in truth, whichever point is
then taken. It needs rows that neither the model nor its prunings were fitted on, drawn independently.

It is a step-down multiplier bootstrap: the critical value for the largest of many dependent t statistics is a quantile
of the largest deviation when each row's deviations are multiplied by a standard normal number. Given the rows, such
deviations are normal with the covariance of the points, from which they are drawn. The test is valid for many rows;
losses with few values need `largest`. `secateur.path.changed_rows` tests numbers of changed predictions, exactly.

References
----------
V. Chernozhukov, D. Chetverikov and K. Kato (2013). Gaussian approximations and multiplier bootstrap for maxima of sums
of high-dimensional random vectors. Annals of Statistics 41.
J. P. Romano and M. Wolf (2005). Exact and approximate stepdown methods for multiple hypothesis testing. JASA 100.
P. R. Hansen (2005). A test for superior predictive ability. Journal of Business & Economic Statistics 23.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm

from secateur._util.blas import one_blas_thread
from secateur._util.numbers import is_number
from secateur.errors import InvalidInputError

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_BLOCK = 4096
"""Rows whose weighted differences are in memory at a time."""
_POWER = 0.8
"""Probability with which `rows_needed` rows would certify the best point, if its estimates were true."""
_CONSTANT = 1e-12
"""Sum of squared deviations, relative to the sum of squares, below which all differences count as equal."""
UNSEEN = 3
"""Added rows with the largest difference. Up to a critical value of c = 3.8, 3 + √3 c ≥ log(1 / P(N(0, 1) > c)), the
expected number of errors of which none is seen with that probability (Poisson)."""


@dataclass(frozen=True, eq=False)
class MeanTest:
    """The result of `certify_mean`.

    Attributes
    ----------
    certified : (n_points,) bools
    statistic : (n_points,)
        Mean difference over its standard error; infinite if there is no standard error.
    critical : float
        A point is certified if its statistic is at most −critical; the value of the last step, NaN without one.
    n_rows : float
        Number of rows, for weighted rows the effective number (Σw)² / Σw².
    confidence : float
    """

    certified: Bools
    statistic: Floats
    critical: float
    n_rows: float
    confidence: float

    @property
    def rows_needed(self) -> int | None:
        """How many rows would certify the best point with probability 0.8; None if its estimate is not below the limit.

        A t statistic grows with √rows: n (critical + z)² / t² rows are needed, where z is the normal quantile of .8.
        """
        best = self.statistic.min(initial=np.inf)
        if not -np.inf < best < 0 or not np.isfinite(self.critical):
            return None
        return math.ceil(self.n_rows * ((self.critical + norm.ppf(_POWER)) / best) ** 2)

    def shortfall(self, limit: str, unit: str = "validation rows") -> str:
        """Return what was found, what is needed and what to do if nothing is certified.

        `limit` is its name, `unit` what is counted.
        """
        best, needed = self.statistic.min(initial=np.inf), self.rows_needed
        claim = (
            f"{self.n_rows:,.0f} {unit} cannot show with a confidence of {self.confidence:.12g} that any "
            f"pruning is within {limit}"
        )
        if best == np.inf:
            return f"{claim}: two rows with finite losses are needed. Pass more {unit}."
        if needed is None:
            return f"{claim}: none of them is below the limit on these rows. Allow a larger {limit}."
        return (
            f"{claim}: the best one is {-best:.1f} standard errors below the limit, and {self.critical:.1f} are "
            f"needed. Pass about {needed:,} {unit}, or allow a larger {limit}."
        )


def certify_mean(
    differences: ArrayLike,
    confidence: float,
    rng: np.random.Generator,
    *,
    weight: ArrayLike | None = None,
    largest: float | None = None,
) -> MeanTest:
    """Certify the points whose mean difference is at most 0, by a step-down multiplier bootstrap.

    A point is certified wrongly, although its true mean is above 0, with probability at most 1 − confidence for all
    points together, if there are many rows.

    Parameters
    ----------
    differences : (n_points, n_rows)
        How much each row exceeds the limit: loss − (1 + max_loss_increase) · unpruned loss, or unpruned score −
        max_score_drop − score. A point with a difference that is not finite is never certified. If all differences are
        equal, the point is certified if they are at most 0. A single row certifies nothing. The unpruned model needs no
        certificate and should be left out.
    confidence : float
        Above 0 and at most 0.999.
    rng : numpy Generator
        Draws the deviations.
    weight : (n_rows,), optional
        Weights of the rows, for the mean Σ weight · difference / Σ weight. Very unequal weights need more rows.
    largest : float, optional
        The largest possible difference of a row: 1 for errors counted as 0 or 1, and for the accuracy. Three rows with
        it are added for what no validation row shows. Where most differences are equal, this is necessary: without
        them, prunings that make more errors than allowed can be certified in most draws, because few or none are seen.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> differences = rng.normal([[-0.5], [-0.02], [0.3]], 1.0, (3, 400))
    >>> certify_mean(differences, 0.95, rng).certified.tolist()
    [True, False, False]
    """
    differences = np.asarray(differences, np.float64)
    if differences.ndim != 2 or not differences.shape[1]:
        raise InvalidInputError(
            f"differences have the shape {differences.shape}, but (n_points, n_rows) with at least one row is needed. "
            "Pass one difference for each point and row."
        )
    check_confidence(confidence)
    weight = _checked_weight(weight, differences.shape[1])
    sums = np.zeros((len(differences) + 1, len(differences) + 2))
    with one_blas_thread:
        for start in range(0, differences.shape[1], _BLOCK):
            rows = slice(start, start + _BLOCK)
            sums += weighted_sums(differences[:, rows], weight[rows])
        return certify_sums(sums, confidence, rng, largest)


def weighted_sums(differences: Floats, weight: Floats) -> Floats:
    """Return the sums over some rows that `certify_sums` needs, (n_points + 1, n_points + 2).

    They add up over blocks and partitions of the rows, so that not all differences need to be in memory. The first
    column is Σwx, the others are Σw²xx' for all pairs of points; the last line and column are for x = 1.
    """
    if not weight.all():
        differences, weight = differences[:, weight > 0], weight[weight > 0]
    # A point with a number that is not finite has no finite sums; the others do not depend on it.
    with np.errstate(invalid="ignore", over="ignore"):
        weighted = np.vstack([differences * weight, weight])
        return np.hstack([weighted.sum(axis=1)[:, None], weighted @ weighted.T])


def certify_blocks(
    values: Floats, n_rows: int, degrees: float, confidence: float, rng: np.random.Generator
) -> MeanTest:
    """Certify the points from pseudo-values of blocks of rows instead of single rows, (n_points, n_blocks).

    `degrees` are the degrees of freedom of Student's distribution, at most the number of blocks less one.
    """
    sums = weighted_sums(values, np.ones(values.shape[1]))
    return replace(certify_sums(sums, confidence, rng, degrees=degrees), n_rows=float(n_rows))


def certify_sums(
    sums: Floats,
    confidence: float,
    rng: np.random.Generator,
    largest: float | None = None,
    degrees: float = math.inf,
) -> MeanTest:
    """Return the result of `certify_mean` from the total of `weighted_sums` over all rows."""
    n_rows = float(sums[-1, 0] ** 2 / sums[-1, -1])
    if largest is not None:
        one_row = np.full((len(sums) - 1, 1), float(largest))
        sums = sums + UNSEEN * weighted_sums(one_row, sums[-1:, -1] / sums[-1, 0])
    statistic, covariance, n_counted = _studentised(sums)
    degrees = max(min(n_counted - 1, degrees), 0.0)
    if min(n_rows - 1, degrees) < 1e-9:
        degrees = 1.0
        statistic = np.full_like(statistic, np.inf)
    # Points clearly above the limit are left out (Hansen 2005, there with √(2 log log n)). Any order is the same.
    points = np.flatnonzero(np.isfinite(statistic) & (statistic <= math.sqrt(math.log(n_counted))))
    points = points[np.argsort(statistic[points], kind="stable")]
    deviations = _draws(covariance[np.ix_(points, points)], degrees, _draws_for(confidence), rng)
    passed, critical = _step_down(statistic[points], deviations, confidence)
    certified = statistic == -np.inf
    certified[points[passed]] = True
    return MeanTest(certified, statistic, critical, n_rows, confidence)


def _draws_for(confidence: float) -> int:
    """Return the number of draws: at least 2000, and so many that 20 of them exceed the critical value."""
    return max(2000, math.ceil(20 / (1 - confidence)))


def _studentised(sums: Floats) -> tuple[Floats, Floats, float]:
    """Return the t statistics, (n_points,), the covariance of the sums over rows, and the effective number of rows.

    The standard error is √(Σw²(x − mean)² · n/(n − 1)) / Σw, as for the column `increase_se` up to n/(n − 1).
    """
    total, squares = sums[-1, [0, -1]]
    n_rows = max(float(total**2 / squares), 1 + 1e-9)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        mean, first, second = sums[:-1, 0] / total, sums[:-1, -1], sums[:-1, 1:-1]
        # Σ w² (x − mean) (x' − mean')
        covariance = second - np.outer(mean, first) - np.outer(first, mean) + squares * np.outer(mean, mean)
        spread = np.maximum(covariance.diagonal(), 0.0)
        statistic = sums[:-1, 0] / np.sqrt(spread * n_rows / (n_rows - 1))
        constant = spread <= _CONSTANT * second.diagonal()
    statistic = np.where(constant, np.where(mean <= 0, -np.inf, np.inf), statistic)
    finite = np.isfinite(mean) & np.isfinite(spread) & np.isfinite(second.diagonal())
    return np.where(finite, statistic, np.inf), covariance, n_rows


def _draws(covariance: Floats, degrees: float, n_draws: int, rng: np.random.Generator) -> Floats:
    """Return draws of the standardised deviations, (n_points, n_draws).

    Σ g w (x − mean) with g ~ N(0, 1) is normal with the given covariance (Chernozhukov et al. 2013, section 3). The
    common factor makes it Student's distribution, which is exact for a single point with normal differences.
    """
    scale = np.sqrt(covariance.diagonal())
    # The symmetric square root exists for equal points, too, and does not depend on the order of the points.
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    factor: Floats = np.sqrt(degrees / np.maximum(rng.chisquare(degrees, n_draws), 1e-300))
    return (root @ rng.standard_normal((len(scale), n_draws))) * factor


def _step_down(statistic: Floats, deviations: Floats, confidence: float) -> tuple[Bools, float]:
    """Return the certified points and the last critical value (Romano and Wolf 2005, algorithm 4.1).

    Invariant: `left` holds the points that are not certified. The critical value never increases, as points only leave.
    """
    left, critical = np.ones(len(statistic), bool), math.nan
    # The order statistic for which a test with a finite number of draws is valid.
    place = math.ceil(confidence * (deviations.shape[1] + 1)) - 1
    while left.any():
        critical = max(float(np.partition(deviations[left].max(axis=0), place)[place]), 0.0)
        passed = left & (statistic <= -critical)
        if not passed.any():
            break
        left &= ~passed
    return ~left, critical


def check_confidence(confidence: float) -> None:
    """Raise InvalidInputError unless a confidence is above 0 and at most 0.999."""
    if not is_number(confidence) or not 0 < confidence <= 0.999:
        raise InvalidInputError(f"confidence={confidence!r}, but a number from 0 to 0.999 is needed. Pass 0.95, say.")


def _checked_weight(weight: ArrayLike | None, n_rows: int) -> Floats:
    weight = np.asarray(np.ones(n_rows) if weight is None else weight, np.float64)
    if weight.shape != (n_rows,) or not (np.isfinite(weight) & (weight >= 0)).all() or not weight.any():
        raise InvalidInputError(
            f"weight has the shape {weight.shape} and a total of {weight.sum():g}, but one finite number of at least 0 "
            f"for each of {n_rows} rows is needed, not all of them 0. Fix or drop those rows."
        )
    return weight
