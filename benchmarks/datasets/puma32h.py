"""puma32H: 8192 rows, 32 features of a simulated robot arm, acceleration of a joint."""

from benchmarks.load import DataSet

DATA = DataSet(name="puma32H", task="regression", shared="puma32H", openml=308)
