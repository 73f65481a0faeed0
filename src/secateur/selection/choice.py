"""Select the point of an evaluated path that `prune` returns, and warn if the choice is unreliable."""

import warnings
from typing import Any

from secateur.errors import EverythingPrunedWarning, NoisyChoiceWarning, NothingPrunedWarning
from secateur.path import Path, Pruned


def choose_point(path: Path, *, max_loss_increase: float | None = None, **limits: Any) -> Pruned:
    """Return the point of an `evaluated_path` that `prune` returns, and warn if the choice is unreliable.

    Without limits, the rule is "one_percent". If the path was computed for a node budget, the rule is "fullest". The
    guard is half a standard error, or one standard error if clones of the model were evaluated.
    """
    free = max_loss_increase is None and all(limit is None for limit in limits.values())
    rule = "one_percent" if free else None
    if path.facts.get("aimed") and max_loss_increase is None:
        rule = "fullest"
    # The loss of a clone only approximates the loss of the model.
    guard = 1.0 if "clones" in path.facts else 0.5
    chosen = path.select(**limits, max_loss_increase=max_loss_increase, guard=guard, rule=rule)
    _warn_of_extremes(chosen)
    _warn_of_noise(chosen, max_loss_increase)
    return chosen


def _warn_of_extremes(chosen: Pruned) -> None:
    """Warn if nothing was pruned, or if only roots are left."""
    where, n_rows = chosen.facts["evaluated_on"], chosen.facts["evaluated_rows"]
    if chosen.given is None and chosen.row["n_nodes"] == chosen.source.forest.n_nodes:
        warnings.warn(
            f"Nothing was pruned: no smaller model on the path does as well on {where}, {n_rows} rows. The fewer rows, "
            "the less they can tell. Choose by more rows (validation), allow a larger max_loss_increase, or set "
            "max_nodes.",
            NothingPrunedWarning,
            stacklevel=5,
        )
    elif chosen.row["n_leaves"] == chosen.row["n_trees"]:
        cheapest = chosen.facts.get("cheapest")
        least = "" if cheapest is None else f"The cheapest pruning on the path that has one costs {cheapest:.6g}. "
        warnings.warn(
            f"Every tree was cut to its root, so the model predicts a constant: by {where} no split is worth keeping "
            f"within the limits. {least}Pass more rows, or a limit that allows more loss or more cost.",
            EverythingPrunedWarning,
            stacklevel=5,
        )


def _warn_of_noise(chosen: Pruned, max_loss_increase: float | None) -> None:
    """Warn if the standard error of the loss increase exceeds the allowed increase."""
    row, before = chosen.row, chosen.facts.get("unpruned_loss")
    if max_loss_increase is None or before is None or "increase_se" not in row:
        return
    allowed = max_loss_increase * abs(before)
    if row["increase_se"] > allowed > 0 and row["loss"] != before:
        warnings.warn(
            f"The loss may rise by {allowed:.2g}, but on {chosen.facts['evaluated_rows']} rows the difference is known "
            f"to ± {row['increase_se']:.2g} only: the choice is mostly noise. Choose by more rows (validation), or "
            "allow a larger max_loss_increase.",
            NoisyChoiceWarning,
            stacklevel=5,
        )
