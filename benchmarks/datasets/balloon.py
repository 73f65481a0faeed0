"""Balloon: 2001 readings of a balloon's radiation, what is left of a reading after smoothing."""

from benchmarks.load import DataSet

DATA = DataSet(name="balloon", task="regression", shared="balloon")
