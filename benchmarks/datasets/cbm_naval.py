"""Naval propulsion plants: 11934 rows, 16 measurements, decay of the compressor; simulated, no noise."""

from benchmarks.load import DataSet

DATA = DataSet(name="cbm_naval_kMc", task="regression", shared="cbm_naval_kMc")
