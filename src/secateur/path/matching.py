"""Match the points of two paths of the same solver, so that one path's losses estimate those of the other.

Cross-validation scores a point by the point of a fold's path that the same selection would give.
"""

import numpy as np
from numpy.typing import NDArray

from secateur.path.path import Path

Floats = NDArray[np.float64]

_TIE = 1e-3
"""Weight of the penalty if points are matched by size: it only breaks ties."""


def match_by_penalty(path: Path, other: Path) -> NDArray[np.intp]:
    """Return for each point the point of `other` that is optimal at the same penalty, (n_points,).

    Without a monotone sequence of penalties, points are matched by their size relative to the unpruned model.
    """
    penalty, theirs = path.table["penalty"], other.table["penalty"]
    if not np.isnan(penalty).any() and (np.diff(theirs) >= 0).all():
        match = np.maximum(np.searchsorted(theirs, penalty, side="right") - 1, 0)
        match[0] = 0
        return match
    if len(path) == len(other) == 2:
        return np.arange(2)
    unpruned = path.table["n_nodes"][0] / other.table["n_nodes"][0]
    return _size_distance(path, other, unpruned).argmin(axis=1)


def match_by_cost(path: Path, other: Path) -> NDArray[np.intp]:
    """Return for each point the point of `other` with the nearest relative cost, preferably of the same origin."""
    spent, theirs = (one.table["cost"] / max(one.table["cost"][0], 1e-300) for one in (path, other))
    distance = np.abs(spent[:, None] - theirs)
    # Relative costs differ by at most 1.
    distance[path.table["origin"][:, None] != other.table["origin"]] += 1.0
    return distance.argmin(axis=1)


def match_runs(path: Path, other: Path, *, same_size: bool) -> NDArray[np.intp]:
    """Return for each point the point of the same run of `other` with the nearest penalty, or size (`same_size`)."""
    penalty = np.nan_to_num(path.table["penalty"], nan=1.0)
    distance = np.abs(np.log(penalty[:, None] / other.table["penalty"]))
    if same_size:
        distance = _size_distance(path, other) + _TIE * distance
    for name in path.info.runs:
        distance[path.table[name][:, None] != other.table[name]] = np.inf
    match = np.nan_to_num(distance, nan=np.inf).argmin(axis=1)
    match[0] = 0
    return match


def _size_distance(path: Path, other: Path, usual: float = 1.0) -> Floats:
    """Return |log(size ratio / usual)| for each pair of points, (n_points, n_points of `other`)."""
    ratio: Floats = path.table["n_nodes"][:, None] / other.table["n_nodes"] / usual
    return np.abs(np.log(ratio))
