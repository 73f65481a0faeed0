"""Grow one tree of a budget forest: draw its rows, run the kernel, convert the result to a scikit-learn tree."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier
from sklearn.tree._tree import Tree

from secateur.costs.base import PriceTable
from secateur.kernels.training.budget_tree import FeaturePrices, Growth, SortedRows, drawn_in_order, grow_budget_tree
from secateur.libraries.sklearn.trees import build_tree

Floats = NDArray[np.float64]
_LEAF, _UNDEFINED = -1, -2


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """The training rows, shared by all trees.

    Attributes
    ----------
    columns : (n_features, n_rows) float32
    order : (n_features, n_rows) int32
        The rows sorted by each feature, missing values last.
    label : (n_rows,) int32
        Class codes.
    weight : (n_rows,)
    n_classes : int
    price_table : PriceTable
        The resources each feature needs, and their prices.
    """

    columns: NDArray[np.float32]
    order: NDArray[np.int32]
    label: NDArray[np.int32]
    weight: Floats
    n_classes: int
    price_table: PriceTable


def sort_rows(
    X: NDArray[np.float32], label: NDArray[Any], weight: Floats, n_classes: int, price_table: PriceTable
) -> TrainingRows:
    """Return the training rows with every column sorted, once for all trees."""
    columns = np.ascontiguousarray(X.T)
    order = np.empty(columns.shape, np.int32)
    for k, column in enumerate(columns):
        order[k] = np.argsort(column, kind="stable")
    return TrainingRows(columns, order, label.astype(np.int32), weight, n_classes, price_table)


@dataclass(frozen=True, eq=False)
class Draws:
    """Draw the rows of a tree from the rows of positive weight.

    Attributes
    ----------
    drawable : (n_drawable,)
    n_drawn : int
    replace : bool
        Whether rows are drawn with replacement.
    """

    drawable: NDArray[np.intp]
    n_drawn: int
    replace: bool

    def rows(self, seed: int) -> NDArray[np.intp]:
        """Return the rows of the tree with this seed."""
        n = len(self.drawable)
        if not self.replace and self.n_drawn == n:
            return self.drawable
        rng = np.random.RandomState(seed)
        if self.replace:
            return self.drawable[rng.randint(0, n, self.n_drawn)]
        return np.sort(self.drawable[rng.permutation(n)[: self.n_drawn]])


def grow_tree(
    template: DecisionTreeClassifier,
    rows: TrainingRows,
    drawn: NDArray[np.intp],
    *,
    alpha: float,
    reuse: float,
    n_candidates: int,
) -> DecisionTreeClassifier:
    """Return the template, an unfitted tree with its seed, fitted to the rows drawn."""
    times = np.bincount(drawn, minlength=len(rows.label))
    weight = rows.weight * times
    order, values = drawn_in_order(rows.columns, rows.order, weight)
    max_depth = np.iinfo(np.int32).max if template.max_depth is None else template.max_depth
    tree = grow_budget_tree(
        SortedRows(order, values, rows.label, weight),
        rows.n_classes,
        FeaturePrices(rows.price_table.resources, rows.price_table.prices[0], float(reuse)),
        Growth(float(alpha), max_depth, template.min_samples_leaf, n_candidates),
        template.random_state,
    )
    template.tree_ = as_sklearn_tree(len(rows.columns), *tree)
    template.n_features_in_, template.n_outputs_ = len(rows.columns), 1
    template.n_classes_, template.classes_ = rows.n_classes, np.arange(rows.n_classes, dtype=np.float64)
    template.max_features_ = n_candidates
    return template


def as_sklearn_tree(
    n_features: int,
    right: NDArray[np.int32],
    feature: NDArray[np.int32],
    threshold: Floats,
    missing_left: NDArray[np.uint8],
    n_rows: NDArray[np.int64],
    counts: Floats,
) -> Any:
    """Return a grown tree as a scikit-learn tree; its impurities are Gini's, as in any random forest."""
    empty = Tree(n_features, np.array([counts.shape[1]], dtype=np.intp), 1)
    nodes = np.zeros(len(right), empty.__getstate__()["nodes"].dtype)
    leaf, weight = right == -1, counts.sum(axis=1)
    class_fraction = counts / weight[:, None]
    nodes["left_child"] = np.where(leaf, _LEAF, np.arange(1, len(right) + 1))
    nodes["right_child"] = np.where(leaf, _LEAF, right)
    nodes["feature"] = np.where(leaf, _UNDEFINED, feature)
    nodes["threshold"] = np.where(leaf, _UNDEFINED, threshold)
    nodes["impurity"] = np.maximum(1.0 - (class_fraction**2).sum(axis=1), 0.0)
    nodes["n_node_samples"], nodes["weighted_n_node_samples"] = n_rows, weight
    nodes["missing_go_to_left"] = missing_left
    return build_tree(empty, nodes, np.ascontiguousarray(class_fraction[:, None, :]))
