"""Define the objectives of raw scores that block descent minimises: losses with gradient, curvature and link.

An objective replaces the loss of a row by a parabola in its raw score that touches the loss at the current score. With
a curvature that is large enough the parabola lies above the loss, so that minimising it cannot increase the loss.

References
----------
J. Friedman (2001), Greedy function approximation: a gradient boosting machine, Annals of Statistics 29 (losses of raw
scores). T. Jaakkola and M. Jordan (2000), Bayesian parameter estimation via variational methods, Statistics and
Computing 10 (bound on the logistic loss). D. Böhning (1992), Multinomial logistic regression algorithm, Annals of the
Institute of Statistical Mathematics 44 (bound on the softmax loss). D. Hunter and K. Lange (2000), Quantile regression
via an MM algorithm, Journal of Computational and Graphical Statistics 9 (bound on the pinball loss).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from secateur.forest import Forest
from secateur.forest.links import (
    Anomaly,
    Identity,
    Log,
    Logit,
    OneVsAll,
    Probability,
    Sigmoid,
    SignedSquare,
    Softmax,
    Softplus,
    Vote,
)
from secateur.losses.regression import Huber, PseudoHuber

Floats = NDArray[np.float64]
_TINY = 1e-9


class Objective(ABC):
    """Loss of a raw score, as block descent minimises it; 0 for a perfect prediction."""

    quadratic: ClassVar[bool] = False
    """Whether the loss is its own parabola of curvature 2, so that block updates are exact."""
    n_curvatures: ClassVar[int] = 1
    """Number of curvatures to try, the smallest first, until the true objective decreases."""

    def target(self, y: Floats) -> Floats:
        """Return the targets on the scale on which the loss compares them with scores, (n_rows, n_outputs)."""
        return y

    def fitted_to(self, target: Floats, weight: Floats) -> "Objective":
        """Return the objective with parameters that depend on the targets."""
        return self

    def row_curvature(self, n_outputs: int) -> float | None:
        """Return the curvature of one of the extra rows that a ridge stands for; None for the mean without trees."""
        return None

    @abstractmethod
    def constant(self, target: Floats, weight: Floats) -> Floats:
        """Return the best constant score of each output, or a value near it, (n_outputs,)."""

    def shift(self, score: Floats, target: Floats, weight: Floats) -> Floats | None:
        """Return the exact best shift of all scores, (n_outputs,); None if the parabolas lead there anyway."""
        return None

    @abstractmethod
    def rows(self, score: Floats, target: Floats) -> Floats:
        """Return the loss of each row, summed over outputs, (n_rows,)."""

    @abstractmethod
    def parabolas(self, score: Floats, target: Floats, attempt: int = 0) -> tuple[Floats, Floats]:
        """Return negative gradient and curvature of the parabolas, both (n_rows, n_outputs).

        `attempt` below `n_curvatures` selects the curvature.
        """

    def expand(self, score: Floats, target: Floats, attempt: int = 0) -> tuple[Floats, Floats, Floats]:
        """Return the results of `rows` and `parabolas`; log losses compute the exponentials of both at once."""
        return self.rows(score, target), *self.parabolas(score, target, attempt)


class SquaredObjective(Objective):
    """Squared error (score − target)²."""

    quadratic = True

    def row_curvature(self, n_outputs: int) -> float:
        """Return 2."""
        return 2.0

    def constant(self, target: Floats, weight: Floats) -> Floats:
        """Return the mean target."""
        mean: Floats = weight @ target / weight.sum()
        return mean

    def rows(self, score: Floats, target: Floats) -> Floats:
        """Return Σ (target − score)²."""
        return ((target - score) ** 2).sum(axis=1)

    def parabolas(self, score: Floats, target: Floats, attempt: int = 0) -> tuple[Floats, Floats]:
        """Return 2 (target − score) and 2."""
        return 2 * (target - score), np.full_like(score, 2.0)


class RootTargetObjective(SquaredObjective):
    """Squared error between the score and the signed square root of the target."""

    def target(self, y: Floats) -> Floats:
        """Return sign(y) √|y|."""
        return np.sign(y) * np.sqrt(np.abs(y))


class LogisticObjective(Objective):
    """Log loss of logits, one for each output, for targets between 0 and 1."""

    n_curvatures = 2

    def row_curvature(self, n_outputs: int) -> float:
        """Return ¼, the curvature at probability ½."""
        return 0.25

    def constant(self, target: Floats, weight: Floats) -> Floats:
        """Return the log odds of the mean targets."""
        mean = np.clip(weight @ target / weight.sum(), _TINY, 1 - _TINY)
        return np.log(mean) - np.log1p(-mean)

    def rows(self, score: Floats, target: Floats) -> Floats:
        """Return Σ log(1 + exp(score)) − target · score."""
        return self.expand(score, target)[0]

    def parabolas(self, score: Floats, target: Floats, attempt: int = 0) -> tuple[Floats, Floats]:
        """Return target − p, and p (1 − p) or Jaakkola and Jordan's bound (p − ½) / score."""
        return self.expand(score, target, attempt)[1:]

    def expand(self, score: Floats, target: Floats, attempt: int = 0) -> tuple[Floats, Floats, Floats]:
        """Return loss, negative gradient and curvature, by exp(−|score|), which does not overflow."""
        tail = np.exp(-np.abs(score))
        larger = 1 / (1 + tail)
        p = np.where(score >= 0, larger, tail * larger)
        loss = (np.maximum(score, 0.0) - target * score + np.log1p(tail)).sum(axis=1)
        if attempt == 0:
            return loss, target - p, tail * larger**2
        small = np.abs(score) < 1e-6
        return loss, target - p, np.where(small, 0.25, (p - 0.5) / np.where(small, 1.0, score))


class SoftmaxObjective(Objective):
    """Log loss of softmax scores, one for each class, for one-hot targets."""

    n_curvatures = 3

    def row_curvature(self, n_outputs: int) -> float:
        """Return 1 / K, the curvature with equal probabilities of all K classes."""
        return 1.0 / n_outputs

    def constant(self, target: Floats, weight: Floats) -> Floats:
        """Return the logarithms of the class frequencies."""
        return np.log(np.maximum(weight @ target / weight.sum(), _TINY))

    def rows(self, score: Floats, target: Floats) -> Floats:
        """Return log Σ exp(score) − score of the class."""
        return self.expand(score, target)[0]

    def parabolas(self, score: Floats, target: Floats, attempt: int = 0) -> tuple[Floats, Floats]:
        """Return target − p, and K / (K − 1) p (1 − p), √(p (1 − p)) / 2 or Böhning's bound ½."""
        return self.expand(score, target, attempt)[1:]

    def expand(self, score: Floats, target: Floats, attempt: int = 0) -> tuple[Floats, Floats, Floats]:
        """Return loss, negative gradient and curvature."""
        top = score.max(axis=1, keepdims=True)
        p = np.exp(score - top)
        total = p.sum(axis=1, keepdims=True)
        p /= total
        loss = np.log(total[:, 0]) + top[:, 0] - (target * score).sum(axis=1)
        n_classes = score.shape[1]
        if attempt == 0:
            curvature = n_classes / (n_classes - 1) * p * (1 - p)
        else:
            # Böhning's bound is far too large for rare classes; the step between is the geometric mean with p (1 − p).
            curvature = 0.5 * np.sqrt(p * (1 - p)) if attempt == 1 else np.full_like(p, 0.5)
        return loss, target - p, curvature


@dataclass(frozen=True)
class PinballObjective(Objective):
    """Pinball loss of the quantile `level`; parabolas of rows nearer than `width` have the curvature at `width`."""

    level: float = 0.5
    width: float = 0.0

    def fitted_to(self, target: Floats, weight: Floats) -> "PinballObjective":
        """Return the objective with a width of 5 % of the median absolute deviation of the targets."""
        deviation = np.abs(target - [weighted_median(column, weight) for column in target.T])
        spread = weighted_median(deviation.ravel(), np.repeat(weight, target.shape[1]))
        return replace(self, width=0.05 * spread or max(float(np.std(target)), 1.0) * 1e-3)

    def constant(self, target: Floats, weight: Floats) -> Floats:
        """Return the weighted quantile of the targets."""
        return np.array([weighted_quantile(column, weight, self.level) for column in target.T])

    def shift(self, score: Floats, target: Floats, weight: Floats) -> Floats | None:
        """Return the weighted quantile of the residuals."""
        return self.constant(target - score, weight)

    def rows(self, score: Floats, target: Floats) -> Floats:
        """Return Σ max(level · r, (level − 1) · r) of the residual r."""
        residual = target - score
        return np.maximum(self.level * residual, (self.level - 1) * residual).sum(axis=1)

    def parabolas(self, score: Floats, target: Floats, attempt: int = 0) -> tuple[Floats, Floats]:
        """Return r / (2 max(|r|, width)) + level − ½ and 1 / (2 max(|r|, width))."""
        residual = target - score
        curvature = 0.5 / np.maximum(np.abs(residual), self.width)
        return curvature * residual + (self.level - 0.5), curvature


@dataclass(frozen=True)
class HuberObjective(Objective):
    """Huber loss: r² / 2 for residuals r up to `delta`, beyond that linear."""

    delta: float = 1.0

    def constant(self, target: Floats, weight: Floats) -> Floats:
        """Return the weighted median of the targets."""
        return np.array([weighted_quantile(column, weight, 0.5) for column in target.T])

    def rows(self, score: Floats, target: Floats) -> Floats:
        """Return Σ r² / 2 or delta (|r| − delta / 2)."""
        return Huber(self.delta).of(score, target).sum(axis=1)

    def parabolas(self, score: Floats, target: Floats, attempt: int = 0) -> tuple[Floats, Floats]:
        """Return the derivative ψ(r) and the curvature ψ(r) / r of a parabola above the loss."""
        residual = target - score
        curvature = self.delta / np.maximum(np.abs(residual), self.delta)
        return curvature * residual, curvature


class PseudoHuberObjective(HuberObjective):
    """Pseudo-Huber loss delta² (√(1 + (r / delta)²) − 1)."""

    def rows(self, score: Floats, target: Floats) -> Floats:
        """Return Σ delta² (√(1 + (r / delta)²) − 1)."""
        return PseudoHuber(self.delta).of(score, target).sum(axis=1)

    def parabolas(self, score: Floats, target: Floats, attempt: int = 0) -> tuple[Floats, Floats]:
        """Return the derivative ψ(r) and the curvature ψ(r) / r = 1 / √(1 + (r / delta)²)."""
        residual = target - score
        curvature = 1 / np.hypot(1.0, residual / self.delta)
        return curvature * residual, curvature


@dataclass(frozen=True)
class TweedieObjective(Objective):
    """Half the Tweedie deviance for a log link and variance mean^power; Poisson for power 1, gamma for 2."""

    power: float = 1.5

    n_curvatures = 6

    def constant(self, target: Floats, weight: Floats) -> Floats:
        """Return the logarithm of the mean target."""
        return np.log(np.maximum(weight @ target / weight.sum(), _TINY))

    def rows(self, score: Floats, target: Floats) -> Floats:
        """Return half the unit deviance."""
        if self.power == 1.0:
            loss = np.exp(score) - target * score + xlogy(target, target) - target
        elif self.power == 2.0:
            loss = score + target * np.exp(-score) - np.log(np.maximum(target, _TINY)) - 1
        else:
            p = self.power
            perfect = target ** (2 - p) / ((1 - p) * (2 - p))
            loss = np.exp((2 - p) * score) / (2 - p) - target * np.exp((1 - p) * score) / (1 - p) + perfect
        return loss.sum(axis=1)

    def parabolas(self, score: Floats, target: Floats, attempt: int = 0) -> tuple[Floats, Floats]:
        """Return y μ^(1−p) − μ^(2−p), and the second derivative.

        Later attempts take the larger of it and its expectation μ^(2−p), and then multiples; none of them is a bound.
        """
        p = self.power
        above, below = np.exp((2 - p) * score), target * np.exp((1 - p) * score)
        curvature = (2 - p) * above + (p - 1) * below
        return below - above, 3.0 ** (attempt - 1) * np.maximum(curvature, above) if attempt else curvature


def weighted_quantile(values: Floats, weight: Floats, level: float) -> float:
    """Return the smallest value at or below which lies at least the fraction `level` of the weight."""
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weight[order])
    return float(values[order[min(int(np.searchsorted(total, level * total[-1])), len(values) - 1)]])


def weighted_median(values: Floats, weight: Floats) -> float:
    """Return the median of values, each repeated as often as its weight says; the mean of the two in the middle."""
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weight[order])
    # Rows of weight 0 at the end repeat the last total.
    below, above = (int(np.searchsorted(total, 0.5 * total[-1], side)) for side in ("left", "right"))
    pair = values[order[[below, min(above, len(values) - 1)]]]
    return float(pair.mean())


def objective_of(forest: Forest) -> Objective | None:
    """Return the objective of the raw scores of a model, None if block descent has none for it.

    The link of the model and the loss it was trained for decide. Scores for a loss without an objective here are fitted
    by squared error, and with a log link by the Poisson deviance.
    """
    name, _, number = (forest.objective or "").partition(":")
    link = forest.response
    if forest.aggregation == "median" or isinstance(link, Anomaly | Vote):
        return None
    if name == "score_error":
        return SquaredObjective()
    if isinstance(link, Softplus):
        return None
    if isinstance(link, Logit | Sigmoid | OneVsAll):
        return LogisticObjective()
    if isinstance(link, Softmax):
        return SoftmaxObjective()
    if isinstance(link, SignedSquare):
        return RootTargetObjective()
    if isinstance(link, Log):
        powers = {"poisson": 1.0, "gamma": 2.0, "tweedie": float(number or 1.5)}
        return TweedieObjective(powers.get(name, 1.0))
    if name in ("quantile", "absolute_error"):
        return PinballObjective(float(number or 0.5))
    if name in ("huber", "pseudo_huber"):
        return {"huber": HuberObjective, "pseudo_huber": PseudoHuberObjective}[name](float(number or 1.0))
    assert isinstance(link, Identity | Probability)
    return SquaredObjective()
