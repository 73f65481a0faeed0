"""Seconds a Mercedes spends on the test bench: 4209 rows, 376 features of its equipment, nearly all yes or no."""

from benchmarks.load import DataSet

DATA = DataSet(name="mercedes", task="regression", shared="Mercedes_Benz_Greener_Manufacturing", openml=42570)
