"""Pen digits: 10992 digits written on a tablet, 16 coordinates, 10 classes."""

from benchmarks.load import DataSet

DATA = DataSet(name="pendigits", task="classification", shared="pendigits", openml=32)
