"""LSVT voice rehabilitation: 126 rows, 310 measures of a voice, acceptable or not."""

from benchmarks.load import DataSet

DATA = DataSet(name="lsvt_voice", task="classification", shared="lsvt_voice", openml=1484)
