"""Friedman's first function (1991): 40768 rows, 10 features of which 5 matter, noise of variance 1."""

from typing import Any

from sklearn.datasets import make_friedman1

from benchmarks.load import DataSet


def _make() -> tuple[Any, Any]:
    return make_friedman1(n_samples=40768, n_features=10, noise=1.0, random_state=0)


DATA = DataSet(name="fried", task="regression", shared="fried", make=_make)
