"""Handwritten digits: 1797 rows, 64 pixels, 10 classes."""

from benchmarks.load import DataSet

DATA = DataSet(name="digits", task="classification", packaged=("sklearn.datasets:load_digits",))
