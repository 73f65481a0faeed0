"""Read and write AdaBoost*: classifiers take a weighted vote, regressors a weighted median."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.forest import Forest
from secateur.forest.subforest import Decision, kept_trees
from secateur.libraries.sklearn.base import Floats, TreesAdapter, join_trees


class AdaBoostAdapter(TreesAdapter):
    """Adapt AdaBoostClassifier and AdaBoostRegressor with decision trees as estimators."""

    def read(self) -> Forest:
        """Return a forest of weighted votes, or of values that are aggregated by their weighted median."""
        trees = self.trees()
        weights = self.model.estimator_weights_
        voting = bool(self.classes)
        return join_trees(
            trees,
            [self.votes(tree.value) if voting else tree.value[:, :, 0] for tree in trees],
            tree_weight=np.asarray(weights[: len(trees)], np.float64),
            base=np.zeros(self.n_classes[0] if voting else 1),
            link="vote" if voting else "identity",
            n_features=self.model.n_features_in_,
            n_classes=self.n_classes,
            aggregation="mean" if voting else "median",
            # Weights of rounds that were not run are zero, but they affect how numpy rounds the sum.
            divisor=float(weights.sum()) if voting else 1.0,
            input_dtype="float32",
            feature_names=self.feature_names,
            monotone=self.monotone,
        )

    def draws(self, n_rows: int) -> Iterable[NDArray[np.integer] | None] | None:
        """Return that a classifier draws all rows; None for a regressor, which samples rows without a record."""
        return super().draws(n_rows) if self.classes else None

    def votes(self, value: Floats) -> Floats:
        """Return 1 for the class a node predicts and -1 / (n_classes - 1) for each other one."""
        n_classes = self.n_classes[0]
        votes = np.full((len(value), n_classes), -1 / max(n_classes - 1, 1))
        votes[np.arange(len(value)), value[:, 0, :].argmax(axis=1)] = 1.0
        return votes

    def why_immutable(self, what: str) -> str | None:
        """Return a reason for the base and for the values of a classifier; tree weights can change."""
        if what == "value" and self.classes:
            return "each tree of an AdaBoostClassifier votes for one class. Use a solver that does not change values."
        return None if what == "tree_weight" else super().why_immutable(what)

    def write(self, decision: Decision) -> Any:
        """Return a deep copy with pruned trees and, if the decision has them, new tree weights."""
        model = super().write(decision)
        if decision.tree_weight is not None:
            model.estimator_weights_ = decision.tree_weight[kept_trees(self.forest, decision.keep)]
        return model

    def drop_trees(self, model: Any, tree_kept: NDArray[np.bool_]) -> None:
        """Remove the dropped trees with their weights and errors."""
        model.estimators_ = [tree for tree in model.estimators_ if tree is not None]
        model.estimator_weights_ = model.estimator_weights_[: len(tree_kept)][tree_kept]
        model.estimator_errors_ = model.estimator_errors_[: len(tree_kept)][tree_kept]
        model.n_estimators = len(model.estimators_)
