"""Statlog heart disease: 270 patients, 13 findings, disease present or absent; `costs/heart_costs.csv` has prices."""

from benchmarks.load import DataSet

DATA = DataSet(name="heart", task="classification", shared="heart_statlog", openml=53)
