"""Mammographic masses: 961 rows, 5 features with missing values, benign or malignant."""

from benchmarks.load import DataSet

DATA = DataSet(name="mammographic_masses", task="classification", shared="mammographic_masses")
