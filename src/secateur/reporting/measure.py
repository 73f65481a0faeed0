"""Measure the calibration of points of a path on given rows, and choose the points to measure."""

import numpy as np
from numpy.typing import NDArray

from secateur.data.rows import LocalRows
from secateur.path import Path

_BINS = 10


def calibration(path: Path, sample: LocalRows, point: int) -> float | None:
    """Return the expected calibration error of a point.

    It is the weighted mean over ten equal-width bins of |accuracy − mean probability|, where the bins divide the
    probability of the predicted label. None if the model predicts no probabilities or has several targets.
    """
    forest = path.forest
    if len(forest.n_classes) != 1 or not path.source.supervised:
        return None
    raw = sample.scores(forest, path.decision(point) if point else None)
    probability = forest.response.mean(raw, forest.n_classes)[0]
    confidence = probability.max(axis=1)
    correct = probability.argmax(axis=1) == sample.y[:, 0]
    bins = np.clip((confidence * _BINS).astype(int), 0, _BINS - 1)
    deviation = np.bincount(bins, sample.weight * (correct - confidence), minlength=_BINS)
    return float(np.abs(deviation).sum() / sample.total_weight)


def spread(n_points: int, most: int, required: list[int]) -> NDArray[np.intp]:
    """Return at most `most` points, evenly spread over a path and including the points `required`."""
    if n_points <= most:
        return np.arange(n_points)
    return np.union1d(np.linspace(0, n_points - 1, most - len(required)).round().astype(np.intp), required)
