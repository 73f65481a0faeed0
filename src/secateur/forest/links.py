"""From a forest's sums to predictions: the last step of every model, with each library's rule for ties.

A link turns raw sums `(n_rows, n_outputs)` into `mean` (an expected value, or class probabilities for each target)
and `label` (the value predicted, or the code of the class predicted), in the precision of the sums.
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
    """What a sum over trees means."""

    linear: ClassVar[bool] = False
    """Whether the sum is the prediction, so that the mean over trees is the mean of what they predict."""
    logits: ClassVar[bool] = False
    """Whether sums are log-odds, so that a model is judged by its log loss."""

    @abstractmethod
    def mean(self, raw: Floats, n_classes: tuple[int, ...]) -> list[Floats]:
        """Return one array per target: probabilities `(n_rows, classes)`, or values `(n_rows, n_outputs)`."""

    @abstractmethod
    def label(self, raw: Floats, n_classes: tuple[int, ...]) -> NDArray[np.generic]:
        """Return class codes `(n_rows, n_targets)`, or values `(n_rows, n_outputs)`."""


class Identity(Link):
    """The sum is the prediction."""

    linear = True

    def mean(self, raw: Floats, n_classes: tuple[int, ...]) -> list[Floats]:
        """Return the sums."""
        return [raw]

    def label(self, raw: Floats, n_classes: tuple[int, ...]) -> NDArray[np.generic]:
        """Return the sums."""
        return raw


class Log(Link):
    """The prediction is exp(sum)."""

    def mean(self, raw: Floats, n_classes: tuple[int, ...]) -> list[Floats]:
        """Return exp of the sums."""
        return [np.exp(raw)]

    def label(self, raw: Floats, n_classes: tuple[int, ...]) -> NDArray[np.generic]:
        """Return exp of the sums."""
        return self.mean(raw, n_classes)[0]


class LogC(Log):
    """The same by the C library."""

    def mean(self, raw: Floats, n_classes: tuple[int, ...]) -> list[Floats]:
        """Return exp of the sums."""
        return [_filled(kernels.exp_all, raw)]


class Anomaly(Link):
    """Isolation forests: minus 2 to the power of minus the mean path length."""

    def mean(self, raw: Floats, n_classes: tuple[int, ...]) -> list[Floats]:
        """Return the score; lower is more abnormal."""
        return [-(2**-raw)]

    def label(self, raw: Floats, n_classes: tuple[int, ...]) -> NDArray[np.generic]:
        """Return the score; where it is low enough to be an outlier is the library's affair."""
        return -(2**-raw)


class Probability(Link):
    """The outputs are class probabilities, one block of columns per target; the first largest wins."""

    linear = True

    def mean(self, raw: Floats, n_classes: tuple[int, ...]) -> list[Floats]:
        """Return the columns of each target."""
        return np.split(raw, np.cumsum(n_classes)[:-1], axis=1)

    def label(self, raw: Floats, n_classes: tuple[int, ...]) -> NDArray[np.generic]:
        """Return the most probable class of each target."""
        return np.column_stack([p.argmax(axis=1) for p in self.mean(raw, n_classes)])


@dataclass(frozen=True)
class Logit(Link):
    """One sum for the two classes of each target: the second has probability 1 / (1 + exp(-slope · sum)).

    `tie` is the class of a row whose sum is exactly 0.
    """

    logits = True
    slope: float = 1.0
    tie: int = 0

    def mean(self, raw: Floats, n_classes: tuple[int, ...]) -> list[Floats]:
        """Return the probabilities of both classes."""
        second = expit(raw.dtype.type(self.slope) * raw)
        return [np.column_stack([1 - p, p]) for p in second.T]

    def label(self, raw: Floats, n_classes: tuple[int, ...]) -> NDArray[np.generic]:
        """Return 1 where the sum is positive."""
        return ((raw >= 0) if self.tie else (raw > 0)).astype(np.intp)


class Softmax(Link):
    """One sum per class; the first largest wins."""

    logits = True

    def mean(self, raw: Floats, n_classes: tuple[int, ...]) -> list[Floats]:
        """Return exp(sum) over its total."""
        return [_softmax(raw)]

    def label(self, raw: Floats, n_classes: tuple[int, ...]) -> NDArray[np.generic]:
        """Return the class with the largest sum."""
        return raw.argmax(axis=1)[:, None]


class SoftmaxC(Softmax):
    """The same by the C library."""

    def mean(self, raw: Floats, n_classes: tuple[int, ...]) -> list[Floats]:
        """Return exp(sum) over its total."""
        return [_filled(kernels.softmax_rows, raw)]


@dataclass(frozen=True)
class OneVsAll(Link):
    """One sum per class, each the log-odds of this class against all others; probabilities need not add up to 1."""

    slope: float = 1.0

    def mean(self, raw: Floats, n_classes: tuple[int, ...]) -> list[Floats]:
        """Return 1 / (1 + exp(-slope · sum)) of each class."""
        return [expit(raw.dtype.type(self.slope) * raw)]

    def label(self, raw: Floats, n_classes: tuple[int, ...]) -> NDArray[np.generic]:
        """Return the class with the largest sum."""
        return raw.argmax(axis=1)[:, None]


class Sigmoid(Link):
    """The prediction is a share, 1 / (1 + exp(-sum))."""

    def mean(self, raw: Floats, n_classes: tuple[int, ...]) -> list[Floats]:
        """Return the shares."""
        return [expit(raw)]

    def label(self, raw: Floats, n_classes: tuple[int, ...]) -> NDArray[np.generic]:
        """Return the shares."""
        return self.mean(raw, n_classes)[0]


class Softplus(Log):
    """The prediction is log(1 + exp(sum)), by the C library."""

    def mean(self, raw: Floats, n_classes: tuple[int, ...]) -> list[Floats]:
        """Return log(1 + exp) of the sums."""
        return [_filled(kernels.softplus_all, raw)]


class SignedSquare(Log):
    """The prediction is the sum squared with the sign it had, for models trained on roots of targets."""

    def mean(self, raw: Floats, n_classes: tuple[int, ...]) -> list[Floats]:
        """Return the squares."""
        return [np.sign(raw) * raw * raw]


class Vote(Softmax):
    """One mean vote per class, as AdaBoost counts them (Zhu, Zou, Rosset, Hastie 2009, eq. 15)."""

    logits = False

    def mean(self, raw: Floats, n_classes: tuple[int, ...]) -> list[Floats]:
        """Return the softmax of the votes over the number of rivals."""
        if raw.shape[1] == 2:
            decision = raw[:, 1] - raw[:, 0]
            return [_softmax(np.column_stack([-decision, decision]) / 2)]
        return [_softmax(raw / max(raw.shape[1] - 1, 1))]


def _softmax(raw: Floats) -> Floats:
    shifted = np.exp(raw - raw.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def _filled(kernel: Callable[[Floats, Floats], None], raw: Floats) -> Floats:
    """Return what a kernel makes of the sums."""
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
"""The name of each link, and what makes it; some take a number, written behind a colon."""


@cache
def link_named(text: str) -> Link:
    """Return the link of a name such as "softmax" or "logit:0.7".

    Raises
    ------
    ValueError
        If it is unknown.
    """
    return named(text, LINKS, "link")
