"""Define the limits a pruning must satisfy. A new limit is one line here and, if needed, one rule in `rules`."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, TypedDict


class Limits(TypedDict, total=False):
    """Limits on the selected point; None stands for no limit.

    `max_nodes`, `max_leaves`, `max_trees`, `max_depth` and `max_features` limit the size of the model, `max_cost` its
    cost, `max_bytes` the size of the saved model, and `max_loss_increase` the increase of the loss, as a fraction of
    the unpruned model's.
    """

    max_nodes: int | None
    max_leaves: int | None
    max_trees: int | None
    max_depth: int | None
    max_features: int | None
    max_cost: float | None
    max_bytes: int | None
    max_loss_increase: float | None


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


def check_limits(given: Mapping[str, Any], function: str) -> None:
    """Raise TypeError, as Python does for an unknown keyword argument, if a name is not that of a limit."""
    for name in given:
        if name not in Limits.__annotations__:
            close = get_close_matches(name, Limits.__annotations__, 1)
            advice = f" Did you mean {close[0]!r}?" if close else ""
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}.{advice}")


def size_limits(limits: Mapping[str, Any]) -> dict[str, float]:
    """Return the limits on size and cost that are set."""
    return {name: limits[name] for name in LIMITS if limits.get(name) is not None}
