"""Letter recognition: 20000 rows, 16 image statistics, 26 classes."""

from benchmarks.load import DataSet

DATA = DataSet(name="letter", task="classification", shared="letter", openml=6)
