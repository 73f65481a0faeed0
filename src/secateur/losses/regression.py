"""How wrong numbers are: the losses boosters are trained for.

All but the squared error are for choosing a point. They cannot be had from sums over rows, so while a path is
made trees that predict the target are judged by squared error.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from secateur.forest import Forest
from secateur.forest.node_sums import NodeStats
from secateur.losses.base import Floats, Loss

_SMALLEST_MEAN = float(np.finfo(np.float64).tiny)


class SquaredError(Loss):
    """Squared difference between the predicted and the true value."""

    name = "squared_error"
    task = "regression"

    def rows(self, forest: Forest, raw: Floats, y: NDArray[Any]) -> Floats:
        """Return (prediction − y)², averaged over targets."""
        return ((forest.response.mean(raw, ())[0] - y) ** 2).mean(axis=1)

    def nodes(self, forest: Forest, stats: NodeStats) -> Floats:
        """Return Σ w (value − y)² at each node."""
        value = forest.value - stats.shift
        loss = stats.square - 2 * value * stats.total + value**2 * stats.weight[:, None]
        return np.maximum(loss, 0.0).mean(axis=1)


class RowLoss(Loss):
    """A loss that has to see the rows one by one."""

    task = "regression"
    additive = False

    @abstractmethod
    def of(self, mean: Floats, y: Floats) -> Floats:
        """Return the loss of predicting `mean` where `y` is true, both (n_rows, n_targets)."""

    def rows(self, forest: Forest, raw: Floats, y: NDArray[Any]) -> Floats:
        """Return the loss of what the sums mean, averaged over targets."""
        return self.of(forest.response.mean(raw, ())[0].astype(np.float64), y).mean(axis=1)

    def nodes(self, forest: Forest, stats: NodeStats) -> Floats:
        """Return the squared error."""
        return SquaredError().nodes(forest, stats)

    def check(self, y: Floats, allowed: NDArray[np.bool_], need: str) -> None:
        """Raise ValueError unless all targets are allowed."""
        if not allowed.all():
            raise ValueError(
                f"y has values such as {y[~allowed].min():g}; the loss {self.name} needs {need}. "
                "Drop those rows, or name another loss, such as squared_error."
            )


class AbsoluteError(RowLoss):
    """Distance between the predicted and the true value."""

    name = "absolute_error"

    def of(self, mean: Floats, y: Floats) -> Floats:
        """Return |mean − y|."""
        return np.abs(mean - y)


@dataclass(frozen=True)
class Quantile(RowLoss):
    """The pinball loss, least where a share of the targets, `level`, is below the prediction."""

    name = "quantile"
    level: float = 0.5

    def of(self, mean: Floats, y: Floats) -> Floats:
        """Return level · (y − mean) above the prediction and (1 − level) · (mean − y) below it."""
        return np.maximum(self.level * (y - mean), (self.level - 1) * (y - mean))


@dataclass(frozen=True)
class Tweedie(RowLoss):
    """Deviance of a variable whose variance is the mean to a `power`, between 1 (Poisson) and 2 (gamma)."""

    name = "tweedie"
    power: float = 1.5

    def of(self, mean: Floats, y: Floats) -> Floats:
        """Return twice the log-likelihood lost against a perfect prediction."""
        self.check(y, y >= 0, "no negative targets")
        mean, p = np.maximum(mean, _SMALLEST_MEAN), self.power
        perfect = y ** (2 - p) / ((1 - p) * (2 - p))
        return np.maximum(2 * (perfect - y * mean ** (1 - p) / (1 - p) + mean ** (2 - p) / (2 - p)), 0.0)


class Poisson(RowLoss):
    """Poisson deviance, for counts."""

    name = "poisson"

    def of(self, mean: Floats, y: Floats) -> Floats:
        """Return 2 (y log(y / mean) − y + mean)."""
        self.check(y, y >= 0, "no negative targets")
        mean = np.maximum(mean, _SMALLEST_MEAN)
        return np.maximum(2 * (xlogy(y, y / mean) - y + mean), 0.0)


class Gamma(RowLoss):
    """Gamma deviance, for positive amounts."""

    name = "gamma"

    def of(self, mean: Floats, y: Floats) -> Floats:
        """Return 2 (log(mean / y) + y / mean − 1)."""
        self.check(y, y > 0, "targets above 0")
        mean = np.maximum(mean, _SMALLEST_MEAN)
        return np.maximum(2 * (np.log(mean / y) + y / mean - 1), 0.0)


class SquaredLogError(RowLoss):
    """Squared difference between the logarithms of 1 + value."""

    name = "squared_log_error"

    def of(self, mean: Floats, y: Floats) -> Floats:
        """Return (log(1 + mean) − log(1 + y))²."""
        self.check(y, y > -1, "targets above -1")
        return (np.log1p(np.maximum(mean, -1 + 1e-6)) - np.log1p(y)) ** 2
