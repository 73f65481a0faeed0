"""bank32nh: 8192 rows, 32 features of a simulated bank, share of customers who leave."""

from benchmarks.load import DataSet

DATA = DataSet(name="bank32nh", task="regression", shared="bank32nh", openml=558)
