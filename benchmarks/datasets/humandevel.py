"""Human development: 130 countries, gross national product per head, the index of human development."""

from benchmarks.load import DataSet

DATA = DataSet(name="humandevel", task="regression", shared="humandevel")
