"""NO2: 500 hours at a road in Oslo, 7 features of traffic and weather, logarithm of the NO2 concentration."""

from benchmarks.load import DataSet

DATA = DataSet(name="no2", task="regression", shared="no2", openml=547)
