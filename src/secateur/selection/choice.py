"""Select the point of an evaluated path that `prune` returns, and warn if the choice is unreliable."""

import logging
from typing import Unpack

from secateur._util.user_functions import warn
from secateur.errors import EverythingPrunedWarning, NoisyChoiceWarning, NothingPrunedWarning
from secateur.path import Limits, Path, Pruned
from secateur.path.guard import guard_for
from secateur.path.limits import checked_limits
from secateur.path.rules import loss_scale

_LOG = logging.getLogger("secateur.prune")


def choose_point(path: Path, *, confidence: float | None = None, **given: Unpack[Limits]) -> Pruned:
    """Return the point that `path.select` does, log the choice, and warn if it is unreliable."""
    limits = checked_limits(given, Path.select)
    chosen = path.choose(limits, confidence=confidence)
    _LOG.info("%s", _choice(chosen, limits))
    if confidence is None:
        _warn_of_extremes(chosen, limits)
        _warn_of_noise(chosen, limits.get("max_loss_increase"))
        _warn_of_noisy_score(chosen, limits.get("max_score_drop"))
    return chosen


def _choice(chosen: Pruned, limits: Limits) -> str:
    """Return in words what was chosen, from how many prunings, by which limits and on which rows."""
    given = ", ".join(f"{name}={limit:g}" for name, limit in limits.items() if isinstance(limit, int | float))
    where = chosen.info.evaluated_on or "the rows passed"
    n_points = 0 if chosen.path is None else len(chosen.path)
    return f"{chosen!r} of {n_points}: {given or 'no limit'}; chosen on {chosen.info.evaluated_rows} rows: {where}."


def _warn_of_extremes(chosen: Pruned, limits: Limits) -> None:
    """Warn if nothing was pruned, or if only roots are left."""
    where, n_rows = chosen.info.evaluated_on, chosen.info.evaluated_rows
    if chosen.given is None and chosen.row["n_nodes"] == chosen.source.forest.n_nodes:
        reason = (
            f"no smaller model on the path has {_aim(chosen)} on {where} ({n_rows} rows). Few rows make the choice "
            f"noisy. Pass more validation rows, allow a larger {_allowance(chosen)}, or set max_nodes."
        )
        warn(
            f"Nothing was pruned: {_too_few_rows(chosen, limits.get('max_loss_increase')) or reason}",
            NothingPrunedWarning,
        )
    elif chosen.row["n_leaves"] == chosen.row["n_trees"]:
        cheapest = chosen.info.cheapest
        least = "" if cheapest is None else f"The cheapest pruning on the path that has a split costs {cheapest:.6g}. "
        warn(
            f"Every tree was pruned to its root, so the model predicts a constant: on {where}, no model with splits is "
            f"within the limits and better. {least}Pass more rows, or allow more loss or more cost.",
            EverythingPrunedWarning,
        )


def _too_few_rows(chosen: Pruned, max_loss_increase: float | None) -> str | None:
    """Return that smaller models were measured within the limit, but by too few rows to rely on it; None if not so."""
    path, n_rows = chosen.path, chosen.info.evaluated_rows
    if path is None or max_loss_increase is None or n_rows is None or "increase_se" not in path.table:
        return None
    table, scale = path.table, loss_scale(path.table, path.info)
    smaller = table["n_nodes"] < table["n_nodes"][0]
    loss, error = table["loss"][smaller], table["increase_se"][smaller]
    bound = table["loss"][0] + max_loss_increase * scale
    needed = guard_for(path.info.clones).rows_needed(loss, error, scale, bound, n_rows)
    if needed is None:
        return None
    return (
        f"on {chosen.info.evaluated_on} ({n_rows} rows), smaller models are within max_loss_increase="
        f"{max_loss_increase:g}, but so few rows cannot tell that from luck. Pass about {max(needed, n_rows + 1):,} "
        "validation rows, allow a larger max_loss_increase, or set max_nodes."
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
        warn(
            f"The score {chosen.info.scoring} may drop by {max_score_drop:.2g}, but on {chosen.info.evaluated_rows} "
            f"rows the drop has a standard error of {row['score_se']:.2g}, so the choice is mostly noise. Pass more "
            "validation rows, or allow a larger max_score_drop.",
            NoisyChoiceWarning,
        )


def _warn_of_noise(chosen: Pruned, max_loss_increase: float | None) -> None:
    """Warn if the standard error of the loss increase exceeds the allowed increase."""
    row, before = chosen.row, chosen.info.unpruned_loss
    if max_loss_increase is None or before is None or "increase_se" not in row:
        return
    allowed = max_loss_increase * abs(before)
    if row["increase_se"] > allowed > 0 and row["loss"] != before:
        warn(
            f"The loss may increase by {allowed:.2g}, but on {chosen.info.evaluated_rows} rows the increase has a "
            f"standard error of {row['increase_se']:.2g}, so the choice is mostly noise. Pass more validation rows, or "
            "allow a larger max_loss_increase.",
            NoisyChoiceWarning,
        )
