"""Read and write HistGradientBoosting*: float64 thresholds, categorical bitsets, leaves scaled by the learning rate.

If there are categorical columns, the model moves them to the front and encodes them. `rows` restores the user's
column order, so that feature indices of the Forest are the user's columns.
"""

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.forest import Categories, Forest
from secateur.forest.node_sums import cover_mean
from secateur.forest.subforest import Decision, kept_trees
from secateur.libraries.adapter import as_matrix, check_feature_names
from secateur.libraries.sklearn.base import Floats, SklearnAdapter, join_trees
from secateur.libraries.sklearn.trees import TreeArrays, from_preorder, ids_in_preorder, native_order, pruned_shape


class HistGradientBoostingAdapter(SklearnAdapter):
    """Adapt HistGradientBoostingClassifier and HistGradientBoostingRegressor."""

    @property
    def predictors(self) -> list[Any]:
        """The trees, iteration by iteration."""
        return [predictor for iteration in self.model._predictors for predictor in iteration]

    @property
    def column_of(self) -> NDArray[np.intp]:
        """The user's column of each column of the trees."""
        categorical = self.model.is_categorical_
        if categorical is None:
            return np.arange(self.model.n_features_in_)
        return np.concatenate([np.flatnonzero(categorical), np.flatnonzero(~categorical)])

    def read(self) -> Forest:
        """Return baseline + Σ trees."""
        trees = [_read_predictor(predictor) for predictor in self.predictors]
        per_iteration = self.model.n_trees_per_iteration_
        return join_trees(
            trees,
            [cover_mean(tree.right, tree.value, tree.weight) for tree in trees],
            [self.column_of] * len(trees),
            tree_output=np.tile(np.arange(per_iteration, dtype=np.int32), len(self.model._predictors)),
            base=np.asarray(self.model._baseline_prediction, np.float64).ravel(),
            link=self.link,
            n_features=self.model.n_features_in_,
            n_classes=self.n_classes,
            feature_names=self.feature_names,
            monotone=self.monotone,
            categories=self.categories(trees),
        )

    @property
    def link(self) -> str:
        """The link: logit or softmax for classes, the logarithm for Poisson and gamma loss, else the identity."""
        if self.classes:
            return "logit" if self.model.n_trees_per_iteration_ == 1 else "softmax"
        return "log" if self.model.loss in ("poisson", "gamma") else "identity"

    @property
    def objective(self) -> str | None:
        """The training loss of a regressor; None for squared error and for classifiers."""
        loss = self.model.loss
        if loss == "quantile":
            return f"quantile:{float(self.model.quantile)!r}"
        return loss if loss in ("absolute_error", "poisson", "gamma") else None

    def categories(self, trees: list[TreeArrays]) -> Categories:
        """Return all known categories of every categorical split; those in its bitset are routed left."""
        if self.model.is_categorical_ is None:
            return Categories()
        known = self.model._bin_mapper.bin_thresholds_
        row, code, left = [], [], []
        start: list[int] = [0]
        other: list[bool] = []
        for predictor, tree in zip(self.predictors, trees, strict=True):
            nodes = predictor.nodes
            order = native_order(*_children(nodes))
            nodes = nodes if order is None else nodes[order]
            rows = np.full(len(nodes), -1, np.int32)
            for v in np.flatnonzero(nodes["is_categorical"].astype(bool) & (tree.right != -1)):
                rows[v] = len(other)
                codes = np.asarray(known[nodes["feature_idx"][v]], np.int32)
                bitset = predictor.raw_left_cat_bitsets[nodes["bitset_idx"][v]]
                code.append(codes)
                left.append((bitset[codes // 32] >> (codes % 32).astype(np.uint32)) & 1 == 1)
                start.append(start[-1] + len(codes))
                # An unknown category is routed like a missing value.
                other.append(tree.default_left[v])
            row.append(rows)
        if not other:
            return Categories()
        return Categories(
            np.concatenate(row), np.array(start), np.concatenate(code), np.concatenate(left), np.array(other)
        )

    def samples_per_node(self) -> NDArray[np.int64]:
        """Return the number of training rows at each node, (n_nodes,)."""
        return np.concatenate([_read_predictor(predictor).n_samples for predictor in self.predictors])

    def native_ids(self) -> NDArray[np.int64]:
        """Return the position of each node in its predictor's array."""
        return np.concatenate([ids_in_preorder(*_children(predictor.nodes)) for predictor in self.predictors])

    @property
    def accepts_text(self) -> bool:
        """Whether the model has categorical columns, whose categories may be text."""
        return self.model.is_categorical_ is not None

    def rows(self, X: Any) -> NDArray[np.floating]:
        """Return X with categories as codes and columns in the user's order."""
        if self.model.is_categorical_ is None:
            return as_matrix(X, self.forest)
        check_feature_names(X, self.feature_names)
        shape = np.shape(X)
        if len(shape) != 2 or shape[1] != self.forest.n_features or not shape[0]:
            # Raises InvalidInputError with the shapes found and needed.
            return as_matrix(np.zeros(shape), self.forest)
        encoded = self.model._preprocess_X(X, reset=False)
        matrix = np.empty_like(encoded, order="C")
        matrix[:, self.column_of] = encoded
        return as_matrix(matrix, self.forest)

    def why_immutable(self, what: str) -> str | None:
        """Return a reason for tree weights; values and the base can change."""
        if what != "tree_weight":
            return None
        return "HistGradientBoosting cannot store tree weights. Include them in the leaf values."

    def write(self, decision: Decision) -> Any:
        """Return a deep copy with pruned predictors."""
        forest = self.forest
        self.check_decision(decision)
        value = forest.value if decision.value is None else decision.value
        tree_kept = kept_trees(forest, decision.keep)
        memo: dict[int, Any] = {}
        for tree, predictor in enumerate(self.predictors):
            nodes = slice(forest.tree_start[tree], forest.tree_start[tree + 1])
            if tree_kept[tree]:
                pruned = _write_predictor(predictor, decision.keep[nodes], value[nodes, 0])
            else:
                pruned = _write_predictor(predictor, _root_only(predictor), np.zeros(len(predictor.nodes)))
            memo[id(predictor)] = pruned
        model = copy.deepcopy(self.model, memo)
        self._drop_iterations(model, tree_kept)
        if decision.base is not None:
            model._baseline_prediction = decision.base.reshape(self.model._baseline_prediction.shape)
        return model

    def _drop_iterations(self, model: Any, tree_kept: NDArray[np.bool_]) -> None:
        """Remove iterations without a kept tree; in other iterations a dropped tree has become a leaf with value 0."""
        stays = np.atleast_1d(tree_kept.reshape(len(model._predictors), -1).any(axis=1))
        # scikit-learn treats a model without predictors as not fitted, so one iteration always stays.
        stays[0] |= not stays.any()
        model._predictors = [trees for trees, stay in zip(model._predictors, stays, strict=True) if stay]


def _children(nodes: NDArray[np.void]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    leaf = nodes["is_leaf"].astype(bool)
    return (
        np.where(leaf, -1, nodes["left"].astype(np.int64)),
        np.where(leaf, -1, nodes["right"].astype(np.int64)),
    )


def _root_only(predictor: Any) -> NDArray[np.bool_]:
    keep = np.zeros(len(predictor.nodes), bool)
    keep[0] = True
    return keep


def _read_predictor(predictor: Any) -> TreeArrays:
    """Return the arrays of a predictor, nodes in preorder."""
    nodes = predictor.nodes
    left, right = _children(nodes)
    order = native_order(left, right)
    if order is not None:
        position = from_preorder(np.arange(len(order)), order)
        right = np.where(right == -1, -1, position[right])[order]
        nodes = nodes[order]
    leaf = right == -1
    return TreeArrays(
        right=right.astype(np.int32),
        feature=np.where(leaf, -1, nodes["feature_idx"]).astype(np.int32),
        threshold=nodes["num_threshold"].copy(),
        default_left=(nodes["missing_go_to_left"] != 0) & ~leaf,
        value=nodes["value"][:, None].copy(),
        weight=nodes["count"].astype(np.float64),
        n_samples=nodes["count"].astype(np.int64),
    )


def _write_predictor(predictor: Any, keep: NDArray[np.bool_], value: Floats) -> Any:
    """Return a new TreePredictor with the kept nodes, in their native order, and only the bitsets still used."""
    shape = pruned_shape(*_children(predictor.nodes), keep)
    pruned, leaf = predictor.nodes[shape.keep], shape.left == -1
    pruned["is_leaf"] = leaf
    pruned["left"], pruned["right"] = np.where(leaf, 0, [shape.left, shape.right])
    pruned["value"] = np.where(leaf, from_preorder(value, shape.order)[shape.keep], pruned["value"])
    pruned["is_categorical"] &= ~leaf
    used, bitset = np.unique(pruned["bitset_idx"][pruned["is_categorical"] == 1], return_inverse=True)
    pruned["bitset_idx"] = 0
    pruned["bitset_idx"][pruned["is_categorical"] == 1] = bitset
    return type(predictor)(pruned, predictor.binned_left_cat_bitsets[used], predictor.raw_left_cat_bitsets[used])
