"""Which point of an evaluated path `prune` takes, with a warning where the choice is worth little."""

import warnings
from typing import Any

from secateur.errors import EverythingPrunedWarning, NoisyChoiceWarning, NothingPrunedWarning
from secateur.path import Path, Pruned


def choose_point(path: Path, *, max_loss_increase: float | None = None, **limits: Any) -> Pruned:
    """Return the point of an `evaluated_path` that `prune` takes, and warn where the choice is worth little."""
    free = max_loss_increase is None and all(limit is None for limit in limits.values())
    rule = "one_percent" if free else None
    if path.facts.get("aimed") and max_loss_increase is None:
        rule = "fullest"  # a budget is used up
    guard = 1.0 if "clones" in path.facts else 0.5  # a clone is like the model, but not the model
    chosen = path.select(**limits, max_loss_increase=max_loss_increase, guard=guard, rule=rule)
    _warn_of_extremes(chosen)
    _warn_of_noise(chosen, max_loss_increase)
    return chosen


def _warn_of_extremes(chosen: Pruned) -> None:
    """Warn when pruning did nothing, or left nothing but roots."""
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
    """Warn when the rows that chose cannot tell a difference as small as the one allowed."""
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
