"""Fisher's irises: 150 flowers, 4 lengths, 3 species."""

from benchmarks.load import DataSet

DATA = DataSet(name="iris", task="classification", packaged=("sklearn.datasets:load_iris",))
