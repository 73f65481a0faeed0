"""Boston housing: 506 rows, 13 features of a district, median price."""

from benchmarks.load import DataSet

DATA = DataSet(name="boston", task="regression", shared="boston", openml=531)
