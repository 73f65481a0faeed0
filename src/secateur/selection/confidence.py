"""Certify which prunings of a path keep a limit on a mean loss, with a family-wise confidence over all of them.

A point that is selected among many looks better on the validation rows than it is. The test here allows for that: with
probability `confidence` over the draw of the rows, no certified point exceeds the limit in truth, whichever point is
then taken. It needs rows that neither the model nor its prunings were fitted on, drawn independently.

It is a step-down multiplier bootstrap: the critical value for the largest of many dependent t statistics is a quantile
of the largest deviation when each row's deviations are multiplied by a standard normal number. It is valid for large
numbers of rows; a rare, large loss that no validation row shows remains unknown. `secateur.selection.changed_rows`
tests numbers of changed predictions, exactly for any number of rows.

References
----------
V. Chernozhukov, D. Chetverikov and K. Kato (2013). Gaussian approximations and multiplier bootstrap for maxima of sums
of high-dimensional random vectors. Annals of Statistics 41.
J. P. Romano and M. Wolf (2005). Exact and approximate stepdown methods for multiple hypothesis testing. JASA 100.
P. R. Hansen (2005). A test for superior predictive ability. Journal of Business & Economic Statistics 23.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm

from secateur._util.blas import one_blas_thread
from secateur.errors import InvalidInputError

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_BLOCK = 512
"""Rows whose multipliers are in memory at a time."""
_POWER = 0.8
"""Probability with which `rows_needed` rows would certify the best point, if its estimates were true."""
_CONSTANT = 1e-12
"""Sum of squared deviations, relative to the sum of squares, below which all differences count as equal."""


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

        A t statistic grows with √rows, so n (critical + z)² / t² rows are needed, where z is the normal quantile of .8.
        """
        best = self.statistic.min(initial=np.inf)
        if not -np.inf < best < 0 or not np.isfinite(self.critical):
            return None
        return math.ceil(self.n_rows * ((self.critical + norm.ppf(_POWER)) / best) ** 2)

    def shortfall(self, limit: str) -> str:
        """Return what was found, what is needed and what to do if nothing is certified; `limit` is its name."""
        best, needed = self.statistic.min(initial=np.inf), self.rows_needed
        claim = (
            f"{self.n_rows:,.0f} validation rows cannot show with a confidence of {self.confidence:.12g} that any "
            f"pruning is within {limit}"
        )
        if best == np.inf:
            return f"{claim}: two rows with finite losses are needed. Pass more validation rows."
        if needed is None:
            return f"{claim}: none of them is below the limit on these rows. Allow a larger {limit}."
        return (
            f"{claim}: the best one is {-best:.1f} standard errors below the limit, and {self.critical:.1f} are "
            f"needed. Pass about {needed:,} validation rows, or allow a larger {limit}."
        )


def certify_mean(
    differences: ArrayLike, confidence: float, rng: np.random.Generator, weight: ArrayLike | None = None
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
        In (0, 1).
    rng : numpy Generator
        Draws the multipliers.
    weight : (n_rows,), optional
        Weights of the rows. The mean is Σ weight · difference / Σ weight.

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
    n_draws = draws_for(confidence)
    weight = _checked_weight(weight, differences.shape[1])
    sums = np.zeros((len(differences) + 1, 3 + n_draws))
    with one_blas_thread:
        for start in range(0, differences.shape[1], _BLOCK):
            rows = slice(start, start + _BLOCK)
            sums += multiplier_sums(differences[:, rows], weight[rows], rng, n_draws)
    return certify_sums(sums, confidence, rng)


def draws_for(confidence: float) -> int:
    """Return the number of bootstrap draws: 1000, or more so that ten of them exceed the critical value."""
    check_confidence(confidence)
    return max(1000, math.ceil(10 / (1 - confidence)))


def multiplier_sums(differences: Floats, weight: Floats, rng: np.random.Generator, n_draws: int) -> Floats:
    """Return the sums over some rows that `certify_sums` needs, (n_points + 1, 3 + n_draws).

    They add up over blocks and partitions of the rows, so that not all differences need to be in memory. The columns
    are Σwx, Σw²x, Σw²x² and Σwgx for each draw g ~ N(0, 1) of one multiplier per row; the last line is for x = 1.
    """
    if not weight.all():
        differences, weight = differences[:, weight > 0], weight[weight > 0]
    multipliers = rng.standard_normal((len(weight), n_draws))
    # A line with a number that is not finite has no finite sums; other lines do not depend on it.
    with np.errstate(invalid="ignore", over="ignore"):
        weighted = np.vstack([differences * weight, weight])
        moments = np.stack([weighted.sum(axis=1), weighted @ weight, (weighted**2).sum(axis=1)], axis=1)
        return np.hstack([moments, weighted @ multipliers])


def certify_sums(sums: Floats, confidence: float, rng: np.random.Generator) -> MeanTest:
    """Return the result of `certify_mean` from the total of `multiplier_sums` over all rows."""
    total, squares = sums[-1, :2]
    n_rows = total**2 / squares
    statistic, deviations = _studentised(sums, n_rows)
    # Student's distribution instead of the normal one: exact for a single point with normal differences.
    degrees = max(n_rows - 1, 1e-9)
    with np.errstate(divide="ignore", invalid="ignore"):
        deviations *= np.sqrt(degrees / rng.chisquare(degrees, deviations.shape[1]))
    # Points that are clearly above the limit are left out, (Hansen 2005, there with √(2 log log n)).
    candidates = np.isfinite(statistic) & (statistic <= math.sqrt(math.log(max(n_rows, 1.0))))
    certified, critical = _step_down(statistic, deviations, candidates, confidence)
    return MeanTest(certified | (statistic == -np.inf), statistic, critical, float(n_rows), confidence)


def _studentised(sums: Floats, n_rows: float) -> tuple[Floats, Floats]:
    """Return the t statistics, (n_points,), and the bootstrap draws of their deviations, (n_points, n_draws).

    The standard error is √(Σw²(x − mean)² · n/(n − 1)) / Σw, as for the column `increase_se` up to n/(n − 1).
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        first, first_squared, second_squared = sums[:-1, :3].T
        total, squares = sums[-1, :2]
        mean = first / total
        spread = np.maximum(second_squared - 2 * mean * first_squared + mean**2 * squares, 0.0)
        statistic = mean * total / np.sqrt(spread * n_rows / (n_rows - 1))
        # Σ g w (x − mean) / √(Σ w² (x − mean)²) ~ N(0, 1), given the rows (Chernozhukov et al. 2013, section 3).
        deviations = (sums[:-1, 3:] - mean[:, None] * sums[-1, 3:]) / np.sqrt(spread)[:, None]
    statistic = np.where(spread <= _CONSTANT * second_squared, np.where(mean <= 0, -np.inf, np.inf), statistic)
    finite = np.isfinite(sums[:-1]).all(axis=1)
    return np.where(finite & (n_rows > 1 + 1e-9), statistic, np.inf), deviations


def _step_down(statistic: Floats, deviations: Floats, candidates: Bools, confidence: float) -> tuple[Bools, float]:
    """Return the certified points and the last critical value (Romano and Wolf 2005, algorithm 4.1).

    Invariant: `left` holds the candidates that are not certified, and no set without them has a larger quantile.
    """
    left, certified, critical = candidates.copy(), np.zeros_like(candidates), math.nan
    while left.any():
        largest = np.sort(np.nan_to_num(deviations[left].max(axis=0), nan=np.inf, posinf=np.inf))
        # The order statistic for which the test is valid with a finite number of draws.
        place = math.ceil(confidence * (len(largest) + 1)) - 1
        critical = max(float(largest[place]), 0.0)
        new = left & (statistic <= -critical)
        if not new.any():
            break
        certified |= new
        left &= ~new
    return certified, critical


def check_confidence(confidence: float) -> None:
    """Raise InvalidInputError unless a confidence lies between 0 and 1."""
    if not 0 < confidence < 1:
        raise InvalidInputError(f"confidence={confidence}, but a number between 0 and 1 is needed. Pass 0.95, say.")


def _checked_weight(weight: ArrayLike | None, n_rows: int) -> Floats:
    weight = np.ones(n_rows) if weight is None else np.asarray(weight, np.float64)
    if weight.shape != (n_rows,) or not (np.isfinite(weight) & (weight >= 0)).all() or not weight.any():
        raise InvalidInputError(
            f"weight has the shape {weight.shape} and a total of {weight.sum():g}, but one finite number of at least 0 "
            f"for each of {n_rows} rows is needed, not all of them 0. Fix or drop those rows."
        )
    return weight
