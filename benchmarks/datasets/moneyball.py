"""Moneyball: 1232 seasons of baseball teams, 14 features, runs scored."""

from benchmarks.load import DataSet

DATA = DataSet(name="Moneyball", task="regression", shared="Moneyball", openml=41021)
