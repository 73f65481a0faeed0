"""Split a data set into folds with training, validation and test rows: Liu and Mazumder 2023, section 4.1."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from sklearn.impute import SimpleImputer
from sklearn.model_selection import KFold, train_test_split

from benchmarks.load import Data

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Fold:
    """Three parts of a data set; regression targets have mean 0 and variance 1 on the training rows.

    Missing values are the means of the training rows.
    """

    train: Data
    validation: Data
    test: Data

    def error(self, prediction: Floats) -> float:
        """Return the mean squared error on the test rows, in units of the variance of the training targets."""
        return float(np.mean((prediction - self.test.y) ** 2))


def make_fold(data: Data, fold: int, n_folds: int = 5, seed: int = 0) -> Fold:
    """Return fold number `fold`: one part tests, a quarter of the others validates, the rest trains."""
    train, test = list(KFold(n_folds, shuffle=True, random_state=seed).split(data.X))[fold]
    train, validation = train_test_split(train, test_size=0.25, random_state=seed)
    X = SimpleImputer(keep_empty_features=True).fit(data.X[train]).transform(data.X)
    y = (data.y - data.y[train].mean()) / data.y[train].std()
    parts = [replace(data, X=X[rows], y=y[rows]) for rows in (train, validation, test)]
    return Fold(*parts)
