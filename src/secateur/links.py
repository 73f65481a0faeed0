"""From a forest's sums to predictions: the last step of every model, with each library's rule for ties.

A link turns raw sums `(n_rows, n_outputs)` into `mean` (an expected value, or class probabilities for each target)
and `label` (the value predicted, or the code of the class predicted).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Floats = NDArray[np.float64]


class Link(ABC):
    """What a sum over trees means."""

    @abstractmethod
    def mean(self, raw: Floats, n_classes: tuple[int, ...]) -> list[Floats]:
        """Return one array per target: probabilities `(n_rows, classes)`, or values `(n_rows, n_outputs)`."""

    @abstractmethod
    def label(self, raw: Floats, n_classes: tuple[int, ...]) -> NDArray[np.generic]:
        """Return class codes `(n_rows, n_targets)`, or values `(n_rows, n_outputs)`."""


class Identity(Link):
    """The sum is the prediction."""

    def mean(self, raw: Floats, n_classes: tuple[int, ...]) -> list[Floats]:
        """Return the sums."""
        return [raw]

    def label(self, raw: Floats, n_classes: tuple[int, ...]) -> NDArray[np.generic]:
        """Return the sums."""
        return raw


class Log(Identity):
    """The prediction is exp(sum)."""

    def mean(self, raw: Floats, n_classes: tuple[int, ...]) -> list[Floats]:
        """Return exp of the sums."""
        return [np.exp(raw)]

    def label(self, raw: Floats, n_classes: tuple[int, ...]) -> NDArray[np.generic]:
        """Return exp of the sums."""
        return np.exp(raw)


class Anomaly(Identity):
    """Isolation forests: minus 2 to the power of minus the mean path length."""

    def mean(self, raw: Floats, n_classes: tuple[int, ...]) -> list[Floats]:
        """Return the score; lower is more abnormal."""
        return [-(2**-raw)]

    def label(self, raw: Floats, n_classes: tuple[int, ...]) -> NDArray[np.generic]:
        """Return the score; where it is low enough to be an outlier is the library's affair."""
        return -(2**-raw)


class Probability(Link):
    """The outputs are class probabilities, one block of columns per target; the first largest wins."""

    def mean(self, raw: Floats, n_classes: tuple[int, ...]) -> list[Floats]:
        """Return the columns of each target."""
        return np.split(raw, np.cumsum(n_classes)[:-1], axis=1)

    def label(self, raw: Floats, n_classes: tuple[int, ...]) -> NDArray[np.generic]:
        """Return the most probable class of each target."""
        return np.column_stack([p.argmax(axis=1) for p in self.mean(raw, n_classes)])


@dataclass(frozen=True)
class Logit(Link):
    """One sum for two classes: the second has probability 1 / (1 + exp(-slope · sum)).

    `tie` is the class of a row whose sum is exactly 0.
    """

    slope: float = 1.0
    tie: int = 0

    def mean(self, raw: Floats, n_classes: tuple[int, ...]) -> list[Floats]:
        """Return the probabilities of both classes."""
        second = expit(self.slope * raw)
        return [np.hstack([1 - second, second])]

    def label(self, raw: Floats, n_classes: tuple[int, ...]) -> NDArray[np.generic]:
        """Return 1 where the sum is positive."""
        return ((raw >= 0) if self.tie else (raw > 0)).astype(np.intp)


class Softmax(Link):
    """One sum per class; the first largest wins."""

    def mean(self, raw: Floats, n_classes: tuple[int, ...]) -> list[Floats]:
        """Return exp(sum) over its total."""
        return [_softmax(raw)]

    def label(self, raw: Floats, n_classes: tuple[int, ...]) -> NDArray[np.generic]:
        """Return the class with the largest sum."""
        return raw.argmax(axis=1)[:, None]


class Vote(Softmax):
    """One mean vote per class, as AdaBoost counts them (Zhu, Zou, Rosset, Hastie 2009, eq. 15)."""

    def mean(self, raw: Floats, n_classes: tuple[int, ...]) -> list[Floats]:
        """Return the softmax of the votes over the number of rivals."""
        if raw.shape[1] == 2:
            decision = raw[:, 1] - raw[:, 0]
            return [_softmax(np.column_stack([-decision, decision]) / 2)]
        return [_softmax(raw / max(raw.shape[1] - 1, 1))]


def _softmax(raw: Floats) -> Floats:
    shifted = np.exp(raw - raw.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


LINKS: dict[str, Link] = {
    "identity": Identity(),
    "log": Log(),
    "anomaly": Anomaly(),
    "probability": Probability(),
    "logit": Logit(),
    "logit_tie_up": Logit(tie=1),
    "half_logit": Logit(slope=2.0, tie=1),
    "softmax": Softmax(),
    "vote": Vote(),
}
