"""What a recipe gives: a fitted model, rows, and how to ask the library itself."""

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


def by_its_methods(model: Any, X: Any) -> dict[str, Any]:
    """Return what a model with scikit-learn's methods says."""
    names = [name for name in ("predict", "predict_proba", "score_samples") if hasattr(model, name)]
    return {name: getattr(model, name)(X) for name in names}


@dataclass(frozen=True)
class Case:
    """A fitted model, the rows it was fitted on, and rows it can predict (with NaN where it allows them).

    Attributes
    ----------
    ask : callable
        `ask(model, X)` returns what the library says, by the names of the methods of `Pruned`: predict, predict_proba,
        score_samples, raw.
    serialise : callable
        `serialise(model)` returns bytes that are the same as long as the model is.
    ulp : int
        By how many units in the last place, of the largest number in sight, predictions may differ: 0 means not at all.
    """

    model: Any
    X: Any
    y: Any
    X_new: Any
    sample_weight: Any = None
    ask: Callable[[Any, Any], dict[str, Any]] = by_its_methods
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
