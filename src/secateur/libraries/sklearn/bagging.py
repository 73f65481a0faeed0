"""Read and write models that average their trees: single trees, random forests, extra-trees and bagging."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import BaseDecisionTree

from secateur.errors import UnsupportedModelError
from secateur.forest import Forest
from secateur.libraries.sklearn.base import Floats, TreesAdapter, join_trees


class ForestEnsembleAdapter(TreesAdapter):
    """Adapt RandomForest* and ExtraTrees*: the mean of all trees, each trained on all columns."""

    @property
    def features(self) -> Sequence[NDArray[Any]] | None:
        """The columns of each tree; None if every tree uses all columns."""
        return None

    def tree_value(self, estimator: Any, value: Floats) -> Floats:
        """Return native values (n, n_outputs, n_classes) as forest values (n, width)."""
        if not self.classes:
            return value[:, :, 0]
        return np.hstack([value[:, k, :count] for k, count in enumerate(self.n_classes)])

    def native_value(self, value: Floats) -> Floats:
        """Return forest values in scikit-learn's layout; targets with fewer classes are padded with zeros."""
        if not self.classes:
            return value[:, :, None]
        native = np.zeros((len(value), len(self.n_classes), max(self.n_classes)))
        for k, block in enumerate(np.split(value, np.cumsum(self.n_classes)[:-1], axis=1)):
            native[:, k, : self.n_classes[k]] = block
        return native

    def draws(self, n_rows: int) -> Iterable[NDArray[np.integer] | None] | None:
        """Return the rows drawn for each tree; scikit-learn repeats the draws from the trees' seeds."""
        return draws_of(self.model) if self.model._n_samples == n_rows else None

    def read(self) -> Forest:
        """Return the mean over trees of class fractions or values."""
        trees = self.trees()
        values = [self.tree_value(e, t.value) for e, t in zip(self.estimators, trees, strict=True)]
        return join_trees(
            trees,
            values,
            self.features,
            base=np.zeros(values[0].shape[1]),
            link="probability" if self.classes else "identity",
            n_features=self.model.n_features_in_,
            n_classes=self.n_classes,
            aggregation="mean",
            divisor=float(len(trees)),
            input_dtype="float32",
            feature_names=self.feature_names,
            monotone=self.monotone,
        )

    def drop_trees(self, model: Any, tree_kept: NDArray[np.bool_]) -> None:
        """Remove the dropped trees from the list of estimators."""
        model.estimators_ = [tree for tree in model.estimators_ if tree is not None]
        model.n_estimators = len(model.estimators_)


class SingleTreeAdapter(ForestEnsembleAdapter):
    """Adapt DecisionTree* and ExtraTree* as a forest of one tree."""

    @property
    def estimators(self) -> Sequence[Any]:
        """The model itself, as a list of one tree."""
        return [self.model]

    def draws(self, n_rows: int) -> Iterable[NDArray[np.integer] | None] | None:
        """Return None for the tree: it was trained on all rows."""
        return TreesAdapter.draws(self, n_rows)

    def drop_trees(self, model: Any, tree_kept: NDArray[np.bool_]) -> None:
        """Do nothing: the last tree of a mean cannot be dropped, so this is never called."""


class BaggingAdapter(ForestEnsembleAdapter):
    """Adapt Bagging* of trees: each tree has a subset of the columns, and possibly of the classes."""

    @property
    def features(self) -> Sequence[NDArray[Any]] | None:
        """The columns each tree was trained on."""
        columns: Sequence[NDArray[Any]] = self.model.estimators_features_
        return columns

    @property
    def monotone(self) -> NDArray[np.int8] | None:
        """The sign of each monotonic constraint; None if trees have subsets of the columns, to which theirs refer."""
        every = np.arange(self.model.n_features_in_)
        same = all(np.array_equal(columns, every) for columns in self.model.estimators_features_)
        return super().monotone if same else None

    def tree_value(self, estimator: Any, value: Floats) -> Floats:
        """Return class fractions (n, n_classes); a class the tree was not trained on has fraction 0."""
        if not self.classes:
            return value[:, :, 0]
        fractions = np.zeros((len(value), self.n_classes[0]))
        fractions[:, estimator.classes_] = value[:, 0, : len(estimator.classes_)]
        return fractions

    def why_immutable(self, what: str) -> str | None:
        """Return a reason for values as well, if some tree was not trained on all classes."""
        n_trained = [len(e.classes_) for e in self.estimators] if self.classes else []
        if what == "value" and any(count != self.n_classes[0] for count in n_trained):
            return (
                "some trees of this BaggingClassifier were not trained on all classes, and their leaves cannot store "
                "values for the others. Use a solver that does not change leaf values."
            )
        return super().why_immutable(what)

    def drop_trees(self, model: Any, tree_kept: NDArray[np.bool_]) -> None:
        """Remove the dropped trees with their columns and seeds."""
        super().drop_trees(model, tree_kept)
        kept = np.flatnonzero(tree_kept)
        model.estimators_features_ = [model.estimators_features_[i] for i in kept]
        model._seeds = np.asarray(model._seeds)[kept]


def draws_of(model: Any) -> Iterator[NDArray[np.integer]]:
    """Yield the items of `estimators_samples_`, one at a time if the property is scikit-learn's own."""
    if not type(model).estimators_samples_.fget.__module__.startswith("sklearn."):
        yield from model.estimators_samples_
        return
    for drawn in model._get_estimators_indices():
        # Bagging draws columns as well.
        yield drawn[1] if isinstance(drawn, tuple) else drawn


def check_base_trees(model: Any) -> None:
    """Raise UnsupportedModelError unless every member of the ensemble is a single tree."""
    for estimator in model.estimators_:
        if not isinstance(estimator, BaseDecisionTree):
            raise UnsupportedModelError(
                f"This {type(model).__name__} is made of {type(estimator).__name__}, but secateur needs one made of "
                "decision trees. Train it with estimator=DecisionTreeClassifier() or DecisionTreeRegressor()."
            )
