"""cpu_small: 8192 rows, 12 measures of a computer's activity, time spent in user mode."""

from benchmarks.load import DataSet

DATA = DataSet(name="cpu_small", task="regression", shared="cpu_small", openml=562)
