"""A little signal in much noise: 60000 rows, 10 uniform features; full trees on it are as large as trees get."""

from typing import Any

import numpy as np

from benchmarks.load import DataSet


def _make() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.random((60_000, 10))
    return X, X[:, 0] + rng.standard_normal(len(X))


DATA = DataSet(name="noise", task="regression", make=_make)
