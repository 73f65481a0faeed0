"""Define the limits on the selected point, and check them. A new limit is one line in `Limits` and one in `LIMITS`."""

from collections.abc import Callable, Mapping
from typing import Any, TypedDict, cast

from secateur._util.numbers import bytes_of, check_number
from secateur._util.user_functions import check_names, warn
from secateur.errors import InvalidInputError, UnusualArgumentWarning


class Limits(TypedDict, total=False):
    """Limits on the selected point; None stands for no limit.

    `max_nodes`, `max_leaves`, `max_trees`, `max_depth` and `max_features` limit the size of the model, `max_cost` its
    cost, and `max_bytes` the size of the saved model, in bytes or as a text such as "5MB". The others compare with the
    unpruned model: `max_loss_increase` limits the increase of the loss, as a fraction of it, `max_score_drop` the
    decrease of the score, and `max_changed` the fraction of rows whose prediction changes.
    """

    max_nodes: int | None
    max_leaves: int | None
    max_trees: int | None
    max_depth: int | None
    max_features: int | None
    max_cost: float | None
    max_bytes: int | str | None
    max_loss_increase: float | None
    max_score_drop: float | None
    max_changed: float | None


LIMITS = {
    "max_nodes": "n_nodes",
    "max_leaves": "n_leaves",
    "max_trees": "n_trees",
    "max_depth": "depth",
    "max_features": "n_features",
    "max_cost": "cost",
    "max_bytes": "bytes",
}
"""Column of the path's table that each limit on size or cost bounds."""
QUALITY_LIMITS = {"max_loss_increase": "loss", "max_score_drop": "score", "max_changed": "changed"}
"""Column of the evaluated path that each limit on the change bounds; with such a limit the cheapest point wins."""


_EXAMPLES = {"max_loss_increase": 0.05, "max_score_drop": 0.01, "max_changed": 0.01}


def checked_limits(given: Mapping[str, Any], function: Callable[..., Any]) -> Limits:
    """Return the limits passed to a function, with sizes such as "5MB" as numbers of bytes.

    Raises
    ------
    TypeError
        If a name is not that of a limit, as Python does.
    InvalidInputError
        If a limit is not a number, or has no meaning.
    """
    check_names(given, function, Limits.__annotations__)
    limits = dict(given)
    if isinstance(limits.get("max_bytes"), str):
        limits["max_bytes"] = bytes_of("max_bytes", limits["max_bytes"])
    for name, limit in limits.items():
        if limit is not None:
            check_number(name, limit, _EXAMPLES.get(name, 100))
    changed, drop = limits.get("max_changed"), limits.get("max_score_drop")
    if changed is not None and not 0 <= changed <= 1:
        raise InvalidInputError(f"max_changed={changed!r} is not a fraction of the rows. Pass a number from 0 to 1.")
    if drop is not None and not drop >= 0:
        raise InvalidInputError(f"max_score_drop={drop!r} is not a difference of scores. Pass a number from 0 on.")
    return cast(Limits, limits)


def warn_of_limits(limits: Limits) -> None:
    """Warn of a limit on the loss that was probably meant as a percentage."""
    increase = limits.get("max_loss_increase")
    if increase is not None and increase >= 1:
        warn(
            f"max_loss_increase={increase:g} means {100 * increase:g} %; for {increase:g} % pass {increase / 100:g}.",
            UnusualArgumentWarning,
        )


def size_limits(limits: Mapping[str, Any]) -> dict[str, float]:
    """Return the limits on size and cost that are set."""
    return _set_limits(limits, LIMITS)


def quality_limits(limits: Mapping[str, Any]) -> dict[str, float]:
    """Return the limits on loss, score and changed predictions that are set."""
    return _set_limits(limits, QUALITY_LIMITS)


def _set_limits(limits: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, float]:
    return {name: limits[name] for name in names if limits.get(name) is not None}
