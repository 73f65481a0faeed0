"""Select one point of a path: filter by the limits, then take the lowest loss or the cheapest point.

The number of held-out rows that makes such a choice reliable is `secateur.selection.validation.holdout_size`.

References
----------
L. Wolf and Y. Mansour. Lecture 12: Decision tree pruning, section 12.1.4 (structural risk minimisation, rule "srm").
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur._util.registry import advice_on
from secateur.errors import InvalidInputError, NoPruningWithinLimitsError
from secateur.losses import loss_named
from secateur.path.guard import Guard, guard_for
from secateur.path.info import PathInfo
from secateur.path.limits import LIMITS, QUALITY_LIMITS, quality_limits, size_limits

RULES = ("lowest", "one_se", "one_percent", "srm", "fullest")

Table = Mapping[str, NDArray[Any]]


def _default_rule(table: Table, info: PathInfo, limits: Mapping[str, Any]) -> str:
    """Return the rule by which a point is chosen if no rule is given and no limit is one on quality."""
    if info.fills_budget:
        return "fullest"
    return "lowest" if "loss" not in table or size_limits(limits) else "one_percent"


def within(table: Table, limits: Mapping[str, float | None]) -> NDArray[np.intp]:
    """Return the points that satisfy all limits on size, cost and changed predictions.

    Raises
    ------
    ValueError
        If there is none; the message names the nearest point.
    """
    given = {name: limit for name, limit in limits.items() if limit is not None}
    columns = {name: LIMITS.get(name) or QUALITY_LIMITS[name] for name in given}
    allowed = np.ones(len(table["n_nodes"]), bool)
    excess = np.zeros(len(allowed))
    for name, limit in given.items():
        column = table[columns[name]]
        allowed &= column <= limit
        excess = np.maximum(excess, (column - limit) / max(abs(limit), 1.0))
    if allowed.any():
        return np.flatnonzero(allowed)
    nearest = int(excess.argmin())
    found = ", ".join(f"{columns[name]} = {table[columns[name]][nearest]:g}" for name in given)
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
    table: Table, info: PathInfo, limits: Mapping[str, Any], rule: str | None = None, guard: float | None = None
) -> int:
    """Return the selected point.

    `guard` standard errors are added to a measured increase of the loss, and to a measured drop of the score, before it
    is compared with its limit; None is the default of `secateur.path.guard`.

    Raises
    ------
    ValueError
        If no point qualifies, or if the criterion needs columns of an evaluated path and they are missing.
    """
    quality = quality_limits(limits)
    margin = guard_for(info.clones, guard)
    rule = rule or (None if quality else _default_rule(table, info, limits))
    _check_criterion(table, rule, quality)
    sizes = size_limits(limits)
    points = within(table, {**sizes, "max_changed": quality.get("max_changed")})
    # Structural risk: error + sqrt(size / rows), section 12.1.4 of the lecture.
    if rule == "srm":
        _check_error_rate(info)
        return _lowest(table, points, table["risk"] + np.sqrt(table["n_nodes"] / info.made_on_rows))
    loss = _criterion(table)
    if rule == "fullest":
        return _lowest(table, fullest(table, points, info.runs), loss)
    if "max_loss_increase" in quality:
        loss = margin.upper(table["loss"], table["increase_se"], loss_scale(table, info))
        points = _within_loss(table, info, points, loss, quality["max_loss_increase"])
    if "max_score_drop" in quality:
        points = _within_score(table, points, quality["max_score_drop"], margin)
    if quality:
        return _cheapest(table, points, loss)
    if rule in ("one_se", "one_percent"):
        best = points[loss[points].argmin()]
        good = loss[points] <= loss[best] + _slack(table, points, best, rule)
        return _cheapest(table, points[good], loss)
    return _lowest(table, points, loss)


def _check_criterion(table: Table, rule: str | None, quality: Mapping[str, float]) -> None:
    """Raise InvalidInputError if the rule is unknown, or a column that the criterion needs is missing."""
    if rule is not None and rule not in RULES:
        raise InvalidInputError(f"rule={rule!r} is unknown; known are {', '.join(RULES)}. {advice_on(rule, RULES)}")
    if (quality or rule in ("one_se", "one_percent")) and "loss" not in table:
        raise InvalidInputError(
            "The path has not been evaluated, so its losses are not known. Call path.evaluate(X_val, y_val) first, "
            "or compute it with `secateur path … --validation`."
        )
    if "max_score_drop" in quality and "score" not in table:
        raise InvalidInputError(
            "max_score_drop limits the drop of a score, but no scorer was given. Pass scoring= as well, to prune or to "
            "path.evaluate, or limit the loss with max_loss_increase."
        )


def _check_error_rate(info: PathInfo) -> None:
    """Raise InvalidInputError if the risk is no error rate: sqrt(nodes / rows) has its scale, and no other unit."""
    loss = info.risk_loss or info.loss
    if not loss_named(loss).counts_errors:
        raise InvalidInputError(
            f"rule='srm' adds sqrt(nodes / rows) to an error rate, but the risk of this path is {loss!r}. Compute a "
            "classifier's path with loss='zero_one', or evaluate the path on validation rows and use rule='one_se'."
        )


def _criterion(table: Table) -> NDArray[Any]:
    """Return what is to be low: the negative score, the loss, or the risk, whichever the path has."""
    if "score" in table:
        return -table["score"]
    return table["loss"] if "loss" in table else table["risk"]


def _slack(table: Table, points: NDArray[np.intp], best: np.intp, rule: str) -> NDArray[Any] | float:
    """Return by how much the criterion of the points may exceed that of the best point."""
    if rule == "one_percent":
        return 0.01 * abs(float(_criterion(table)[best]))
    # The error of a score is that of its drop, which differs by point.
    return np.nan_to_num(table["score_se"][points]) if "score" in table else float(table["loss_se"][best])


def loss_scale(table: Table, info: PathInfo) -> float:
    """Return the loss that a limit on its increase is a fraction of."""
    return float(abs(table["loss"][0])) if info.loss_scale is None else info.loss_scale


def _within_loss(
    table: Table, info: PathInfo, points: NDArray[np.intp], feared: NDArray[Any], increase: float
) -> NDArray[np.intp]:
    """Return the points whose loss, with the guard added, increases by at most the fraction `increase`."""
    unpruned = table["loss"][0]
    good = points[feared[points] <= unpruned + increase * loss_scale(table, info)]
    if len(good):
        return good
    nearest = points[feared[points].argmin()]
    raise NoPruningWithinLimitsError(
        f"No point within the other limits loses at most {increase:g} of the unpruned loss {unpruned:.6g}. "
        f"The nearest, point {nearest}, has loss {feared[nearest]:.6g} and {table['n_nodes'][nearest]} nodes. "
        "Allow a larger increase or a larger model."
    )


def _within_score(table: Table, points: NDArray[np.intp], drop: float, guard: Guard) -> NDArray[np.intp]:
    """Return the points whose score is at most `drop` below that of the unpruned model."""
    score = table["score"]
    feared = -guard.upper(-score, np.nan_to_num(table["score_se"]), float(abs(score[0])))
    good = points[feared[points] >= score[0] - drop]
    if len(good):
        return good
    nearest = points[feared[points].argmax()]
    raise NoPruningWithinLimitsError(
        f"No point within the other limits has a score at most {drop:g} below the unpruned score {score[0]:.6g}. "
        f"The nearest, point {nearest}, has score {score[nearest]:.6g} ± {table['score_se'][nearest]:.2g} and "
        f"{table['n_nodes'][nearest]} nodes. Allow a larger drop or a larger model."
    )


def certificate(table: Table, point: int, max_cost: float | None) -> dict[str, float] | None:
    """Return a certificate for a point: no pruning within the same budget has a risk below `least_risk`.

    This is the Lagrangian bound. If risk + penalty · cost ≥ `bound` for every pruning, then every pruning within the
    budget has a risk of at least bound − penalty · budget. The budget is `max_cost`, or the cost of the point. The
    bound of a point with a `budget` holds for the prunings within this budget. Return None if the path has no bounds.
    """
    if "bound" not in table or np.isnan(table["bound"] * table["penalty"]).all():
        return None
    risk = float(table.get("tree_risk", table["risk"])[point])
    # The point comes from a solver without bounds.
    if np.isnan(risk):
        return None
    budget = float(table["cost"][point]) if max_cost is None else max_cost
    least_risks = table["bound"] - table["penalty"] * budget
    if "budget" in table:
        least_risks = np.where(table["budget"] < budget * (1 - 1e-9), np.nan, least_risks)
    least = float(np.nanmax(least_risks))
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


def _cheapest(table: Table, points: NDArray[np.intp], loss: NDArray[Any]) -> int:
    """Return the cheapest point; ties are broken by the lowest loss."""
    return int(points[np.lexsort([loss[points], table["cost"][points]])[0]])
