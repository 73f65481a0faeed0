"""Map XGBoost objectives to the link of their raw predictions and to their loss."""

import json
from dataclasses import dataclass

from secateur.libraries.xgboost.saved_model import Saved, damaged, entry


@dataclass(frozen=True)
class XGBoostObjective:
    """Describe a model's training objective.

    Attributes
    ----------
    link : str
    loss : str, or None
        The name of the training loss; None if it is the default loss of the link.
    supervised : bool
        Whether predictions can be compared with a target; False for ranking and censored survival times.
    classes : "", "two" or "many"
        Whether the target is a class: "two" classes for each output, or "many" with one output per class.
    """

    link: str = "identity"
    loss: str | None = None
    supervised: bool = True
    classes: str = ""


_OBJECTIVES = {
    "reg:squarederror": XGBoostObjective(),
    "reg:linear": XGBoostObjective(),
    "reg:squaredlogerror": XGBoostObjective(loss="squared_log_error"),
    "reg:absoluteerror": XGBoostObjective(loss="absolute_error"),
    "reg:logistic": XGBoostObjective("sigmoid"),
    "binary:logistic": XGBoostObjective("logit", classes="two"),
    "binary:logitraw": XGBoostObjective("logit", classes="two"),
    "binary:hinge": XGBoostObjective("logit", loss="zero_one", classes="two"),
    "multi:softprob": XGBoostObjective("softmax_c", classes="many"),
    "multi:softmax": XGBoostObjective("softmax_c", classes="many"),
    "count:poisson": XGBoostObjective("log_c", loss="poisson"),
    "reg:gamma": XGBoostObjective("log_c", loss="gamma"),
    "survival:cox": XGBoostObjective("log_c", supervised=False),
    "survival:aft": XGBoostObjective("log_c", supervised=False),
}


def objective_of(saved: Saved) -> XGBoostObjective:
    """Return the training objective of a saved model.

    An unknown objective counts as unsupervised: prunings are scored against the unpruned model's predictions.
    """
    table = entry(saved, "learner", "objective")
    name = entry(table, "name")
    if name == "reg:quantileerror":
        levels = _numbers(entry(table, "quantile_loss_param", "quantile_alpha"))
        return (
            XGBoostObjective(loss=f"quantile:{levels[0]:g}") if len(levels) == 1 else XGBoostObjective(supervised=False)
        )
    if name == "reg:pseudohubererror":
        slope = _numbers(entry(table, "pseudo_huber_param", "huber_slope"))[0]
        return XGBoostObjective(loss=f"pseudo_huber:{slope:g}")
    if name == "reg:tweedie":
        power = _numbers(entry(table, "tweedie_regression_param", "tweedie_variance_power"))[0]
        return XGBoostObjective("log_c", loss=f"tweedie:{power:g}")
    return (
        _OBJECTIVES.get(name, XGBoostObjective(supervised=False))
        if isinstance(name, str)
        else XGBoostObjective(supervised=False)
    )


def _numbers(text: str) -> list[float]:
    """Return the number or the list of numbers in a JSON text."""
    try:
        found = json.loads(text)
        return [float(number) for number in (found if isinstance(found, list) else [found])]
    except (TypeError, ValueError):
        raise damaged(f"a parameter of its objective is {text!r}, not a number") from None
