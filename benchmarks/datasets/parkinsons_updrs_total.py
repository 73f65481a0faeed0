"""Parkinson's telemonitoring: 5875 rows, 16 measures of a voice, total UPDRS score."""

from benchmarks.load import DataSet

DATA = DataSet(name="parkinsons_updrs_total", task="regression", shared="parkinsons_updrs_total")
