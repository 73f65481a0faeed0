"""Musk, first version: 476 shapes of molecules, 166 distances, musk or not."""

from benchmarks.load import DataSet

DATA = DataSet(name="musk1", task="classification", shared="musk1")
