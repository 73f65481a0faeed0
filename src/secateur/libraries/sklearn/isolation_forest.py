"""Read and write IsolationForest: a node's value is its expected path length.

References
----------
F. T. Liu, K. M. Ting and Z.-H. Zhou (2008). Isolation forest. ICDM.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.errors import InvalidInputError
from secateur.forest import Forest
from secateur.forest.subforest import Decision, raises
from secateur.kernels import tree_depth, tree_parent
from secateur.libraries.sklearn.base import Floats, TreesAdapter, join_trees
from secateur.libraries.sklearn.trees import TreeArrays


class IsolationForestAdapter(TreesAdapter):
    """Adapt IsolationForest.

    It predicts by the mean path length, in units of that of an unsuccessful search among `max_samples` rows.
    """

    supervised = False
    objective = "rank_correlation"

    def read(self) -> Forest:
        """Return a forest of path lengths; that of a collapsed split follows from its depth and its number of rows."""
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
        """Return None: the stored impurities belong to a random target."""
        return None

    def why_immutable(self, what: str) -> str | None:
        """Return a reason for values as well: they follow from the tree's shape."""
        if what == "value":
            return "the values of an IsolationForest are path lengths. Use a solver that does not change leaf values."
        return super().why_immutable(what)

    def check_decision(self, decision: Decision) -> None:
        """Raise InvalidInputError for raised nodes as well: path lengths follow from the tree's shape."""
        if raises(self.forest, decision.keep):
            raise InvalidInputError(
                "The pruning raises children into the position of their parents, which changes the path lengths from "
                "which an IsolationForest predicts. Use a solver that only cuts subtrees."
            )
        super().check_decision(decision)

    def write(self, decision: Decision) -> Any:
        """Return a deep copy with pruned trees and updated path lengths, which the model caches."""
        model = super().write(decision)
        trees = [estimator.tree_ for estimator in model.estimators_]
        model._decision_path_lengths = tuple(tree.compute_node_depths() for tree in trees)
        model._average_path_length_per_tree = tuple(average_path_length(t.n_node_samples) for t in trees)
        return model

    def drop_trees(self, model: Any, tree_kept: NDArray[np.bool_]) -> None:
        """Remove the dropped trees with their columns and seeds."""
        kept = np.flatnonzero(tree_kept)
        model.estimators_ = [tree for tree in model.estimators_ if tree is not None]
        model.estimators_features_ = [model.estimators_features_[i] for i in kept]
        model._seeds = np.asarray(model._seeds)[kept]
        model.n_estimators = len(kept)


def path_lengths(tree: TreeArrays) -> Floats:
    """Return the path length of each node, (n_nodes, 1): its depth plus c(n) for the n training rows it holds."""
    depth = tree_depth(tree_parent(tree.right))
    # scikit-learn adds (depth + 1) + c(n) - 1 in this order; the same order gives the same rounding.
    return ((depth + 1.0) + average_path_length(tree.n_samples) - 1.0)[:, None]


def average_path_length(n_rows: NDArray[Any]) -> Floats:
    """Return c(n), the mean path length of an unsuccessful search (Liu, Ting, Zhou 2008, eq. 1)."""
    n = np.asarray(n_rows, np.float64)
    many = np.maximum(n, 3.0)
    harmonic = 2.0 * (np.log(many - 1.0) + np.euler_gamma) - 2.0 * (many - 1.0) / many
    return np.where(n <= 1, 0.0, np.where(n == 2, 1.0, harmonic))
