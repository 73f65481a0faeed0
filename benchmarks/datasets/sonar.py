"""Sonar echoes: 208 rows, 60 frequency bands, rock or metal."""

from benchmarks.load import DataSet

DATA = DataSet(name="sonar", task="classification", shared="sonar", openml=40)
