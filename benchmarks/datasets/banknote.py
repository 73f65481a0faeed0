"""Banknotes: 1372 rows, 4 statistics of an image, genuine or forged."""

from benchmarks.load import DataSet

DATA = DataSet(name="banknote", task="classification", shared="banknote", openml=1462)
