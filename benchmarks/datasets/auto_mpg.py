"""Auto MPG: 398 cars, 7 features, miles per gallon."""

from benchmarks.load import DataSet

DATA = DataSet(name="autoMpg", task="regression", shared="autoMpg", openml=196)
