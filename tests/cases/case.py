"""Define what a recipe returns: a fitted model, rows, and the predictions of the library itself."""

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


def by_its_methods(model: Any, X: Any) -> dict[str, Any]:
    """Return the predictions of a model that has scikit-learn's methods, by the names of the methods."""
    names = [name for name in ("predict", "predict_proba", "score_samples") if hasattr(model, name)]
    return {name: getattr(model, name)(X) for name in names}


@dataclass(frozen=True)
class Case:
    """A fitted model, the rows it was fitted on, and rows it can predict (with NaN where it allows them).

    Attributes
    ----------
    predictions : callable
        `predictions(model, X)` returns the library's predictions by the names of the methods of `Pruned`: predict,
        predict_proba, score_samples, raw.
    serialise : callable
        `serialise(model)` returns bytes that change if and only if the model changes.
    ulp : int
        By how many units in the last place of the largest prediction two predictions may differ; 0 means equal bits.
    """

    model: Any
    X: Any
    y: Any
    X_new: Any
    sample_weight: Any = None
    predictions: Callable[[Any, Any], dict[str, Any]] = by_its_methods
    serialise: Callable[[Any], bytes] = pickle.dumps
    ulp: int = 0

    def same(self, a: Any, b: Any) -> bool:
        """Return whether two predictions are equal; several targets come as lists."""
        if isinstance(a, list):
            return isinstance(b, list) and all(self.same(p, q) for p, q in zip(a, b, strict=True))
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        if not self.ulp or a.dtype.kind != "f":
            return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
        return bool((np.abs(a - b) <= self.ulp * np.spacing(np.abs(a).max(initial=0.0))).all())
