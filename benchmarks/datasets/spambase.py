"""Spam mails: 4601 rows, 57 frequencies of words and signs, 2 classes."""

from benchmarks.load import DataSet

DATA = DataSet(name="spambase", task="classification", shared="spambase", openml=44)
