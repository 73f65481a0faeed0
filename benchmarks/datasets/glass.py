"""Splinters of glass: 214 rows, 9 properties, six kinds."""

from benchmarks.load import DataSet

DATA = DataSet(name="glass", task="classification", shared="glass", openml=41)
