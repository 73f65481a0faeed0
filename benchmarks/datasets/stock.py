"""Stock: 950 days, prices of 9 aerospace companies, price of a tenth."""

from benchmarks.load import DataSet

DATA = DataSet(name="stock", task="regression", shared="stock", openml=223)
