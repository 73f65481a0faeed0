"""Abalone: 4177 shellfish, 8 measurements, rings."""

from benchmarks.load import DataSet

DATA = DataSet(name="abalone", task="regression", shared="abalone", openml=183)
