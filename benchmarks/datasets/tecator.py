"""Fat of meat: 240 rows, 124 features, an infrared spectrum with its principal components, moisture and protein."""

from benchmarks.load import DataSet

DATA = DataSet(name="tecator", task="regression", shared="tecator", openml=505)
