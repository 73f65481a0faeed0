"""Measure the calibration and the prediction time of points of a path on given rows."""

import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.data.rows import LocalRows
from secateur.path import Path, Pruned

_BINS = 10
_TIMED_ROWS = 1000
_TIMED_SECONDS = 0.1


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


def microseconds(pruned: Pruned, X: Any) -> tuple[float, str]:
    """Return the prediction time per row in a batch, and the library that predicted.

    The model's own `predict` is timed. If there is none, or it does not accept the rows, `Pruned.predict` is timed
    instead.
    """
    rows, engine = X[: min(_TIMED_ROWS, len(X))], "secateur"
    predict: Callable[[Any], Any] = pruned.predict
    with warnings.catch_warnings():
        # Libraries may warn about the type of the rows at every call.
        warnings.simplefilter("ignore")
        if pruned.source.predicts_natively:
            native = pruned.to_model().predict
            with suppress(TypeError, ValueError, AttributeError):
                native(rows)
                predict, engine = native, pruned.source.library
        predict(rows)
        return _minimum_seconds(predict, rows) / len(rows) * 1e6, engine


def _minimum_seconds(predict: Any, rows: Any) -> float:
    """Return the minimum time of repeated calls in seconds; other load on the machine can only add time."""
    minimum, first_start = np.inf, time.perf_counter()
    while (start := time.perf_counter()) - first_start < _TIMED_SECONDS:
        predict(rows)
        minimum = min(minimum, time.perf_counter() - start)
    return float(minimum)


def spread(n_points: int, most: int, required: list[int]) -> NDArray[np.intp]:
    """Return at most `most` points, evenly spread over a path and including the points `required`."""
    if n_points <= most:
        return np.arange(n_points)
    return np.union1d(np.linspace(0, n_points - 1, most - len(required)).round().astype(np.intp), required)
