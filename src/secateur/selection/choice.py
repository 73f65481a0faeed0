"""Select the point of an evaluated path that `prune` returns, and warn if the choice is unreliable."""

import warnings
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from secateur.errors import (
    EverythingPrunedWarning,
    NoisyChoiceWarning,
    NoPruningWithinLimitsError,
    NothingPrunedWarning,
)
from secateur.path import Limits, Path, Pruned
from secateur.path.rules import quality_limits


def choose_point(path: Path, *, confidence: float | None = None, **limits: Unpack[Limits]) -> Pruned:
    """Return the point of an `evaluated_path` that `prune` returns, and warn if the choice is unreliable.

    Without limits, the rule is "one_percent". If the path was computed for a node budget, and no limit is one on the
    loss, the score or the changed predictions, the rule is "fullest". The guard is half a standard error, or one
    standard error if clones of the model were evaluated. With `confidence`, the point is one that keeps the limits in
    truth, and there is no guard.
    """
    if confidence is not None:
        return path.select(confidence=confidence, **limits)
    rule = "one_percent" if all(limit is None for limit in limits.values()) else None
    if path.info.fills_budget and not quality_limits(limits):
        rule = "fullest"
    options: dict[str, Any] = {**limits, "guard": guard_for(path.info.clones), "rule": rule}
    # Prunings on the way to the one that was searched for are the second choice.
    points = np.flatnonzero(path.table.get("brief", np.zeros(len(path))) == 0)
    try:
        chosen = path.take(points).select(**options)
        chosen = replace(chosen, point=int(points[chosen.point]))
    except NoPruningWithinLimitsError:
        chosen = path.select(**options)
    _warn_of_extremes(chosen)
    _warn_of_noise(chosen, limits.get("max_loss_increase"))
    _warn_of_noisy_score(chosen, limits.get("max_score_drop"))
    return chosen


def guard_for(clones: int | None) -> float:
    """Return the number of standard errors added to a measured increase of the loss."""
    # The loss of a clone only approximates the loss of the model.
    return 1.0 if clones else 0.5


def _warn_of_extremes(chosen: Pruned) -> None:
    """Warn if nothing was pruned, or if only roots are left."""
    where, n_rows = chosen.info.evaluated_on, chosen.info.evaluated_rows
    if chosen.given is None and chosen.row["n_nodes"] == chosen.source.forest.n_nodes:
        warnings.warn(
            f"Nothing was pruned: no smaller model on the path has {_aim(chosen)} on {where} ({n_rows} rows). Few rows "
            f"make the choice noisy. Pass more validation rows, allow a larger {_allowance(chosen)}, or set max_nodes.",
            NothingPrunedWarning,
            stacklevel=5,
        )
    elif chosen.row["n_leaves"] == chosen.row["n_trees"]:
        cheapest = chosen.info.cheapest
        least = "" if cheapest is None else f"The cheapest pruning on the path that has a split costs {cheapest:.6g}. "
        warnings.warn(
            f"Every tree was pruned to its root, so the model predicts a constant: on {where}, no model with splits is "
            f"within the limits and better. {least}Pass more rows, or allow more loss or more cost.",
            EverythingPrunedWarning,
            stacklevel=5,
        )


def _aim(chosen: Pruned) -> str:
    """Return what a smaller model on the path does not have, in words."""
    scoring = chosen.info.scoring
    return "as low a loss" if scoring is None else f"as high a score ({scoring})"


def _allowance(chosen: Pruned) -> str:
    return "max_loss_increase" if chosen.info.scoring is None else "max_score_drop"


def _warn_of_noisy_score(chosen: Pruned, max_score_drop: float | None) -> None:
    """Warn if the standard error of the drop of the score exceeds the allowed drop."""
    row, before = chosen.row, chosen.info.unpruned_score
    if max_score_drop is None or before is None:
        return
    if row["score_se"] > max_score_drop > 0 and row["score"] != before:
        warnings.warn(
            f"The score {chosen.info.scoring} may drop by {max_score_drop:.2g}, but on {chosen.info.evaluated_rows} "
            f"rows the drop has a standard error of {row['score_se']:.2g}, so the choice is mostly noise. Pass more "
            "validation rows, or allow a larger max_score_drop.",
            NoisyChoiceWarning,
            stacklevel=5,
        )


def _warn_of_noise(chosen: Pruned, max_loss_increase: float | None) -> None:
    """Warn if the standard error of the loss increase exceeds the allowed increase."""
    row, before = chosen.row, chosen.info.unpruned_loss
    if max_loss_increase is None or before is None or "increase_se" not in row:
        return
    allowed = max_loss_increase * abs(before)
    if row["increase_se"] > allowed > 0 and row["loss"] != before:
        warnings.warn(
            f"The loss may increase by {allowed:.2g}, but on {chosen.info.evaluated_rows} rows the increase has a "
            f"standard error of {row['increase_se']:.2g}, so the choice is mostly noise. Pass more validation rows, or "
            "allow a larger max_loss_increase.",
            NoisyChoiceWarning,
            stacklevel=5,
        )
