"""Cross-validate a path: score each point by paths fitted without a fold on the rows of that fold."""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from secateur._util.user_functions import warn
from secateur.errors import InterruptedWarning
from secateur.path import NestedMasks, Path, Progress
from secateur.path.evaluation import MEASURED, Fold
from secateur.path.local_evaluation import SCORED
from secateur.path.scoring import LOSS_ONLY, Measures
from secateur.solvers import Solver

Floats = NDArray[np.float64]


class FoldResult(NamedTuple):
    """Hold the columns of one fold, multiplied by its weight; standard errors are squared, too."""

    sums: dict[str, Floats]
    weight: float
    n_rows: int
    loss_scale: float | None


def cross_validate(
    whole: Path,
    path: Path,
    folds: Iterable[Fold],
    n_folds: int,
    *,
    solver: Solver,
    same_size: bool,
    rows: str,
    measures: Measures = LOSS_ONLY,
    progress: Progress | None = None,
) -> Path:
    """Return `path`, some points of the `whole` path, with cross-validated losses.

    Each point is matched with the point of a fold's path that the same selection would give: the one with the same
    penalty or, with `same_size` (a node budget), the one with the same number of nodes. `rows` describes the validation
    rows in words. The loss and the score of a point are means over the folds, weighted by their rows.

    After Ctrl-C the losses are those of the folds completed so far, if any; `info` and a warning report it.
    """
    reference = at_typical_penalties(path, whole)
    results: list[FoldResult] = []
    try:
        for fold in folds:
            # An incomplete path lacks the points to match.
            if fold.path.info.interrupted:
                break
            match = solver.match(reference, fold.path, same_size=same_size)
            results.append(score_fold(fold, match, measures))
            if progress:
                progress(len(results), n_folds, "validating")
    except KeyboardInterrupt:
        if not results:
            raise
        message = f"Interrupted: the path is evaluated on {len(results)} of {n_folds} folds. Run again for all folds."
        warn(message, InterruptedWarning)
    if not results:
        raise KeyboardInterrupt
    weight, n_rows = sum(one.weight for one in results), sum(one.n_rows for one in results)
    columns = {name: _mean(name, [one.sums[name] for one in results], weight) for name in results[0].sums}
    if len(results) < n_folds:
        rows = f"{rows}, {len(results)} of {n_folds} rounds"
        path = path.with_info(interrupted=True)
    path = path.with_columns(columns, measures, rows=rows, n_rows=n_rows)
    scales = [one.loss_scale for one in results if one.loss_scale is not None]
    return path.with_info(loss_scale=float(np.mean(scales))) if scales else path


def score_fold(fold: Fold, match: NDArray[np.intp], measures: Measures = LOSS_ONLY) -> FoldResult:
    """Evaluate the matched points of a fold's path, each once, on the rows of the fold."""
    # Point 0 is the reference for changed predictions and differences.
    matched, position = np.unique(np.concatenate([[0], match]), return_inverse=True)
    rows, weight = fold.validation_rows, fold.validation_rows.total_weight
    evaluated = fold.path.take(matched).evaluate_sample(rows, measures=measures, rows="the rows of a fold")
    names = [name for name in (*MEASURED, *SCORED) if name in evaluated.table]
    sums = {name: (weight * evaluated.table[name][position[1:]]) ** _power(name) for name in names}
    return FoldResult(sums, weight, len(rows), evaluated.info.loss_scale)


def _mean(name: str, sums: list[Floats], weight: float) -> Floats:
    """Return the mean of a column over folds; the variance of a mean is the sum of squared errors."""
    total = np.sum(sums, axis=0) / weight ** _power(name)
    return np.sqrt(total) if _power(name) == 2 else total


def _power(name: str) -> int:
    return 2 if name.endswith("_se") else 1


def at_typical_penalties(path: Path, whole: Path) -> Path:
    """Return a path of nested prunings with the penalty of each point in the middle of its interval; others as is.

    A nested pruning is optimal from its own penalty to the next critical penalty of the `whole` path. As in CART, the
    geometric mean of both ends represents the interval.
    """
    if not isinstance(whole.masks, NestedMasks):
        return path
    penalty = typical_penalty(path.table["penalty"], whole.table["penalty"])
    return replace(path, table={**path.table, "penalty": penalty})


def typical_penalty(penalty: Floats, critical: Floats) -> Floats:
    """Return for each point a penalty in the middle of the interval in which it is optimal, (n_points,).

    Where the left end of the interval is not positive it is the arithmetic mean. The last interval is unbounded.
    """
    after = np.append(critical, np.inf)[np.searchsorted(critical, penalty, side="right")]
    with np.errstate(invalid="ignore"):
        return np.where(penalty > 0, np.sqrt(penalty) * np.sqrt(np.maximum(after, 0.0)), (penalty + after) / 2)
