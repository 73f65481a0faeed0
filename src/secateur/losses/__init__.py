"""Measure prediction error by loss functions, per row and per node.

A loss is one class. `rows` returns the loss of each row. `nodes` returns the total loss of the rows at each node if the
node were a leaf, computed from node sums alone. For a scikit-learn tree on its training rows, `nodes` is the impurity
times the weight: Brier gives Gini, LogLoss gives entropy (in nats), SquaredError gives the squared error. Losses of
several targets are averaged.
"""

from typing import Any

from secateur._util.registry import named
from secateur.errors import InvalidInputError
from secateur.forest import Forest
from secateur.losses.aliases import ALIASES
from secateur.losses.base import Loss
from secateur.losses.classification import Brier, ClassLoss, LogLoss, RankingError, ZeroOne
from secateur.losses.regression import (
    AbsoluteError,
    Gamma,
    Huber,
    Poisson,
    PseudoHuber,
    Quantile,
    RankCorrelation,
    ScoreError,
    SquaredError,
    SquaredLogError,
    Tweedie,
)

__all__ = [
    "ALIASES",
    "LOSSES",
    "AbsoluteError",
    "Brier",
    "ClassLoss",
    "Gamma",
    "Huber",
    "LogLoss",
    "Loss",
    "Poisson",
    "PseudoHuber",
    "Quantile",
    "RankCorrelation",
    "RankingError",
    "ScoreError",
    "SquaredError",
    "SquaredLogError",
    "Tweedie",
    "ZeroOne",
    "as_loss",
    "default_loss",
    "loss_named",
]

_ALL: tuple[type[Loss], ...] = (
    SquaredError,
    AbsoluteError,
    Quantile,
    Huber,
    PseudoHuber,
    Poisson,
    Gamma,
    Tweedie,
    SquaredLogError,
    ScoreError,
    RankCorrelation,
    Brier,
    LogLoss,
    ZeroOne,
    RankingError,
)
LOSSES: dict[str, type[Loss]] = {loss.name: loss for loss in _ALL}


def loss_named(text: str) -> Loss:
    """Return the loss with a name such as "log_loss", or "quantile:0.9" with a parameter.

    Names of scikit-learn's scorers that measure the same, such as "neg_log_loss", are accepted, too.

    Raises
    ------
    InvalidInputError
        If the name is unknown.
    """
    name, colon, number = text.partition(":")
    return named(f"{ALIASES.get(name, name)}{colon}{number}", LOSSES, "loss", also=ALIASES)


def as_loss(loss: Any) -> Loss:
    """Return a loss given as an object or by name.

    Raises
    ------
    InvalidInputError
        If it is neither; functions are metrics, which `scoring` takes.
    """
    if isinstance(loss, str):
        return loss_named(loss)
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, type) and issubclass(loss, Loss):
        raise InvalidInputError(
            f"loss={loss.__name__} is a class, but an object or a name is needed. Pass loss={loss.__name__}() or "
            f"loss={loss.name!r}."
        )
    advice = f"Use one of the names {', '.join(LOSSES)}."
    if callable(loss):
        advice = "To choose a point by your own metric, pass it as scoring=, a function of (estimator, X, y)."
    raise InvalidInputError(
        f"loss={loss!r:.60} is not a loss, because pruning needs the loss of every row and node: an object of "
        f"secateur.losses or a name. {advice}"
    )


def default_loss(forest: Forest) -> Loss:
    """Return the default loss of a model.

    This is the rank correlation for outlier detectors, the squared error for regressors, the Brier score for bagged
    classifiers, the log loss for boosted ones, and the zero-one loss for AdaBoost. Probabilities from AdaBoost's votes
    are so underconfident that a tiny model has a better log loss.
    """
    if forest.link == "anomaly":
        return RankCorrelation()
    if not forest.n_classes:
        return SquaredError()
    return {"probability": Brier, "vote": ZeroOne}.get(forest.link, LogLoss)()
