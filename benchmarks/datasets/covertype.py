"""Forest cover type: 581012 rows, 54 features of a place, 7 classes."""

from benchmarks.load import DataSet

DATA = DataSet(name="covertype", task="classification", shared="covertype", openml=1596)
