"""IsolationForest: a node's value is the path length it stands for."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.forest import Forest
from secateur.forest.subforest import Decision, raises
from secateur.kernels import tree_depth, tree_parent
from secateur.libraries.sklearn.base import Floats, TreesAdapter, join_trees
from secateur.libraries.sklearn.trees import TreeArrays


class IsolationForestAdapter(TreesAdapter):
    """The mean path length, in units of the path length of an unsuccessful search among `max_samples` rows."""

    supervised = False

    def read(self) -> Forest:
        """Return path lengths as values; a collapsed split stands for its depth and the rows it holds."""
        trees = self.trees()
        unit = float(average_path_length(np.array([self.model._max_samples]))[0])
        return join_trees(
            trees,
            [path_lengths(tree) for tree in trees],
            self.model.estimators_features_,
            base=np.zeros(1),
            link="anomaly",
            n_features=self.model.n_features_in_,
            aggregation="mean",
            unit=unit,
            divisor=len(trees) * unit,
            input_dtype="float32",
            feature_names=self.feature_names,
        )

    def decode(self, label: NDArray[Any]) -> NDArray[np.generic]:
        """Return -1 for outliers and 1 for inliers."""
        return np.where(label[:, 0] - self.model.offset_ < 0, -1, 1)

    def impurity_per_node(self) -> Floats | None:
        """Return None: the impurities stored are those of a random target."""
        return None

    def why_immutable(self, what: str) -> str | None:
        """Return a reason also for values: they follow from the shape."""
        if what == "value":
            return "the values of an IsolationForest are path lengths. Use a solver that keeps values."
        return super().why_immutable(what)

    def check_decision(self, decision: Decision) -> None:
        """Raise ValueError also for raised nodes, as path lengths follow from the shape."""
        if raises(self.forest, decision.keep):
            raise ValueError(
                "The pruning puts nodes in their parents' place, which changes the path lengths an IsolationForest "
                "predicts by. Use a solver that only cuts."
            )
        super().check_decision(decision)

    def write(self, decision: Decision) -> Any:
        """Return a deep copy with pruned trees and their path lengths, which the model caches."""
        model = super().write(decision)
        trees = [estimator.tree_ for estimator in model.estimators_]
        model._decision_path_lengths = tuple(tree.compute_node_depths() for tree in trees)
        model._average_path_length_per_tree = tuple(average_path_length(t.n_node_samples) for t in trees)
        return model

    def drop_trees(self, model: Any, standing: NDArray[np.bool_]) -> None:
        """Shorten the lists of trees, of their columns and of their seeds."""
        kept = np.flatnonzero(standing)
        model.estimators_ = [tree for tree in model.estimators_ if tree is not None]
        model.estimators_features_ = [model.estimators_features_[i] for i in kept]
        model._seeds = np.asarray(model._seeds)[kept]
        model.n_estimators = len(kept)


def path_lengths(tree: TreeArrays) -> Floats:
    """Return nodes on the way down plus the expected rest of the way, less one, (n_nodes, 1)."""
    depth = tree_depth(tree_parent(np.array([0, len(tree.right)]), tree.right))
    return ((depth + 1.0) + average_path_length(tree.n_samples) - 1.0)[:, None]


def average_path_length(n_rows: NDArray[Any]) -> Floats:
    """Return c(n), the mean path length of an unsuccessful search (Liu, Ting, Zhou 2008, eq. 1)."""
    n = np.asarray(n_rows, np.float64)
    many = np.maximum(n, 3.0)
    harmonic = 2.0 * (np.log(many - 1.0) + np.euler_gamma) - 2.0 * (many - 1.0) / many
    return np.where(n <= 1, 0.0, np.where(n == 2, 1.0, harmonic))
