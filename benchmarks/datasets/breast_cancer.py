"""Breast cancer Wisconsin (diagnostic): 569 rows, 30 measurements of cell nuclei, 2 classes."""

from benchmarks.load import DataSet

DATA = DataSet(name="breast_cancer", task="classification", packaged=("sklearn.datasets:load_breast_cancer",))
