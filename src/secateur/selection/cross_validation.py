"""Cross-validate a path: score each point by paths fitted without a fold on the rows of that fold."""

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from secateur.data.row_source import RowSource
from secateur.errors import InterruptedWarning
from secateur.path import NestedMasks, Path, Progress

Floats = NDArray[np.float64]

_TIE = 1e-3
"""Weight of the penalty if points are matched by size: it only breaks ties."""


@dataclass(frozen=True, eq=False)
class Fold:
    """Hold a path fitted without the rows of a fold, and these rows.

    The path belongs to the given model or to a clone refitted without the fold.
    """

    path: Path
    judging: RowSource


def judge(
    whole: Path,
    shorten: Callable[[Path], Path],
    folds: Iterable[Fold],
    n_trials: int,
    *,
    match_by_size: bool,
    rows: str,
    progress: Progress | None = None,
) -> Path:
    """Return the shortened path with cross-validated losses; `rows` describes the validation rows in words.

    Each point is matched with the point of a fold's path that the same selection would give: the one with the same
    penalty or, with `match_by_size` (a node budget), the one with the same number of nodes.

    After Ctrl-C the losses are those of the folds completed so far, if any; the facts and a warning report it.
    """
    path = shorten(whole)
    penalty = path.table["penalty"]
    if isinstance(whole.masks, NestedMasks):
        penalty = _typical_penalty(penalty, whole.table["penalty"])
    # Columns: loss, loss_se, changed, increase_se. Weighted means add up over folds, standard errors add up squared.
    power = np.array([[1], [2], [1], [2]])
    tried: list[_FoldResult] = []
    try:
        for fold in folds:
            # An incomplete path lacks the points to match.
            if fold.path.facts.get("interrupted"):
                break
            match = _matching_points(path, penalty, fold.path, match_by_size)
            # Evaluate each matched point once. Point 0 is the reference for changed predictions and differences.
            matched, place = np.unique(np.concatenate([[0], match]), return_inverse=True)
            judged = fold.path.take(matched).evaluate_sample(fold.judging, rows="some rows")
            columns = [judged.table[name][place[1:]] for name in ("loss", "loss_se", "changed", "increase_se")]
            sums = (fold.judging.total_weight * np.array(columns)) ** power
            tried.append(_FoldResult(sums, fold.judging.total_weight, len(fold.judging)))
            if progress:
                progress(len(tried), n_trials, "trying on other rows")
    except KeyboardInterrupt:
        if not tried:
            raise
        message = f"Interrupted: the path is judged by {len(tried)} of {n_trials} rounds. Run again for the others."
        warnings.warn(message, InterruptedWarning, stacklevel=2)
    if not tried:
        raise KeyboardInterrupt
    weight, n_rows = sum(one.weight for one in tried), sum(one.n_rows for one in tried)
    loss, variance, changed, increase = np.sum([one.sums for one in tried], axis=0) / weight**power
    if len(tried) < n_trials:
        rows = f"{rows}, {len(tried)} of {n_trials} rounds"
        path = replace(path, facts={**path.facts, "interrupted": True})
    if match_by_size and "ridge" in path.table:
        path = replace(path, facts={**path.facts, "aimed": True})
    return path.with_losses(loss, np.sqrt(variance), changed, np.sqrt(increase), rows=rows, n_rows=n_rows)


class _FoldResult(NamedTuple):
    """Hold the weighted column sums of one fold, to be added over folds."""

    sums: Floats
    weight: float
    n_rows: int


def _typical_penalty(penalty: Floats, critical: Floats) -> Floats:
    """Return for each point a penalty in the middle of the interval in which it is optimal, (n_points,).

    The interval ends at the next critical penalty of the whole path. As in CART, the representative is the geometric
    mean of both ends; where the left end is not positive it is their arithmetic mean. The last interval is unbounded.
    """
    after = np.append(critical, np.inf)[np.searchsorted(critical, penalty, side="right")]
    with np.errstate(invalid="ignore"):
        return np.where(penalty > 0, np.sqrt(penalty) * np.sqrt(np.maximum(after, 0.0)), (penalty + after) / 2)


def _matching_points(path: Path, penalty: Floats, theirs: Path, match_by_size: bool) -> NDArray[np.intp]:
    """Return for each point of `path` the corresponding point of a fold's path, (n_points,).

    The criterion depends on the columns of the path: ridge and penalty (or size), relative cost and origin, penalty
    alone, or relative size.
    """
    if "ridge" in path.table:
        apart = np.abs(np.log(np.nan_to_num(penalty, nan=1.0)[:, None] / theirs.table["penalty"]))
        if match_by_size:
            apart = _ratio_of_nodes(path, theirs) + _TIE * apart
        for name in ("ridge", "kept"):
            apart[path.table[name][:, None] != theirs.table[name]] = np.inf
        match = np.nan_to_num(apart, nan=np.inf).argmin(axis=1)
        match[0] = 0
        return match
    if "origin" in path.table:
        spent, theirs_spent = (one.table["cost"] / max(one.table["cost"][0], 1e-300) for one in (path, theirs))
        apart = np.abs(spent[:, None] - theirs_spent)
        # Prefer points of the same origin: relative costs differ by at most 1.
        apart[path.table["origin"][:, None] != theirs.table["origin"]] += 1.0
        return apart.argmin(axis=1)
    if not np.isnan(penalty).any() and (np.diff(theirs.table["penalty"]) >= 0).all():
        match = np.maximum(np.searchsorted(theirs.table["penalty"], penalty, side="right") - 1, 0)
        match[0] = 0
        return match
    if len(path) == len(theirs) == 2:
        return np.arange(2)
    unpruned = path.table["n_nodes"][0] / theirs.table["n_nodes"][0]
    return _ratio_of_nodes(path, theirs, unpruned).argmin(axis=1)


def _ratio_of_nodes(path: Path, theirs: Path, usual: float = 1.0) -> Floats:
    """Return |log(size ratio / usual)| for each pair of points, (n_points, n_points of `theirs`)."""
    ratio: Floats = path.table["n_nodes"][:, None] / theirs.table["n_nodes"] / usual
    return np.abs(np.log(ratio))
