"""California houses: 20640 rows, 8 features of a block, median price."""

from benchmarks.load import DataSet

DATA = DataSet(name="houses", task="regression", shared="houses", openml=537)
