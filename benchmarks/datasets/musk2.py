"""Musk, second version: 6598 shapes of molecules, 166 distances, musk or not."""

from benchmarks.load import DataSet

DATA = DataSet(name="musk2", task="classification", shared="musk2")
