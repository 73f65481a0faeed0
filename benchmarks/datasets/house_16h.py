"""house_16H: 22784 regions, 16 features from the census, median price of a house."""

from benchmarks.load import DataSet

DATA = DataSet(name="house_16H", task="regression", shared="house_16H", openml=574)
