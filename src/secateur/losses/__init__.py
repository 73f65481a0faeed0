"""How wrong a prediction is: for a row, and for all rows that end in the same node.

A loss is one class. `rows` scores predictions one by one; `nodes` gives, from sums alone, the total loss of the
rows at each node if the node were a leaf. With the node values a scikit-learn tree learns on its own training rows,
`nodes` is the impurity: Brier is Gini, LogLoss is entropy (in nats), SquaredError is squared error.
Several targets are averaged.
"""

from secateur._util.registry import named
from secateur.forest import Forest
from secateur.losses.base import Loss
from secateur.losses.classification import Brier, ClassLoss, LogLoss, RankingError, ZeroOne
from secateur.losses.regression import AbsoluteError, Gamma, Poisson, Quantile, SquaredError, SquaredLogError, Tweedie

__all__ = [
    "LOSSES",
    "AbsoluteError",
    "Brier",
    "ClassLoss",
    "Gamma",
    "LogLoss",
    "Loss",
    "Poisson",
    "Quantile",
    "RankingError",
    "SquaredError",
    "SquaredLogError",
    "Tweedie",
    "ZeroOne",
    "default_loss",
    "loss_named",
]

_ALL: tuple[type[Loss], ...] = (
    SquaredError,
    AbsoluteError,
    Quantile,
    Poisson,
    Gamma,
    Tweedie,
    SquaredLogError,
    Brier,
    LogLoss,
    ZeroOne,
    RankingError,
)
LOSSES: dict[str, type[Loss]] = {loss.name: loss for loss in _ALL}


def loss_named(text: str) -> Loss:
    """Return the loss of a name such as "log_loss", or "quantile:0.9" where it has a number.

    Raises
    ------
    ValueError
        If it is unknown.
    """
    return named(text, LOSSES, "loss")


def default_loss(forest: Forest) -> Loss:
    """Return the loss a model is usually judged by.

    Brier for bagged classifiers, log loss for boosted ones, wrong labels where trees vote: probabilities made from
    AdaBoost's votes are so timid that a tiny model has the better log loss.
    """
    if not forest.n_classes:
        return SquaredError()
    return {"probability": Brier, "vote": ZeroOne}.get(forest.link, LogLoss)()
