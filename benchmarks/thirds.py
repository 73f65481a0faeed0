"""Split a data set into thirds for training, pruning and testing a tree: Nie et al. 2017, section 5.1."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.impute import SimpleImputer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from benchmarks.load import Data
from secateur.losses import Loss, RankingError, SquaredError


@dataclass(frozen=True, eq=False)
class Thirds:
    """A tree, its training rows, pruning rows and test rows.

    Missing values are the means of the columns, and targets that are numbers are centred and divided by their largest
    absolute value; both are taken from the training rows.
    """

    tree: Any
    train: Data
    prune: Data
    test: Data

    @property
    def loss(self) -> Loss:
        """The loss that selects a point of a path: 1 − AUC, or the squared error."""
        return RankingError() if self.test.task == "classification" else SquaredError()

    def score(self, pruned: Any) -> float:
        """Return the AUC or the root mean squared error of a pruning or a model on the test rows."""
        if self.test.task == "classification":
            return float(roc_auc_score(self.test.y, pruned.predict_proba(self.test.X)[:, 1]))
        return float(np.sqrt(np.mean((pruned.predict(self.test.X).ravel() - self.test.y) ** 2)))


def split(data: Data, seed: int) -> Thirds:
    """Return a random stratified split with a fully grown tree, or one of depth 15 for regression."""
    classes = data.task == "classification"
    folds = (StratifiedKFold if classes else KFold)(3, shuffle=True, random_state=seed)
    parts = [rows for _, rows in folds.split(data.X, data.y)]
    X = SimpleImputer(keep_empty_features=True).fit(data.X[parts[0]]).transform(data.X)
    y = data.y if classes else _scaled(data.y, parts[0])
    train, prune, test = (replace(data, X=X[rows], y=y[rows]) for rows in parts)
    tree: Any = DecisionTreeRegressor(max_depth=15, random_state=seed)
    if classes:
        tree = DecisionTreeClassifier(random_state=seed)
    return Thirds(tree.fit(train.X, train.y), train, prune, test)


def _scaled(y: NDArray[Any], rows: NDArray[np.intp]) -> NDArray[Any]:
    """Return y with mean 0 and largest absolute value 1 on some rows."""
    centred = y - y[rows].mean()
    return centred / np.abs(centred[rows]).max()
