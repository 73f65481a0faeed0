"""Incomes of the 1994 census: 48842 rows, 14 features, 8 of them text, above 50000 dollars or not."""

from benchmarks.load import DataSet

DATA = DataSet(name="adult", task="classification", shared="adult", openml=1590)
