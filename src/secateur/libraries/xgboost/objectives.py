"""What XGBoost's objectives mean: which link turns their sums into predictions, and by which loss they are judged."""

import json
from dataclasses import dataclass

from secateur.libraries.xgboost.saved_model import Saved, damaged, entry


@dataclass(frozen=True)
class Objective:
    """What a model was trained for.

    Attributes
    ----------
    link : str
    loss : str, or None
        The name of a loss, where the link's usual one is not meant.
    supervised : bool
        Whether a target can be compared with predictions; not so for ranks and times that may be cut off.
    classes : "", "two" or "many"
        Whether a target is a class: two for each output, or one for each output.
    """

    link: str = "identity"
    loss: str | None = None
    supervised: bool = True
    classes: str = ""


_OBJECTIVES = {
    "reg:squarederror": Objective(),
    "reg:linear": Objective(),
    "reg:pseudohubererror": Objective(),
    "reg:squaredlogerror": Objective(loss="squared_log_error"),
    "reg:absoluteerror": Objective(loss="absolute_error"),
    "reg:logistic": Objective("sigmoid"),
    "binary:logistic": Objective("logit", classes="two"),
    "binary:logitraw": Objective("logit", classes="two"),
    "binary:hinge": Objective("logit", loss="zero_one", classes="two"),
    "multi:softprob": Objective("softmax_c", classes="many"),
    "multi:softmax": Objective("softmax_c", classes="many"),
    "count:poisson": Objective("log_c", loss="poisson"),
    "reg:gamma": Objective("log_c", loss="gamma"),
    "survival:cox": Objective("log_c", supervised=False),
    "survival:aft": Objective("log_c", supervised=False),
}


def objective_of(saved: Saved) -> Objective:
    """Return what a saved model was trained for; what is not known here is judged by its own answers."""
    table = entry(saved, "learner", "objective")
    name = entry(table, "name")
    if name == "reg:quantileerror":
        levels = _numbers(entry(table, "quantile_loss_param", "quantile_alpha"))
        return Objective(loss=f"quantile:{levels[0]:g}") if len(levels) == 1 else Objective(supervised=False)
    if name == "reg:tweedie":
        power = _numbers(entry(table, "tweedie_regression_param", "tweedie_variance_power"))[0]
        return Objective("log_c", loss=f"tweedie:{power:g}")
    return _OBJECTIVES.get(name, Objective(supervised=False)) if isinstance(name, str) else Objective(supervised=False)


def _numbers(text: str) -> list[float]:
    """Return the number or the list of numbers in a text."""
    try:
        found = json.loads(text)
        return [float(number) for number in (found if isinstance(found, list) else [found])]
    except (TypeError, ValueError):
        raise damaged(f"a parameter of its objective is {text!r}, not a number") from None
