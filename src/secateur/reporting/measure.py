"""What rows tell of some points of a path that its table does not: calibration, and the time a prediction takes."""

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.data.rows import LocalRows
from secateur.path import Path, Pruned

_BINS = 10
_TIMED_ROWS = 1000
_TIMED_SECONDS = 0.1


def calibration(path: Path, sample: LocalRows, point: int) -> float | None:
    """Return by how much the share of right labels differs from the probability told for them, on average.

    The expected calibration error of ten equal bins of the probability of the label told. None where a model tells no
    probabilities, or has several targets.
    """
    forest = path.forest
    if len(forest.n_classes) != 1 or not path.source.supervised:
        return None
    raw = sample.scores(forest, path.decision(point) if point else None)
    told = forest.response.mean(raw, forest.n_classes)[0]
    sure = told.max(axis=1)
    right = told.argmax(axis=1) == sample.y[:, 0]
    bins = np.clip((sure * _BINS).astype(int), 0, _BINS - 1)
    off = np.bincount(bins, sample.weight * (right - sure), minlength=_BINS)
    return float(np.abs(off).sum() / sample.total_weight)


def microseconds(pruned: Pruned, X: Any) -> tuple[float, str]:
    """Return the time its own library takes to predict a row in a batch, and who predicted.

    Where the library wants rows in a form of its own, the time of `Pruned.predict`.
    """
    rows = X[: min(_TIMED_ROWS, len(X))]
    model, engine = pruned.to_model(), pruned.source.library
    predict = getattr(model, "predict", None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a library has to say of the form of the rows, call after call
        try:
            if engine in ("spark", "secateur") or predict is None:
                raise TypeError
            predict(rows)
        except (TypeError, ValueError, AttributeError):
            predict, engine = pruned.predict, "secateur"
            predict(rows)
        return _least_seconds(predict, rows) / len(rows) * 1e6, engine


def _least_seconds(predict: Any, rows: Any) -> float:
    """Return the seconds of the quickest of some calls: what else runs on the machine only ever adds."""
    least, began = np.inf, time.perf_counter()
    while (start := time.perf_counter()) - began < _TIMED_SECONDS:
        predict(rows)
        least = min(least, time.perf_counter() - start)
    return float(least)


def spread(n_points: int, most: int, always: list[int]) -> NDArray[np.intp]:
    """Return at most `most` points evenly spread over a path, and some that are always among them."""
    if n_points <= most:
        return np.arange(n_points)
    return np.union1d(np.linspace(0, n_points - 1, most - len(always)).round().astype(np.intp), always)
