"""Madelon: 2600 rows, 500 features of which 20 matter, made so that no feature tells by itself, 2 classes."""

from benchmarks.load import DataSet

DATA = DataSet(name="madelon", task="classification", shared="madelon", openml=1485)
