"""Evaluate the points of a path on rows in memory: losses, changed predictions and scores."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from secateur._util.user_functions import warn
from secateur.data.row_source import RowSource
from secateur.data.rows import LocalRows
from secateur.errors import InterruptedWarning, UnsupportedProblemError
from secateur.losses import Loss
from secateur.path.evaluation import MEASURED, compare
from secateur.path.score_columns import PointScores
from secateur.path.scoring import Measures
from secateur.problem import Progress

if TYPE_CHECKING:
    from secateur.path.path import Path

Floats = NDArray[np.float64]

SCORED = ("score", "score_se")
"""Columns that a scorer adds."""


def evaluate_locally(
    path: "Path", sample: LocalRows, loss: Loss, measures: Measures, progress: Progress | None, partial: bool
) -> dict[str, Floats]:
    """Return the measured columns, (n_points,) each; fewer points if interrupted and `partial`."""
    unpruned = path.on_rows(0, sample)
    scores = None if measures.scoring is None else PointScores(measures.scoring, unpruned, len(path))
    before = unpruned.losses(loss), unpruned.labels()
    weight = sample.weight / sample.total_weight
    rows: list[tuple[float, ...]] = []
    try:
        for point in range(len(path)):
            at = path.on_rows(point, sample) if point else unpruned
            found = (at.losses(loss), at.labels()) if point else before
            columns = compare(found, before, weight, measures.tolerance, sample.groups)
            rows.append(columns if scores is None else (*columns, *scores.of(at)))
            if progress:
                progress(point + 1, len(path), "evaluating")
    except KeyboardInterrupt:
        if not partial or len(rows) < 2:
            raise
        message = f"Interrupted: the path has the {len(rows)} of {len(path)} points evaluated so far."
        warn(f"{message} Run again for the others.", InterruptedWarning)
    names = MEASURED if scores is None else (*MEASURED, *SCORED)
    return dict(zip(names, np.array(rows).T, strict=True))


def rows_to_score(row_source: RowSource) -> LocalRows:
    """Return the rows in memory, because a metric is no sum over parts of the rows.

    Raises
    ------
    UnsupportedProblemError
        If they do not fit into memory.
    """
    if isinstance(row_source, LocalRows):
        return row_source
    if not row_source.fits_in_memory:
        raise UnsupportedProblemError(
            f"scoring needs the predictions of all rows on this machine, but the {len(row_source)} rows do not fit. "
            "Raise driver_bytes, pass fewer validation rows, or choose by a loss, which is a sum over rows."
        )
    return row_source.collect()
