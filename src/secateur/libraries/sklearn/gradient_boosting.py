"""Read and write GradientBoosting*: an initial model plus the scaled contributions of trees.

scikit-learn stores the mean residual at a split, which is not the value a leaf there would have. Splits therefore get
the cover-weighted mean of the leaves below them.
"""

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier, DummyRegressor

from secateur.forest import Forest
from secateur.forest.node_sums import cover_mean
from secateur.forest.subforest import Decision
from secateur.libraries.sklearn.base import Floats, TreesAdapter, join_trees
from secateur.libraries.sklearn.trees import one_leaf


class GradientBoostingAdapter(TreesAdapter):
    """Adapt GradientBoostingClassifier and GradientBoostingRegressor."""

    @property
    def estimators(self) -> Sequence[Any]:
        """The trees, iteration by iteration."""
        trees: Sequence[Any] = self.model.estimators_.ravel().tolist()
        return trees

    @property
    def constant_start(self) -> bool:
        """Whether the initial prediction is the same for all rows."""
        return isinstance(self.model.init_, str | DummyClassifier | DummyRegressor)

    def read(self) -> Forest:
        """Return base + learning_rate · Σ trees.

        With an initial estimator the base is 0, and `offset` returns that estimator's prediction.
        """
        trees = self.trees()
        per_iteration = self.model.estimators_.shape[1]
        base = np.zeros(per_iteration)
        if self.constant_start:
            base = self.model._raw_predict_init(np.zeros((1, self.model.n_features_in_), np.float32))[0]
        return join_trees(
            trees,
            [cover_mean(tree.right, tree.value[:, :, 0], tree.weight) for tree in trees],
            tree_weight=np.full(len(trees), float(self.model.learning_rate)),
            tree_output=np.tile(np.arange(per_iteration, dtype=np.int32), len(self.model.estimators_)),
            base=base,
            link=self.link,
            n_features=self.model.n_features_in_,
            n_classes=self.n_classes,
            input_dtype="float32",
            feature_names=self.feature_names,
        )

    @property
    def link(self) -> str:
        """The link: a single raw output for two classes, which exponential loss scales by two."""
        if not self.classes:
            return "identity"
        if len(self.classes[0]) > 2:
            return "softmax"
        return "half_logit" if self.model.loss == "exponential" else "logit_tie_up"

    @property
    def objective(self) -> str | None:
        """The training loss of a regressor; None for squared error and for classifiers.

        The threshold of the Huber loss is that of the last boosting iteration.
        """
        if self.model.loss == "quantile":
            return f"quantile:{self.model.alpha!r}"
        if self.model.loss == "huber":
            found = getattr(getattr(self.model, "_loss", None), "closs", None)
            return None if found is None else f"huber:{float(found.delta)!r}"
        return "absolute_error" if self.model.loss == "absolute_error" else None

    def offset(self, rows: NDArray[np.floating]) -> Floats | None:
        """Return the initial estimator's raw prediction, or None if it is constant."""
        if self.constant_start:
            return None
        start: Floats = self.model._raw_predict_init(rows)
        return start

    def write(self, decision: Decision) -> Any:
        """Return a deep copy with pruned trees; a collapsed split gets the mean of the leaves below it."""
        return super().write(decision if decision.value is not None else replace(decision, value=self.forest.value))

    def drop_trees(self, model: Any, tree_kept: NDArray[np.bool_]) -> None:
        """Remove iterations without a kept tree; in other iterations a dropped tree becomes a leaf with value 0."""
        grid = self.model.estimators_
        stays = np.atleast_1d(tree_kept.reshape(grid.shape).any(axis=1))
        # scikit-learn cannot predict without any tree, so one iteration always stays.
        stays[0] |= not stays.any()
        for index in np.argwhere(stays[:, None] & ~tree_kept.reshape(grid.shape)):
            model.estimators_[tuple(index)] = self._zero_copy(grid[tuple(index)])
        model.estimators_ = model.estimators_[stays]
        model.n_estimators = model.n_estimators_ = len(model.estimators_)
        for name in ("train_score_", "oob_improvement_", "oob_scores_"):
            if hasattr(model, name):
                setattr(model, name, getattr(model, name)[stays])

    @staticmethod
    def _zero_copy(estimator: Any) -> Any:
        return copy.deepcopy(estimator, {id(estimator.tree_): one_leaf(estimator.tree_)})
