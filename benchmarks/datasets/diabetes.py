"""Diabetes progression: 442 rows, 10 measurements."""

from benchmarks.load import DataSet

DATA = DataSet(name="diabetes", task="regression", packaged=("sklearn.datasets:load_diabetes",))
