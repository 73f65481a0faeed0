"""Map LightGBM objectives to the link of their raw predictions and to their loss."""

from dataclasses import dataclass

from secateur.errors import UnsupportedModelError
from secateur.libraries.lightgbm.text_file import ModelText, damaged

_TREES_FOR_ONE = {
    "binary": "logit",
    "cross_entropy": "sigmoid",
    "cross_entropy_lambda": "softplus",
    "regression": "identity",
    "regression_l1": "identity",
    "huber": "identity",
    "fair": "identity",
    "quantile": "identity",
    "mape": "identity",
    "poisson": "log_c",
    "gamma": "log_c",
    "tweedie": "log_c",
    "lambdarank": "identity",
    "rank_xendcg": "identity",
}
_TREES_FOR_CLASSES = {"multiclass": "softmax_c", "multiclassova": "one_vs_all"}
_LOSSES = {"regression_l1": "absolute_error", "poisson": "poisson", "gamma": "gamma"}
_LOSSES_WITH_NUMBER = {
    "quantile": ("quantile", "alpha"),
    "huber": ("huber", "alpha"),
    "tweedie": ("tweedie", "tweedie_variance_power"),
}


@dataclass(frozen=True)
class LightGBMObjective:
    """Describe a model's training objective.

    Attributes
    ----------
    name : str
        LightGBM's name; empty for a custom objective.
    link : str
    n_classes : int
        0 for regression and ranking.
    loss : str or None
        The name of the training loss; None if it is the default loss of the link.
    """

    name: str
    link: str
    n_classes: int = 0
    loss: str | None = None

    @property
    def supervised(self) -> bool:
        """Whether predictions can be compared with a target of one number per row."""
        return self.name not in ("", "lambdarank", "rank_xendcg")


def read_objective(model: ModelText) -> LightGBMObjective:
    """Return the model's training objective.

    Raises
    ------
    UnsupportedModelError
        If the objective is unknown.
    DamagedFileError
        If the objective does not match the number of trees.
    """
    name, *entries = model.header.get("objective", "").split(" ")
    outputs = model.per_iteration
    options = dict(entry.partition(":")[::2] for entry in entries)
    if model.header["num_class"] != str(outputs):
        raise damaged(f"num_class is {model.header['num_class']}, but there are {outputs} trees per iteration")
    if not name or name in ("custom", "none"):
        return LightGBMObjective("", "identity")
    if name in _TREES_FOR_CLASSES:
        if options.get("num_class") != str(outputs):
            raise damaged(
                f"The objective is {model.header['objective'][:60]!r}, but there are {outputs} trees per iteration"
            )
        return LightGBMObjective(name, _TREES_FOR_CLASSES[name] + _slope(options, ("num_class",)), n_classes=outputs)
    if name not in _TREES_FOR_ONE:
        raise UnsupportedModelError(
            f"The objective {name[:40]!r} is not supported. secateur supports "
            f"{', '.join((*_TREES_FOR_ONE, *_TREES_FOR_CLASSES))} and custom objectives. Train the model with one of "
            "these."
        )
    if outputs != 1:
        raise damaged(f"The objective is {name!r}, which needs 1 tree per iteration, but there are {outputs}")
    link = _TREES_FOR_ONE[name] + _slope(options, ("sqrt",))
    if "sqrt" in options:
        if link != "identity":
            raise damaged(f"The objective is {model.header['objective'][:60]!r}, which has no option sqrt")
        return LightGBMObjective(name, "signed_square")
    return LightGBMObjective(name, link, 2 if name == "binary" else 0, _loss(name, model.parameters))


def _slope(options: dict[str, str], others: tuple[str, ...]) -> str:
    """Return the suffix ":slope" of a link, empty for slope 1; raise DamagedFileError for any other option."""
    unknown = set(options) - {"sigmoid", *others}
    try:
        slope = float(options.get("sigmoid", "1"))
    except ValueError:
        slope = 0.0
    if unknown or not 0 < slope < float("inf"):
        raise damaged(f"The objective has the invalid options {options}")
    return f":{slope!r}" if slope != 1.0 else ""


def _loss(name: str, parameters: dict[str, str]) -> str | None:
    if name not in _LOSSES_WITH_NUMBER:
        return _LOSSES.get(name)
    loss, parameter = _LOSSES_WITH_NUMBER[name]
    try:
        number = float(parameters[parameter])
    except (KeyError, ValueError):
        return None
    return "poisson" if (loss, number) == ("tweedie", 1.0) else f"{loss}:{number!r}"
