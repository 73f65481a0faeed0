"""Define the losses for regression, as used as objectives of gradient boosting.

Only the squared error can be computed from node sums. The other losses serve to select a point; a path over trees that
predict the target themselves is computed with the squared error.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy
from scipy.stats import rankdata

from secateur.errors import InvalidInputError
from secateur.forest import Forest
from secateur.forest.node_sums import NodeStats
from secateur.losses.base import Floats, Loss

_SMALLEST_MEAN = float(np.finfo(np.float64).tiny)


class SquaredError(Loss):
    """Squared error (prediction − y)²."""

    name = "squared_error"
    task = "regression"

    def rows(self, forest: Forest, raw: Floats, y: NDArray[Any]) -> Floats:
        """Return (prediction − y)², averaged over targets."""
        return ((forest.response.mean(raw, ())[0] - y) ** 2).mean(axis=1)

    def nodes(self, forest: Forest, stats: NodeStats) -> Floats:
        """Return Σ w (value − y)² at each node."""
        # Σ w (y − v)² = Σ w y² − 2 v Σ w y + v² Σ w, with y and v relative to the shift.
        value = forest.value - stats.shift
        loss = stats.square - 2 * value * stats.total + value**2 * stats.weight[:, None]
        return np.maximum(loss, 0.0).mean(axis=1)

    def scale(self, y: NDArray[Any], weight: Floats) -> float | None:
        """Return the variance of the targets, the loss of a constant prediction."""
        mean = np.average(y, axis=0, weights=weight)
        return float(np.average(((y - mean) ** 2).mean(axis=1), weights=weight))


class RowLoss(Loss):
    """Base class of losses that need single rows and cannot be computed from node sums."""

    task = "regression"
    additive = False

    @abstractmethod
    def of(self, mean: Floats, y: Floats) -> Floats:
        """Return the loss of the prediction `mean` for the target `y`, both (n_rows, n_targets)."""

    def rows(self, forest: Forest, raw: Floats, y: NDArray[Any]) -> Floats:
        """Return the loss of the predictions after the link, averaged over targets."""
        return self.of(forest.response.mean(raw, ())[0].astype(np.float64), y).mean(axis=1)

    def nodes(self, forest: Forest, stats: NodeStats) -> Floats:
        """Return the squared error at each node, which replaces this loss while a path is computed."""
        return SquaredError().nodes(forest, stats)

    def check(self, y: Floats, allowed: NDArray[np.bool_], need: str) -> None:
        """Raise InvalidInputError unless all targets are in the domain of the loss."""
        if not allowed.all():
            raise InvalidInputError(
                f"y contains values such as {y[~allowed].min():g}, but the loss {self.name} needs {need}. "
                "Drop those rows, or use another loss, such as squared_error."
            )


class ScoreError(SquaredError):
    """Squared error of raw scores, before the link; for models that are compared with their own scores."""

    name = "score_error"

    def rows(self, forest: Forest, raw: Floats, y: NDArray[Any]) -> Floats:
        """Return (score − y)², averaged over outputs."""
        return ((raw - y) ** 2).mean(axis=1)


class RankCorrelation(RowLoss):
    """One minus Spearman's rank correlation of predictions and targets; the order of rows is all that counts."""

    name = "rank_correlation"

    def of(self, mean: Floats, y: Floats) -> Floats:
        """Return 6 d² / (n² − 1) of the difference d of both ranks, whose mean over rows is 1 − ρ without ties."""
        ranks = [rankdata(column, axis=0) for column in (mean, y)]
        return 6 * (ranks[0] - ranks[1]) ** 2 / max(len(y) ** 2 - 1, 1)

    def scale(self, y: NDArray[Any], weight: Floats) -> float | None:
        """Return 1, the loss of an unrelated order."""
        return 1.0


def _check_number(name: str, number: float, low: float, high: float) -> None:
    """Raise InvalidInputError unless a parameter of a loss lies strictly between two numbers."""
    if not low < number < high:
        above = f"greater than {low:g}" + (f" and less than {high:g}" if np.isfinite(high) else "")
        raise InvalidInputError(f"The {name} is {number!r}, but it must be {above}. Pass such a number.")


class AbsoluteError(RowLoss):
    """Absolute error |prediction − y|."""

    name = "absolute_error"

    def of(self, mean: Floats, y: Floats) -> Floats:
        """Return |mean − y|."""
        return np.abs(mean - y)


@dataclass(frozen=True)
class Quantile(RowLoss):
    """Pinball loss max(q (y − prediction), (q − 1) (y − prediction)) of the q-quantile, q = `level`."""

    name = "quantile"
    level: float = 0.5

    def __post_init__(self) -> None:
        _check_number("level of a quantile", self.level, 0.0, 1.0)

    def of(self, mean: Floats, y: Floats) -> Floats:
        """Return level · (y − mean) if y is above the prediction, otherwise (1 − level) · (mean − y)."""
        return np.maximum(self.level * (y - mean), (self.level - 1) * (y - mean))


@dataclass(frozen=True)
class Huber(RowLoss):
    """Huber loss: r² / 2 for residuals r up to `delta`, beyond that delta (|r| − delta / 2)."""

    name = "huber"
    delta: float = 1.0

    def __post_init__(self) -> None:
        _check_number("delta of huber", self.delta, 0.0, np.inf)

    def of(self, mean: Floats, y: Floats) -> Floats:
        """Return r² / 2, or its linear continuation."""
        size = np.abs(y - mean)
        return np.where(size <= self.delta, size**2 / 2, self.delta * (size - self.delta / 2))


@dataclass(frozen=True)
class PseudoHuber(RowLoss):
    """Pseudo-Huber loss delta² (√(1 + (r / delta)²) − 1), a smooth version of the Huber loss."""

    name = "pseudo_huber"
    delta: float = 1.0

    def __post_init__(self) -> None:
        _check_number("delta of pseudo_huber", self.delta, 0.0, np.inf)

    def of(self, mean: Floats, y: Floats) -> Floats:
        """Return delta² (√(1 + (r / delta)²) − 1)."""
        return self.delta**2 * (np.hypot(1.0, (y - mean) / self.delta) - 1)


@dataclass(frozen=True)
class Tweedie(RowLoss):
    """Tweedie deviance for variance prediction^power, 1 (Poisson) < power < 2 (gamma); for amounts that may be 0."""

    name = "tweedie"
    power: float = 1.5

    def __post_init__(self) -> None:
        _check_number("power of tweedie", self.power, 1.0, 2.0)

    def of(self, mean: Floats, y: Floats) -> Floats:
        """Return the unit deviance, twice the difference in log-likelihood to a perfect prediction."""
        self.check(y, y >= 0, "no negative targets")
        mean, p = np.maximum(mean, _SMALLEST_MEAN), self.power
        perfect = y ** (2 - p) / ((1 - p) * (2 - p))
        return np.maximum(2 * (perfect - y * mean ** (1 - p) / (1 - p) + mean ** (2 - p) / (2 - p)), 0.0)


class Poisson(RowLoss):
    """Poisson deviance 2 (y log(y / m) − y + m) of a prediction m, for counts."""

    name = "poisson"

    def of(self, mean: Floats, y: Floats) -> Floats:
        """Return 2 (y log(y / mean) − y + mean)."""
        self.check(y, y >= 0, "no negative targets")
        mean = np.maximum(mean, _SMALLEST_MEAN)
        return np.maximum(2 * (xlogy(y, y / mean) - y + mean), 0.0)


class Gamma(RowLoss):
    """Gamma deviance 2 (log(m / y) + y / m − 1) of a prediction m, for positive amounts."""

    name = "gamma"

    def of(self, mean: Floats, y: Floats) -> Floats:
        """Return 2 (log(mean / y) + y / mean − 1)."""
        self.check(y, y > 0, "targets above 0")
        mean = np.maximum(mean, _SMALLEST_MEAN)
        return np.maximum(2 * (np.log(mean / y) + y / mean - 1), 0.0)


class SquaredLogError(RowLoss):
    """Squared logarithmic error (log(1 + prediction) − log(1 + y))², for amounts."""

    name = "squared_log_error"

    def of(self, mean: Floats, y: Floats) -> Floats:
        """Return (log(1 + mean) − log(1 + y))²."""
        self.check(y, y > -1, "targets above -1")
        return (np.log1p(np.maximum(mean, -1 + 1e-6)) - np.log1p(y)) ** 2
