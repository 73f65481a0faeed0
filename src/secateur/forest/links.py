"""Map raw scores to predictions by inverse link functions, with each library's rule for ties.

A link maps raw scores `(n_rows, n_outputs)` to `mean` (an expected value, or class probabilities for each target) and
to `label` (the predicted value, or the code of the predicted class), in the precision of the scores.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from secateur import kernels
from secateur._util.registry import named

Floats = NDArray[np.floating]


class Link(ABC):
    """Map the raw score, the sum over trees, to a prediction."""

    linear: ClassVar[bool] = False
    """Whether the raw score is the prediction, so that a mean over trees is the mean of the trees' predictions."""
    logits: ClassVar[bool] = False
    """Whether raw scores are log-odds, so that the natural loss is the log loss."""

    @abstractmethod
    def mean(self, raw: Floats, n_classes: tuple[int, ...]) -> list[Floats]:
        """Return one array per target: probabilities `(n_rows, classes)`, or values `(n_rows, n_outputs)`."""

    def label(self, raw: Floats, n_classes: tuple[int, ...]) -> NDArray[np.generic]:
        """Return class codes `(n_rows, n_targets)`, or values `(n_rows, n_outputs)`."""
        return self.mean(raw, n_classes)[0]


class Identity(Link):
    """Identity link: the raw score is the prediction."""

    linear = True

    def mean(self, raw: Floats, n_classes: tuple[int, ...]) -> list[Floats]:
        """Return the raw scores."""
        return [raw]


class Log(Link):
    """Log link: the prediction is exp(score)."""

    def mean(self, raw: Floats, n_classes: tuple[int, ...]) -> list[Floats]:
        """Return exp(score)."""
        return [np.exp(raw)]


class LogC(Log):
    """Log link, computed with the C library's exp."""

    def mean(self, raw: Floats, n_classes: tuple[int, ...]) -> list[Floats]:
        """Return exp(score)."""
        return [_filled(kernels.exp_all, raw)]


class Anomaly(Link):
    """Anomaly score of isolation forests: −2^(−s), where s is the normalised mean path length."""

    def mean(self, raw: Floats, n_classes: tuple[int, ...]) -> list[Floats]:
        """Return the anomaly score; lower is more abnormal, and the library applies its own threshold for outliers."""
        return [-(2**-raw)]


class Probability(Link):
    """Outputs are class probabilities, one block of columns per target; ties go to the first class."""

    linear = True

    def mean(self, raw: Floats, n_classes: tuple[int, ...]) -> list[Floats]:
        """Return the columns of each target."""
        return np.split(raw, np.cumsum(n_classes)[:-1], axis=1)

    def label(self, raw: Floats, n_classes: tuple[int, ...]) -> NDArray[np.generic]:
        """Return the most probable class of each target."""
        return np.column_stack([p.argmax(axis=1) for p in self.mean(raw, n_classes)])


@dataclass(frozen=True)
class Logit(Link):
    """Logit link for binary targets: the second class has probability 1 / (1 + exp(-slope · score)).

    `tie` is the predicted class if the score is exactly 0.
    """

    logits = True
    slope: float = 1.0
    tie: int = 0

    def mean(self, raw: Floats, n_classes: tuple[int, ...]) -> list[Floats]:
        """Return the probabilities of both classes."""
        second = expit(raw.dtype.type(self.slope) * raw)
        return [np.column_stack([1 - p, p]) for p in second.T]

    def label(self, raw: Floats, n_classes: tuple[int, ...]) -> NDArray[np.generic]:
        """Return 1 where the score is positive, `tie` where it is 0, otherwise 0."""
        return ((raw >= 0) if self.tie else (raw > 0)).astype(np.intp)


class Softmax(Link):
    """Softmax of one score per class; ties go to the first class."""

    logits = True

    def mean(self, raw: Floats, n_classes: tuple[int, ...]) -> list[Floats]:
        """Return the softmax of the scores."""
        return [_softmax(raw)]

    def label(self, raw: Floats, n_classes: tuple[int, ...]) -> NDArray[np.generic]:
        """Return the class with the largest score."""
        return raw.argmax(axis=1)[:, None]


class SoftmaxC(Softmax):
    """Softmax, computed with the C library's exp."""

    def mean(self, raw: Floats, n_classes: tuple[int, ...]) -> list[Floats]:
        """Return the softmax of the scores."""
        return [_filled(kernels.softmax_rows, raw)]


@dataclass(frozen=True)
class OneVsAll(Link):
    """One-vs-all: one log-odds score per class against all others; probabilities need not sum to 1."""

    slope: float = 1.0

    def mean(self, raw: Floats, n_classes: tuple[int, ...]) -> list[Floats]:
        """Return 1 / (1 + exp(-slope · score)) for each class."""
        return [expit(raw.dtype.type(self.slope) * raw)]

    def label(self, raw: Floats, n_classes: tuple[int, ...]) -> NDArray[np.generic]:
        """Return the class with the largest score."""
        return raw.argmax(axis=1)[:, None]


class Sigmoid(Link):
    """Sigmoid link for targets in [0, 1]: the prediction is 1 / (1 + exp(-score))."""

    def mean(self, raw: Floats, n_classes: tuple[int, ...]) -> list[Floats]:
        """Return 1 / (1 + exp(-score))."""
        return [expit(raw)]


class Softplus(Log):
    """Softplus link: the prediction is log(1 + exp(score)), computed with the C library."""

    def mean(self, raw: Floats, n_classes: tuple[int, ...]) -> list[Floats]:
        """Return log(1 + exp(score))."""
        return [_filled(kernels.softplus_all, raw)]


class SignedSquare(Log):
    """Signed square: the prediction is sign(score) · score², for models trained on square roots of the targets."""

    def mean(self, raw: Floats, n_classes: tuple[int, ...]) -> list[Floats]:
        """Return sign(score) · score²."""
        return [np.sign(raw) * raw * raw]


class Vote(Softmax):
    """Probabilities from AdaBoost's mean votes, one score per class.

    References
    ----------
    J. Zhu, H. Zou, S. Rosset and T. Hastie (2009). Multi-class AdaBoost. Statistics and Its Interface 2, eq. 15.
    """

    logits = False

    def mean(self, raw: Floats, n_classes: tuple[int, ...]) -> list[Floats]:
        """Return the softmax of the votes divided by n_classes − 1."""
        if raw.shape[1] == 2:
            decision = raw[:, 1] - raw[:, 0]
            return [_softmax(np.column_stack([-decision, decision]) / 2)]
        return [_softmax(raw / max(raw.shape[1] - 1, 1))]


def _softmax(raw: Floats) -> Floats:
    shifted = np.exp(raw - raw.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def _filled(kernel: Callable[[Floats, Floats], None], raw: Floats) -> Floats:
    """Return the output array of a kernel applied to the raw scores."""
    out = np.empty_like(raw)
    kernel(np.ascontiguousarray(raw), out)
    return out


LINKS: dict[str, Callable[..., Link]] = {
    "identity": Identity,
    "log": Log,
    "log_c": LogC,
    "anomaly": Anomaly,
    "probability": Probability,
    "logit": Logit,
    "logit_tie_up": lambda slope=1.0: Logit(slope, tie=1),
    "half_logit": lambda: Logit(2.0, tie=1),
    "softmax": Softmax,
    "softmax_c": SoftmaxC,
    "one_vs_all": OneVsAll,
    "sigmoid": Sigmoid,
    "softplus": Softplus,
    "signed_square": SignedSquare,
    "vote": Vote,
}
"""Constructor of each link by name; some take a number, written after a colon."""


@cache
def link_named(text: str) -> Link:
    """Return the link with a name such as "softmax" or "logit:0.7".

    Raises
    ------
    InvalidInputError
        If the name is unknown.
    """
    return named(text, LINKS, "link")
