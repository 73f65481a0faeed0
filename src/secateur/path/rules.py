"""Select one point of a path: filter by the limits, then take the lowest loss or the cheapest point.

A new limit is one line in `Limits` and one in `LIMITS`.

The number of held-out rows that makes such a choice reliable is `secateur.selection.validation.holdout_size`.

References
----------
L. Wolf and Y. Mansour. Lecture 12: Decision tree pruning, section 12.1.4 (structural risk minimisation, rule "srm").
"""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from secateur.errors import InvalidInputError, NoPruningWithinLimitsError
from secateur.path.info import PathInfo

RULES = ("one_se", "one_percent", "srm", "fullest")

Table = Mapping[str, NDArray[Any]]


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


def within(table: Table, limits: Mapping[str, float | None]) -> NDArray[np.intp]:
    """Return the points that satisfy all limits.

    Raises
    ------
    ValueError
        If there is none; the message names the nearest point.
    """
    given = {name: limit for name, limit in limits.items() if limit is not None}
    allowed = np.ones(len(table["n_nodes"]), bool)
    excess = np.zeros(len(allowed))
    for name, limit in given.items():
        column = table[LIMITS[name]]
        allowed &= column <= limit
        excess = np.maximum(excess, (column - limit) / max(abs(limit), 1.0))
    if allowed.any():
        return np.flatnonzero(allowed)
    nearest = int(excess.argmin())
    found = ", ".join(f"{LIMITS[name]} = {table[LIMITS[name]][nearest]:g}" for name in given)
    needed = ", ".join(f"{name}={limit:g}" for name, limit in given.items())
    raise NoPruningWithinLimitsError(
        f"No point of the path satisfies {needed}. The nearest, point {nearest}, has {found}. Raise the limit."
    )


def evenly_spaced(size: NDArray[Any], n_points: int) -> NDArray[np.intp]:
    """Return at most `n_points` indices of a decreasing sequence, evenly spaced in its values and with the first.

    For a sequence of integers the values are rounded to integers.
    """
    grid = np.linspace(size[0], size[-1], n_points)
    grid = grid.round() if size.dtype.kind == "i" else grid
    return np.unique(np.searchsorted(-size, -grid).clip(0, len(size) - 1))


def choose(
    table: Table,
    info: PathInfo,
    limits: Mapping[str, float | None],
    max_loss_increase: float | None,
    rule: str | None = None,
    guard: float = 0.0,
) -> int:
    """Return the selected point.

    `guard` standard errors are added to a measured increase of the loss before it is compared with the bound.

    Raises
    ------
    ValueError
        If no point qualifies, or if the criterion needs losses and the path has not been evaluated.
    """
    points = within(table, limits)
    if rule is not None and rule not in RULES:
        raise InvalidInputError(f"rule={rule!r} is unknown; known are {', '.join(RULES)}. Use one of these or None.")
    # Structural risk: error + sqrt(size / rows), section 12.1.4 of the lecture.
    if rule == "srm":
        return _lowest(table, points, table["risk"] + np.sqrt(table["n_nodes"] / info.made_on_rows))
    if (max_loss_increase is not None or rule in ("one_se", "one_percent")) and "loss" not in table:
        raise InvalidInputError(
            "The path has not been evaluated, so its losses are not known. Call path.evaluate(X_val, y_val) first, "
            "or compute it with `secateur path … --validation`."
        )
    loss = table["loss"] if "loss" in table else table["risk"]
    if rule == "fullest":
        return _lowest(table, fullest(table, points, info.runs), loss)
    if max_loss_increase is not None:
        feared = loss + guard * table["increase_se"] if guard else loss
        scale = abs(loss[0]) if info.loss_scale is None else info.loss_scale
        return _smallest(table, points, feared, loss[0] + max_loss_increase * scale, max_loss_increase)
    if rule is not None:
        best = points[loss[points].argmin()]
        slack = table["loss_se"][best] if rule == "one_se" else 0.01 * abs(loss[best])
        return _smallest(table, points, loss, loss[best] + slack, None)
    return _lowest(table, points, loss)


def certificate(table: Table, point: int, max_cost: float | None) -> dict[str, float] | None:
    """Return a certificate for a point: no pruning within the same budget has a risk below `least_risk`.

    This is the Lagrangian bound. If risk + penalty · cost ≥ `bound` for every pruning, then every pruning within the
    budget has a risk of at least bound − penalty · budget. The budget is `max_cost`, or the cost of the point. Return
    None if the path has no bounds.
    """
    if "bound" not in table or np.isnan(table["bound"] * table["penalty"]).all():
        return None
    risk = float(table.get("tree_risk", table["risk"])[point])
    # The point comes from a solver without bounds.
    if np.isnan(risk):
        return None
    budget = float(table["cost"][point]) if max_cost is None else max_cost
    least = float(np.nanmax(table["bound"] - table["penalty"] * budget))
    return {"max_cost": budget, "risk": risk, "least_risk": min(least, risk), "gap": max(risk - least, 0.0)}


def fullest(table: Table, points: NDArray[np.intp], runs: tuple[str, ...]) -> NDArray[np.intp]:
    """Return the largest point of each run of a solver; the columns `runs` tell runs apart."""
    codes = [np.unique(table[name][points], return_inverse=True)[1] for name in runs]
    run = np.array(codes, np.intp).reshape(len(runs), len(points))
    # Sort by run, then by size; the last point of each run is its largest.
    order = points[np.lexsort([table["n_nodes"][points], *run])]
    run = run[:, np.searchsorted(points, order)]
    last = np.append((np.diff(run, axis=1) != 0).any(axis=0), True)
    return order[last]


def _lowest(table: Table, points: NDArray[np.intp], loss: NDArray[Any]) -> int:
    """Return the point with the lowest loss, and the cheapest of several."""
    ties = points[loss[points] == loss[points].min()]
    return int(ties[table["cost"][ties].argmin()])


def _smallest(table: Table, points: NDArray[np.intp], loss: NDArray[Any], bound: float, increase: float | None) -> int:
    """Return the cheapest point whose loss is within the bound; ties are broken by the lowest loss."""
    good = points[loss[points] <= bound]
    if not len(good):
        nearest = points[loss[points].argmin()]
        raise NoPruningWithinLimitsError(
            f"No point within the other limits loses at most {increase:g} of the unpruned loss {loss[0]:.6g}. "
            f"The nearest, point {nearest}, has loss {loss[nearest]:.6g} and {table['n_nodes'][nearest]} nodes. "
            "Allow a larger increase or a larger model."
        )
    order = np.lexsort([loss[good], table["cost"][good]])
    return int(good[order[0]])
