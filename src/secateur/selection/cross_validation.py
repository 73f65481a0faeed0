"""A path judged by others like it: made without some rows, by the same solver, and tried on those rows."""

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
"""What a penalty counts where sizes are matched: it only decides between equals."""


@dataclass(frozen=True, eq=False)
class Fold:
    """A path made without some rows, of the same model or of a clone of it, and those rows."""

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
    """Return the path, shortened, with the losses its points had in the trials; `rows` says in words on which rows.

    A point is matched with the point of a trial that the same choice would give: the same penalty, or `match_by_size`,
    where a number of nodes is aimed at, the same number of nodes. Ctrl-C ends the trials, not the judging: it goes by
    those done so far, if there are any, and says so in the facts and a warning.
    """
    path = shorten(whole)
    penalty = path.table["penalty"]
    if isinstance(whole.masks, NestedMasks):
        penalty = _typical_penalty(penalty, whole.table["penalty"])
    power = np.array([[1], [2], [1], [2]])  # losses and shares add up, and so do the squares of their standard errors
    tried: list[_FoldResult] = []
    try:
        for fold in folds:
            if fold.path.facts.get("interrupted"):
                break  # half a path would be matched with points it does not have
            match = _matching_points(path, penalty, fold.path, match_by_size)
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
    """What a trial told, to be added up."""

    sums: Floats
    weight: float
    n_rows: int


def _typical_penalty(penalty: Floats, critical: Floats) -> Floats:
    """Return for each point a penalty well inside the range in which it is optimal.

    That range ends at the next critical penalty of the whole path; half-way, on a logarithmic scale where both are
    positive, is the classical choice. The last range has no end.
    """
    after = np.append(critical, np.inf)[np.searchsorted(critical, penalty, side="right")]
    with np.errstate(invalid="ignore"):
        return np.where(penalty > 0, np.sqrt(penalty) * np.sqrt(np.maximum(after, 0.0)), (penalty + after) / 2)


def _matching_points(path: Path, penalty: Floats, theirs: Path, match_by_size: bool) -> NDArray[np.intp]:
    """Return for each point of `path` the point of a clone's path that the same choice would give."""
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
        apart[path.table["origin"][:, None] != theirs.table["origin"]] += 1.0  # points of the same kind first
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
    """Return how far apart in size each two points are: the logarithm of a ratio, which would be 0 at the usual one."""
    ratio: Floats = path.table["n_nodes"][:, None] / theirs.table["n_nodes"] / usual
    return np.abs(np.log(ratio))
