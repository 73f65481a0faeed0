"""Wind: 6574 days, date and wind speeds at 11 stations in Ireland, speed at a twelfth."""

from benchmarks.load import DataSet

DATA = DataSet(name="wind", task="regression", shared="wind", openml=503)
