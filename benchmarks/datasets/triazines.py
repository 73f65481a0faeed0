"""Triazines: 186 molecules, 60 attributes of their parts, activity."""

from benchmarks.load import DataSet

DATA = DataSet(name="triazines", task="regression", shared="triazines")
