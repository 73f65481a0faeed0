"""Landsat pixels: 6435 rows, 36 spectral values of a neighbourhood, 6 classes of soil."""

from benchmarks.load import DataSet

DATA = DataSet(name="satimage", task="classification", shared="satimage", openml=182)
