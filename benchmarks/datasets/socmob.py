"""Social mobility: 1156 pairs of occupations, father's and son's, 5 features, number of sons."""

from benchmarks.load import DataSet

DATA = DataSet(name="socmob", task="regression", shared="socmob", openml=541)
