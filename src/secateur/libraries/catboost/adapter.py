"""Adapt CatBoost models: read and write the bytes that CatBoost itself pickles."""

import copy
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from catboost import CatBoost, CatBoostClassifier, CatBoostRanker, CatBoostRegressor, Pool
from numpy.typing import NDArray
from sklearn.base import clone

from secateur.data.targets import as_columns
from secateur.errors import InvalidInputError
from secateur.forest import Forest, check_forest
from secateur.forest.promises import monotone_signs
from secateur.forest.subforest import Decision
from secateur.libraries.adapter import Adapter, as_matrix, check_feature_names
from secateur.libraries.catboost.cbm import NativeModel, probe_cbm, read_cbm, write_cbm
from secateur.libraries.catboost.model_info import class_positions, has_params, monotone_constraints
from secateur.libraries.catboost.objectives import CatBoostObjective, loss_named
from secateur.libraries.catboost.predictions import transform_predictions
from secateur.libraries.catboost.split_features import source_column
from secateur.libraries.catboost.trees import Preorder, in_preorder, pruned_trees, values_and_weights
from secateur.libraries.input_columns import InputColumns
from secateur.libraries.numeric_columns import column_as_numbers


class CatBoostAdapter(Adapter):
    """Adapt CatBoost, CatBoostClassifier, CatBoostRegressor and CatBoostRanker."""

    library = "catboost"
    accepts_text = True
    forgets_offsets = True

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.supervised = self.loss.supervised and not isinstance(model, CatBoostRanker)
        self.custom_objective = self.loss.name.startswith("PythonUserDefined")
        # A sum of models records no training parameters.
        self.can_refit = self.supervised and has_params(self.native.info)
        self.predicts_labels = isinstance(self.model, CatBoostClassifier)

    @cached_property
    def native(self) -> NativeModel:
        """The model as CatBoost stores it."""
        return read_cbm(self.model._serialize_model())

    @cached_property
    def order(self) -> Preorder:
        """The trees in preorder."""
        return in_preorder(self.native.trees)

    @cached_property
    def loss(self) -> CatBoostObjective:
        """The training objective: link, loss and kind of target."""
        return loss_named(self.native.info)

    @cached_property
    def classes(self) -> list[NDArray[Any]]:
        """The labels the trees predict, empty unless a classifier; the model may name classes absent from training."""
        return [np.array(self.model.classes_)[self._class_positions]] if self.loss.classes else []

    @cached_property
    def _class_positions(self) -> list[int]:
        """The index of each label of `classes` among all classes the model names."""
        return class_positions(self.native.info, self.native.trees.leaf_value.shape[1])

    def read(self) -> Forest:
        """Return bias + scale · Σ trees."""
        native, order, conditions = self.native, self.order, self.native.conditions
        value, weight = values_and_weights(native.trees, order)
        n_trees = len(native.trees.size)
        forest = Forest(
            tree_start=order.tree_start,
            right=order.right,
            # A leaf has split condition -1, which indexes the entry appended at the end.
            feature=np.append(conditions.column, np.int32(-1))[order.condition],
            threshold=np.append(conditions.threshold, 0.0)[order.condition],
            default_left=np.append(conditions.missing_is_false, False)[order.condition],
            value=value,
            weight=weight,
            tree_weight=np.full(n_trees, native.scale),
            tree_output=np.full(n_trees, -1, np.int32),
            base=native.bias,
            addition="scaled",
            link=self.loss.link,
            n_features=len(conditions.names),
            n_classes=tuple(len(classes) for classes in self.classes),
            input_dtype="float32",
            feature_names=conditions.names,
            symmetric=native.trees.symmetric,
            monotone=self.monotone,
        )
        check_forest(forest)
        return forest

    @property
    def monotone(self) -> NDArray[np.int8] | None:
        """The sign of each monotonic constraint, or None if there are none; hidden columns have none."""
        conditions = self.native.conditions
        # CatBoost stores every form of constraints as a mapping from the positions of numeric columns among these.
        constraints = monotone_constraints(self.native.info)
        signs = monotone_signs(constraints, len(conditions.numeric), [str(i) for i in range(len(conditions.numeric))])
        if signs is None:
            return None
        monotone = np.zeros(len(conditions.names), np.int8)
        monotone[list(conditions.numeric)] = signs
        return monotone

    def write(self, decision: Decision) -> Any:
        """Return a model of the same class and parameters with pruned trees."""
        self.check_decision(decision)
        trees = pruned_trees(self.native.trees, self.order, self.forest, decision)
        unchanged = bool(decision.keep.all()) and decision.value is None
        model = type(self.model)()
        # Pass on only the parameters of CatBoost's pickled state. The rest describes the unpruned model, or was
        # computed on rows that are not available here.
        model.__setstate__(
            {**copy.deepcopy(self.model._init_params), "__model": write_cbm(self.native, trees, decision.base)}
        )
        if trees.symmetric and self.native.plain and not unchanged and trees.size.sum() >= len(trees.size):
            # shrink keeps all trees and drops the borders and statistics they do not use. It is skipped for models
            # with embeddings, some of which cannot predict afterwards. It is also skipped if there are fewer splits
            # than trees, because it takes the number of splits as a limit for the number of trees.
            model.shrink(len(trees.size))
        # CatBoost does not copy this attribute; a sum of models does not have it.
        if hasattr(self.model, "_n_features_in"):
            model._n_features_in = self.model._n_features_in
        change = getattr(self.model, "_prediction_values_change", None)
        if unchanged and change is not None:
            model._prediction_values_change = np.array(change)
        elif change is not None and trees.has_splits:
            model._prediction_values_change = model.get_feature_importance(type="PredictionValuesChange")
        return model

    def why_immutable(self, what: str) -> str | None:
        """Return a reason for tree weights; values and the base can change."""
        if what != "tree_weight":
            return None
        return "CatBoost cannot store tree weights. Include them in the leaf values."

    def rows(self, X: Any) -> NDArray[np.floating]:
        """Return the numeric columns of X, followed by one count per hidden feature (see `split_features`)."""
        conditions = self.native.conditions
        n_columns, hidden = conditions.n_columns, conditions.hidden
        # CatBoost cannot read the categories of every Arrow or polars table.
        if len(hidden) and hasattr(X, "to_pandas"):
            X = X.to_pandas()
        if isinstance(X, Pool):
            matrix = self._pool_matrix(X)
        else:
            check_feature_names(X, self.column_names if self._named else None)
            matrix = _numbers(X, n_columns, conditions.numeric)
        if not len(hidden):
            return as_matrix(matrix, self.forest)
        fulfilled = self._probe.calc_leaf_indexes(X) != 0
        counts = np.zeros((len(matrix), len(conditions.names) - n_columns), np.float32)
        np.add.at(counts.T, conditions.column[hidden] - n_columns, fulfilled.T)
        return as_matrix(np.hstack([matrix, counts]), self.forest)

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of the user's columns; indices as text if they were not named."""
        conditions = self.native.conditions
        return conditions.names[: conditions.n_columns]

    def input_columns(self) -> InputColumns:
        """Return the user's columns; each hidden feature that a split uses must be derived from one of them."""
        conditions, names = self.native.conditions, self.column_names
        origin = np.arange(len(conditions.names), dtype=np.int32)
        is_used = np.isin(origin, self.forest.features_used)
        for k in range(len(names), len(origin)):
            # No split needs the column of an unused feature, so any will do.
            origin[k] = source_column(conditions.names[k], names) if is_used[k] else 0
        return InputColumns(names if self._named else None, origin, np.isin(np.arange(len(names)), conditions.numeric))

    @cached_property
    def _probe(self) -> CatBoost:
        """A model with one tree of depth 1 for each split condition that is not numeric."""
        return CatBoost().load_model(blob=probe_cbm(self.native, self.native.conditions.hidden))

    @property
    def _named(self) -> bool:
        """Whether the model was trained with column names other than the column indices."""
        return self.column_names != tuple(str(i) for i in range(len(self.column_names)))

    def _pool_matrix(self, pool: Pool) -> NDArray[np.float32]:
        if pool.get_cat_feature_indices() or pool.get_text_feature_indices() or pool.get_embedding_feature_indices():
            raise InvalidInputError(
                "X is a Pool with categorical, text or embedding features, from which the values cannot be read back. "
                "Pass the DataFrame or array from which the Pool was built."
            )
        return np.asarray(pool.get_features(), np.float32)

    def target(self, y: Any) -> NDArray[np.generic]:
        """Return class codes or values, (n_rows, n_targets)."""
        if not self.classes:
            return super().target(y)
        labels = as_columns(y, 1)
        if self.classes[0].dtype.kind in "OU" and labels.dtype.kind in "bif":
            # CatBoost before 1.2.1 stores labels such as True as strings.
            labels = labels.astype(str)
        return super().target(labels)

    def predict(self, raw: NDArray[np.floating]) -> NDArray[np.generic]:
        """Return labels for a classifier, else transformed or raw values, as the model's `predict` does."""
        if isinstance(self.model, CatBoostClassifier) and self.classes:
            if raw.shape[1] == 1:
                return self.classes[0].take((raw[:, 0] > self._border).astype(np.intp))
            return self.classes[0].take(raw.argmax(axis=1))[:, None]
        if isinstance(self.model, CatBoostClassifier) and self.loss.many_labels:
            return (raw > self._border).astype(np.int64)
        kind = self.model._get_default_prediction_type() if isinstance(self.model, CatBoostRegressor) else ""
        if kind in ("Exponent", "RMSEWithUncertainty"):
            return transform_predictions(raw, kind, self.loss.name)
        return raw[:, 0] if raw.shape[1] == 1 else raw

    def probabilities(self, raw: NDArray[np.floating]) -> Any:
        """Return the probabilities of all classes the model names; 0 for classes absent from training."""
        n_named = len(self.model.classes_) if self.loss.classes else 0
        if self.loss.name == "MultiClass":
            return transform_predictions(raw, "Probability", self.loss.name, tuple(self._class_positions), n_named)
        probabilities = super().probabilities(raw)
        if n_named <= len(self._class_positions):
            return probabilities
        all_classes = np.zeros((len(probabilities), n_named))
        all_classes[:, self._class_positions] = probabilities
        return all_classes

    @property
    def _border(self) -> float:
        """The decision threshold on raw predictions: the logit of the probability threshold, 0 by default."""
        text = self.native.info.get("binclass_probability_threshold")
        return float(-np.log(1 / float(text) - 1)) if text else 0.0

    @property
    def objective(self) -> str | None:
        """The name of the training loss, or None for the default loss of the link."""
        return self.loss.objective

    def n_bytes(self, model: Any) -> int:
        """Return the size in bytes of the .cbm file."""
        return len(model._serialize_model())

    def samples_per_node(self) -> NDArray[np.int64] | None:
        """Return the number of training rows at each node, (n_nodes,); None if rows were weighted."""
        weight = self.forest.weight
        unweighted = len(self.native.trees.leaf_weight) and (weight == np.floor(weight)).all()
        return weight.astype(np.int64) if unweighted else None

    def refit(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """Return a model with the same parameters, fitted on other rows."""
        if not self.can_refit:
            return super().refit(X, y, sample_weight)
        params = {**self.model.get_params(), "allow_writing_files": False}
        model = CatBoost(params) if type(self.model) is CatBoost else clone(self.model).set_params(**params)
        special = {
            "cat_features": self.model._get_cat_feature_indices(),
            "text_features": self.model._get_text_feature_indices(),
            "embedding_features": self.model._get_embedding_feature_indices(),
        }
        arguments = {
            name: columns for name, columns in special.items() if columns and model.get_params().get(name) is None
        }
        if sample_weight is not None:
            arguments["sample_weight"] = sample_weight
        if type(model) is CatBoost:
            return model.fit(Pool(X, y, weight=arguments.pop("sample_weight", None), **arguments), verbose=False)
        return model.fit(X, y, verbose=False, **arguments)


def _numbers(X: Any, n_columns: int, numeric: Sequence[int]) -> NDArray[np.float32]:
    """Return X as a matrix with its numeric columns, and 0 in all other columns."""
    if hasattr(X, "toarray"):
        X = X.toarray()
    shape = np.shape(X)
    if len(shape) != 2 or shape[1] != n_columns:
        raise InvalidInputError(
            f"X has shape {shape}, but the model was trained on {n_columns} features and needs (n_rows, {n_columns}). "
            "Pass the columns the model was trained on, in that order."
        )
    if not shape[0]:
        raise InvalidInputError("X has no rows, but pruning needs data. Pass at least one row.")
    columns = list(numeric)
    matrix = np.zeros(shape, np.float32)
    if hasattr(X, "iloc"):
        for k in columns:
            matrix[:, k] = column_as_numbers(X.iloc[:, k], X.columns[k], "float32")
        return matrix
    values = np.asarray(X)
    for k in columns:
        matrix[:, k] = column_as_numbers(values[:, k], k, "float32")
    return matrix
