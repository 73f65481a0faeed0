"""Map the training loss of a CatBoost model to a link and a loss of secateur."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass

from secateur.libraries.catboost.flatbuffer import damaged


@dataclass(frozen=True)
class CatBoostObjective:
    """Describe a model's training objective.

    Attributes
    ----------
    name : str
        CatBoost's name, without parameters; empty if the model does not record it.
    link : str
        A link of secateur.
    objective : str or None
        The equivalent loss of secateur; None if it is the default loss of the link.
    classes : bool
        Whether the target is one of several classes.
    many_labels : bool
        Whether the target is multi-label: several binary labels.
    supervised : bool
        Whether raw predictions can be compared with a target.
    """

    name: str
    link: str = "identity"
    objective: str | None = None
    classes: bool = False
    many_labels: bool = False
    supervised: bool = True

    @property
    def ranks(self) -> bool:
        """Whether the objective ranks rows within groups."""
        return self.name in _RANKING


def loss_named(info: Mapping[str, str]) -> CatBoostObjective:
    """Return the training objective from a model's metadata."""
    name, parameters = _description(info)
    if name in ("Quantile", "MAE"):
        alpha = _number(parameters, "alpha", 0.5)
        return CatBoostObjective(name, objective="absolute_error" if alpha == 0.5 else f"quantile:{alpha:g}")
    if name == "Huber":
        return CatBoostObjective(name, objective=f"huber:{_number(parameters, 'delta', 1.0):g}")
    if name == "Tweedie":
        return CatBoostObjective(name, "log_c", objective=f"tweedie:{_number(parameters, 'variance_power', 1.5):g}")
    return _LOSSES.get(name) or CatBoostObjective(name, supervised=False)


_RANKING = (
    *("YetiRank", "YetiRankPairwise", "PairLogit", "PairLogitPairwise", "QueryRMSE", "QuerySoftMax"),
    *("QueryCrossEntropy", "GroupQuantile", "StochasticFilter", "StochasticRank", "LambdaMart"),
)

_LOSSES = {
    loss.name: loss
    for loss in (
        CatBoostObjective("RMSE", objective="squared_error"),
        CatBoostObjective("MultiRMSE", objective="squared_error"),
        CatBoostObjective("LogCosh"),
        CatBoostObjective("Lq"),
        CatBoostObjective("MAPE"),
        CatBoostObjective("Expectile"),
        CatBoostObjective("Poisson", "log_c", objective="poisson"),
        CatBoostObjective("Logloss", "logit", classes=True),
        CatBoostObjective("CrossEntropy", "logit", classes=True),
        CatBoostObjective("Focal", "logit", classes=True),
        CatBoostObjective("MultiClass", "softmax_c", classes=True),
        CatBoostObjective("MultiClassOneVsAll", "one_vs_all", classes=True),
        CatBoostObjective("MultiLogloss", many_labels=True, supervised=False),
        CatBoostObjective("MultiCrossEntropy", many_labels=True, supervised=False),
    )
}


def _description(info: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Return name and parameters of the loss; empty for a model made by summing models."""
    for key in ("params", "loss_function"):
        try:
            found = json.loads(info.get(key, "{}"))
        except ValueError:
            continue
        found = found.get("loss_function", found) if isinstance(found, dict) else {}
        if isinstance(found, dict) and isinstance(found.get("type"), str):
            parameters = found.get("params")
            return found["type"], dict(parameters) if isinstance(parameters, dict) else {}
    return "", {}


def _number(parameters: Mapping[str, str], name: str, default: float) -> float:
    """Return a parameter of a loss; `default` if a file does not record it, which CatBoost accepts for prediction.

    Raises
    ------
    DamagedFileError
        If it is not a finite number.
    """
    text = parameters.get(name, default)
    try:
        number = float(text)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise damaged(f"the parameter {name} of its loss is {text!r}, not a number")
    return number
