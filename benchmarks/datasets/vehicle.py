"""Outlines of four kinds of vehicle: 846 rows, 18 measures of shape."""

from benchmarks.load import DataSet

DATA = DataSet(name="vehicle", task="classification", shared="vehicle", openml=54)
