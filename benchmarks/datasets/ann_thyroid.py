"""Thyroid disease: 7200 patients, 21 findings, 3 classes; `costs/ann_thyroid_costs.csv` has prices of all but one."""

from benchmarks.load import DataSet

DATA = DataSet(name="ann_thyroid", task="classification", shared="ann_thyroid")
