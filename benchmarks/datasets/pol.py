"""pol: 15000 rows, 48 features of a telecommunication problem."""

from benchmarks.load import DataSet

DATA = DataSet(name="pol", task="regression", shared="pol", openml=201)
