"""Adapt Spark ML tree models: read them into a Forest and write pruned folders.

Splits compare float64 values with `<=`, so NaN is routed right. A random forest of classes adds the class fractions of
its trees and normalises the total; boosting adds weighted predictions.
"""

from abc import abstractmethod
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from secateur.data.targets import as_columns, as_real_target, check_known_labels
from secateur.errors import InvalidInputError
from secateur.forest import Forest
from secateur.forest.subforest import Decision, kept_trees, subforest
from secateur.libraries.adapter import Adapter, as_matrix
from secateur.libraries.input_columns import ColumnRoles
from secateur.libraries.spark.arrow import Floats
from secateur.libraries.spark.read_nodes import NodeTable, read_nodes
from secateur.libraries.spark.saved_model import SavedModel
from secateur.libraries.spark.trees import class_fractions, read_forest, total_of
from secateur.libraries.spark.write_nodes import pruned_table, pruned_trees

_ROUNDING = 1e-9
"""Tolerance for the sum of new class fractions: above rounding error, below any intended difference."""


class SparkAdapter(Adapter):
    """Adapt a Spark ML model by way of the folder it is saved to."""

    library = "pyspark"
    predicts_natively = False

    @cached_property
    def saved(self) -> SavedModel:
        """The model as a saved folder."""
        return self.as_saved(self.model)

    @abstractmethod
    def as_saved(self, model: Any) -> SavedModel:
        """Return a model of this kind as a saved folder."""

    @property
    def raw_is_total(self) -> bool:
        """Whether raw predictions are sums over trees, not means: true for a forest of classes."""
        return self.saved.keeps_shares and self.saved.kind.ensemble

    @cached_property
    def nodes(self) -> NodeTable:
        """The checked nodes in preorder."""
        return read_nodes(self.saved.nodes, self.saved.metadata["numClasses"] if self.saved.keeps_shares else 3)

    def read(self) -> Forest:
        """Return the mean of the trees, or for boosting their weighted sum."""
        return read_forest(self.saved, self.nodes)

    @cached_property
    def categorical(self) -> NDArray[np.int32]:
        """The features with categorical splits."""
        return np.unique(self.forest.feature[self.forest.is_categorical])

    def rows(self, X: Any) -> NDArray[np.floating]:
        """Return the feature vectors as a checked matrix, from a matrix or from a frame with Spark's features column.

        A fractional value of a categorical feature is not a category; it becomes -1, which no split lists.
        """
        column = self.saved.param("featuresCol")
        if isinstance(column, str) and column in getattr(X, "columns", ()):
            entries = list(X[column])
            if all(hasattr(entry, "toArray") for entry in entries):
                X = np.array([entry.toArray() for entry in entries])
        matrix = as_matrix(X, self.forest)
        if len(self.categorical):
            codes = matrix[:, self.categorical]
            matrix = matrix.copy()
            matrix[:, self.categorical] = np.where(codes != np.trunc(codes), np.where(codes != codes, codes, -1), codes)
        return matrix

    def target(self, y: Any) -> NDArray[np.generic]:
        """Return class codes or values, (n_rows, 1)."""
        values = as_real_target(as_columns(y, 1))
        if not self.saved.n_classes:
            return values
        check_known_labels(np.unique(values), np.arange(self.saved.n_classes, dtype=np.float64))
        return values.astype(np.intp)

    def decode(self, label: NDArray[np.generic]) -> NDArray[np.generic]:
        """Return Spark's predictions, which are float64 for classes too."""
        return label[:, 0].astype(np.float64)

    def predict(self, raw: NDArray[np.floating]) -> NDArray[np.generic]:
        """Return predictions.

        If the model has thresholds, the predicted class has the largest ratio of probability to threshold.
        """
        thresholds = self.saved.param("thresholds") if self.saved.n_classes else None
        if thresholds is None:
            return super().predict(raw)
        with np.errstate(divide="ignore", invalid="ignore"):
            scaled = self.probabilities(raw) / np.asarray(thresholds, np.float64)
        return np.where(np.isnan(scaled), -np.inf, scaled).argmax(axis=1).astype(np.float64)

    def probabilities(self, raw: NDArray[np.floating]) -> Any:
        """Return Spark's probability column."""
        if self.saved.kind.boosted:
            # C's exp agrees with Java's except for a rare last digit; NumPy's differs more often.
            first = expit(-2.0 * raw)
            return np.hstack([first, 1.0 - first])
        return class_fractions(raw) if self.raw_is_total else raw

    @property
    def objective(self) -> str | None:
        """The absolute error if boosting was trained with it, else None."""
        return "absolute_error" if self.saved.param("lossType") == "absolute" else None

    def n_bytes(self, model: Any) -> int:
        """Return the size in bytes of the saved folder."""
        return _size(self.saved if model is self.model else self.as_saved(model))

    def n_bytes_after(self, decision: Decision) -> int:
        """Return the size in bytes of the pruned folder, without loading it into a Spark session."""
        return _size(self.pruned(decision))

    def why_immutable(self, what: str) -> str | None:
        """Return a reason for the base, for tree weights unless boosted, and for the values of class-fraction leaves.

        A solver's new values need not be class fractions. `check_decision` still accepts a decision whose values are.
        """
        if what == "value" and self.saved.keeps_shares:
            return self._why_only_fractions
        if what == "value" or (what == "tree_weight" and self.saved.kind.boosted):
            return None
        return (
            f"a {self.saved.kind_name} cannot store a {what.replace('_', ' ')}. Include it in the leaf values, "
            "or prune sc.as_forest(model) instead."
        )

    def samples_per_node(self) -> NDArray[np.int64] | None:
        """Return the number of training rows at each node, (n_nodes,); None if trees were trained on sampled rows."""
        count, kind = self.nodes.raw_count, self.saved.kind
        drawn = kind.ensemble and not (
            self.saved.param("subsamplingRate") == 1.0 and (kind.boosted or self.saved.param("bootstrap") is False)
        )
        return None if count is None or drawn or (count < 0).any() else count

    def portable(self) -> "SavedAdapter":
        """Return an adapter without a session, native nodes or other files of the folder."""
        saved = self.saved
        light = SavedAdapter(replace(saved, nodes=saved.nodes.schema.empty_table(), trees=None, others={}))
        vars(light)["forest"] = self.forest
        return light

    @property
    def column_roles(self) -> ColumnRoles:
        """The columns of the model's parameters."""
        usual, param = ColumnRoles(), self.saved.param
        features, label = param("featuresCol") or usual.features, param("labelCol") or usual.label
        return ColumnRoles(features, label, param("weightCol") or None)

    def native_ids(self) -> NDArray[np.int64]:
        """Return Spark's node ids."""
        return self.nodes.native_id

    def impurity_per_node(self) -> Floats | None:
        """Return the node impurities that Spark stores."""
        return self.nodes.impurity

    def check_decision(self, decision: Decision) -> None:
        """Raise InvalidInputError if the model cannot store the decision; new values must be class fractions."""
        needs_fractions = self.saved.keeps_shares
        super().check_decision(replace(decision, value=None) if needs_fractions else decision)
        if decision.value is None or not needs_fractions:
            return
        value = decision.value[decision.keep][~subforest(self.forest, decision).is_split]
        if (value < 0).any() or (np.abs(total_of(value) - 1) > _ROUNDING).any():
            raise InvalidInputError(
                f"The pruning gives a leaf values that are not class fractions, but {self._why_only_fractions}"
            )

    @property
    def _why_only_fractions(self) -> str:
        return (
            f"a leaf of a {self.saved.kind_name} stores class weights, which must be non-negative and which Spark "
            "divides by their sum. Use a solver that does not change leaf values, or prune sc.as_forest(model) instead."
        )

    def pruned(self, decision: Decision) -> SavedModel:
        """Return the pruned model as a saved folder, in memory."""
        forest, saved = self.forest, self.saved
        self.check_decision(decision)
        # Spark needs at least one tree: a single leaf with value 0 contributes nothing.
        if not kept_trees(forest, decision.keep).any():
            keep = decision.keep.copy()
            keep[0] = True
            decision = replace(decision, keep=keep, value=np.zeros_like(forest.value))
        small = subforest(forest, decision)
        new = {} if decision.value is None else self._new_columns(small, decision.keep)
        table = pruned_table(self.nodes, decision.keep, small, new)
        if saved.trees is None:
            return replace(saved, nodes=table)
        tree_kept = kept_trees(forest, decision.keep)
        metadata = {**saved.metadata, "numTrees": small.n_trees}
        # A random forest divides by the parameter numTrees, whatever its number of trees.
        if not saved.kind.boosted:
            metadata["paramMap"] = {**saved.metadata["paramMap"], "numTrees": small.n_trees}
        weight = small.tree_weight if saved.kind.boosted else None
        return replace(saved, metadata=metadata, nodes=table, trees=pruned_trees(saved.trees, tree_kept, weight))

    def _new_columns(self, small: Forest, keep: NDArray[np.bool_]) -> dict[str, Any]:
        """Return predictions and class weights with the new leaf values; splits keep theirs."""
        leaf = ~small.is_split
        prediction = self.nodes.prediction[keep]
        if not self.saved.keeps_shares:
            return {"prediction": np.where(leaf, small.value[:, 0], prediction)}
        stats = self.nodes.stats[keep]
        # A new leaf's class weights are its fractions times the node weight, so that the node weight is kept.
        scale = np.where(small.weight > 0, small.weight, 1.0)[:, None]
        stats = np.where(
            leaf[:, None] & (small.value != class_fractions(stats)).any(axis=1)[:, None], small.value * scale, stats
        )
        return {"impurityStats": stats, "prediction": np.where(leaf, stats.argmax(axis=1), prediction)}


def _size(saved: SavedModel) -> int:
    return sum(len(content) for content in saved.files().values())


class SavedAdapter(SparkAdapter):
    """Adapt a SavedModel."""

    @property
    def type_name(self) -> str:
        """The class name of the saved tree model."""
        return self.saved.kind_name

    def as_saved(self, model: SavedModel) -> SavedModel:
        """Return the model itself."""
        return model

    def write(self, decision: Decision) -> SavedModel:
        """Return the pruned SavedModel, in memory."""
        return self.pruned(decision)
