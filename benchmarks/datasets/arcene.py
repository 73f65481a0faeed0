"""Arcene: 200 rows, 10000 mass-spectrum features of which 3000 are noise, cancer or not."""

from benchmarks.load import DataSet

DATA = DataSet(name="arcene", task="classification", shared="arcene", openml=1458)
