"""2dplanes: 40768 rows, 10 discrete features, a made target (Breiman et al. 1984)."""

from benchmarks.load import DataSet

DATA = DataSet(name="2dplanes", task="regression", shared="2dplanes", openml=215)
