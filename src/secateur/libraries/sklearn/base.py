"""Share code among scikit-learn adapters: labels, columns, and a deep copy in which only the trees are replaced."""

import copy
from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.utils import get_tags

from secateur.forest import Forest, check_forest
from secateur.forest.promises import monotone_signs
from secateur.forest.subforest import Decision, kept_trees
from secateur.libraries.adapter import Adapter, as_matrix
from secateur.libraries.sklearn.trees import TreeArrays, ids_in_preorder, read_tree, samples_in_preorder, write_tree

Floats = NDArray[np.float64]
_OUT_OF_BAG = {"oob_score_", "oob_decision_function_", "oob_prediction_"}
"""Attributes that hold what the unpruned trees predicted for the training rows."""


class SklearnAdapter(Adapter):
    """Encode rows and targets, which works alike for every scikit-learn estimator."""

    library = "sklearn"
    package = "scikit-learn"
    generates_names = False
    can_refit = True

    @cached_property
    def routes_missing(self) -> bool:
        """Whether the estimator's tags allow NaN."""
        return bool(get_tags(self.model).input_tags.allow_nan)

    def rows(self, X: Any) -> NDArray[np.floating]:
        """Return X as a checked matrix."""
        return as_matrix(X, self.forest)

    @abstractmethod
    def samples_per_node(self) -> NDArray[np.int64]:
        """Return the number of distinct training rows at each node of the forest, (n_nodes,)."""

    def refit(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """Return a clone fitted on other rows."""
        return clone(self.model).fit(X, y, **({} if sample_weight is None else {"sample_weight": sample_weight}))

    @property
    def classes(self) -> list[NDArray[Any]]:
        """The labels of each target; empty unless the model is a classifier."""
        if not is_classifier(self.model):
            return []
        classes = self.model.classes_
        return list(classes) if isinstance(classes, list) else [classes]

    @property
    def n_classes(self) -> tuple[int, ...]:
        """The number of classes of each target."""
        return tuple(len(classes) for classes in self.classes)

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """The column names of the training data, or None if it had none."""
        names = getattr(self.model, "feature_names_in_", None)
        return None if names is None else tuple(str(name) for name in names)

    @property
    def monotone(self) -> NDArray[np.int8] | None:
        """The sign of each monotonic constraint, or None if there are none."""
        constraints = getattr(self.model, "monotonic_cst", None)
        return monotone_signs(constraints, self.model.n_features_in_, self.feature_names)


class TreesAdapter(SklearnAdapter):
    """Adapt a model whose estimators have a `tree_`; subclasses define where they are and how they are aggregated."""

    @property
    def estimators(self) -> Sequence[Any]:
        """The tree estimators, in the order in which the model sums them."""
        trees: Sequence[Any] = self.model.estimators_
        return trees

    @property
    def monotone(self) -> NDArray[np.int8] | None:
        """The sign of each monotonic constraint of the trees, which all have the same, or None if there are none."""
        return monotone_signs(getattr(self.estimators[0], "monotonic_cst", None), self.model.n_features_in_)

    @abstractmethod
    def read(self) -> Forest:
        """Return the model as a Forest."""

    @abstractmethod
    def drop_trees(self, model: Any, tree_kept: NDArray[np.bool_]) -> None:
        """Remove the dropped trees from `model`, a copy in which they are None."""

    def native_value(self, value: Floats) -> Floats:
        """Return forest values (n, width) as tree values (n, n_outputs, n_classes)."""
        return value[:, :, None]

    def write(self, decision: Decision) -> Any:
        """Return a deep copy of the model with pruned trees, without the out-of-bag results of the unpruned ones.

        The memo of `copy.deepcopy` already maps each original tree to its pruned copy. So everything else is copied
        exactly once, and no unpruned tree is copied.
        """
        forest = self.forest
        self.check_decision(decision)
        tree_kept = kept_trees(forest, decision.keep)
        memo: dict[int, Any] = {}
        for tree, estimator in enumerate(self.estimators):
            nodes = slice(forest.tree_start[tree], forest.tree_start[tree + 1])
            if tree_kept[tree]:
                value = None if decision.value is None else self.native_value(decision.value[nodes])
                memo[id(estimator.tree_)] = write_tree(estimator.tree_, decision.keep[nodes], value)
            else:
                memo[id(estimator)] = None
        model = copy.deepcopy(self.model, memo)
        if not tree_kept.all():
            self.drop_trees(model, tree_kept)
        if not decision.keep.all() or decision.value is not None or decision.tree_weight is not None:
            for name in _OUT_OF_BAG & vars(model).keys():
                delattr(model, name)
        return model

    def why_immutable(self, what: str) -> str | None:
        """Return a reason for tree weights and the base; values can change."""
        if what == "value":
            return None
        return (
            f"a {type(self.model).__name__} cannot store a {what.replace('_', ' ')}. Include it in the leaf values, "
            "or prune sc.as_forest(model) instead."
        )

    def trees(self) -> list[TreeArrays]:
        """Return the arrays of every tree, in preorder."""
        return [read_tree(estimator.tree_) for estimator in self.estimators]

    def samples_per_node(self) -> NDArray[np.int64]:
        """Return the number of distinct training rows at each node, (n_nodes,)."""
        return np.concatenate([samples_in_preorder(estimator.tree_) for estimator in self.estimators])

    def native_ids(self) -> NDArray[np.int64]:
        """Return the node ids of `tree_`, `apply` and `decision_path`."""
        trees = [estimator.tree_ for estimator in self.estimators]
        return np.concatenate([ids_in_preorder(tree.children_left, tree.children_right) for tree in trees])

    def impurity_per_node(self) -> Floats | None:
        """Return the node impurities that scikit-learn stores."""
        trees = [estimator.tree_ for estimator in self.estimators]
        return np.concatenate(
            [tree.impurity[ids_in_preorder(tree.children_left, tree.children_right)] for tree in trees]
        )


def join_trees(
    trees: Sequence[TreeArrays],
    values: Sequence[Floats],
    features: Sequence[NDArray[Any]] | None = None,
    **fields: Any,
) -> Forest:
    """Return a checked Forest that joins single trees.

    Parameters
    ----------
    trees : sequence of TreeArrays
    values : sequence of (n_nodes, width) arrays
        Node values of each tree, used in place of `TreeArrays.value`.
    features : sequence of arrays, optional
        The columns each tree was trained on, if not all.
    **fields
        The remaining fields of Forest.
    """
    start = np.concatenate([[0], np.cumsum([len(tree.right) for tree in trees])]).astype(np.int64)
    feature = [tree.feature for tree in trees]
    if features is not None:
        feature = [
            np.where(f == -1, -1, np.asarray(columns)[f]).astype(np.int32)
            for f, columns in zip(feature, features, strict=True)
        ]
    fields.setdefault("tree_weight", np.ones(len(trees)))
    fields.setdefault("tree_output", np.full(len(trees), -1, np.int32))
    forest = Forest(
        tree_start=start,
        right=np.concatenate(
            [np.where(t.right == -1, -1, t.right + s) for t, s in zip(trees, start[:-1], strict=True)]
        ).astype(np.int32),
        feature=np.concatenate(feature),
        threshold=np.concatenate([tree.threshold for tree in trees]),
        default_left=np.concatenate([tree.default_left for tree in trees]),
        value=np.ascontiguousarray(np.concatenate(values), dtype=np.float64),
        weight=np.concatenate([tree.weight for tree in trees]),
        **fields,
    )
    check_forest(forest)
    return forest
