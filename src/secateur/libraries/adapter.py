"""Define the interface between a model library and the rest of secateur: read, write, encode rows and targets."""

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise, repeat
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.data.targets import as_columns, as_real_target, check_known_labels, class_codes
from secateur.errors import InvalidInputError, UnsupportedModelError
from secateur.forest import Forest, Leaves
from secateur.forest.subforest import Decision, check_keep, subforest
from secateur.libraries.input_columns import ColumnRoles, InputColumns
from secateur.libraries.numeric_columns import as_numbers


class Adapter(ABC):
    """Wrap a fitted model of one library; no other class depends on that library.

    Learning rates, base scores, the order of classes and columns stay behind this class. Other modules ask an adapter
    what it can do, never which library its model is from.
    """

    library: ClassVar[str]
    """The name of the library, for display."""

    inner: "Adapter | None" = None
    """The adapter of the model inside a pipeline or search; None for other models."""

    supervised: bool = True
    """Whether the model was trained with a target. If not, prunings are scored against the unpruned predictions."""

    custom_objective: bool = False
    """Whether the model was trained with an objective function of the user, which it does not store."""

    hides_objective: bool = False
    """Whether a model trained with an objective function of the user would claim squared error."""

    forgets_offsets: bool = False
    """Whether the library can train with an offset per row (base_margin, init_score, baseline) it does not store."""

    can_refit: bool = False
    """Whether `refit` can train a clone of the model."""

    predicts_natively: bool = True
    """Whether the model has a method `predict` that takes rows in memory."""

    predicts_labels: bool = True
    """Whether `predict` returns labels if the targets are classes, rather than probabilities or scores."""

    generates_names: bool = True
    """Whether the library names unnamed columns, so that `column_names` may be generated."""

    def __init__(self, model: Any) -> None:
        self.model = model

    @cached_property
    def forest(self) -> Forest:
        """The model as a Forest with its training objective, read once.

        An unsupervised model has none; its prunings are compared with its own scores.
        """
        forest, objective = self.read(), self.objective
        if objective is None and not self.supervised:
            objective = "score_error"
        return forest if forest.objective == objective else replace(forest, objective=objective)

    @abstractmethod
    def read(self) -> Forest:
        """Return the model as a Forest."""

    @abstractmethod
    def write(self, decision: Decision) -> Any:
        """Return a pruned copy of the model, of the same type as the model."""

    @abstractmethod
    def rows(self, X: Any) -> NDArray[np.floating]:
        """Return X as the matrix the trees are evaluated on: checked, of the forest's `input_dtype`."""

    @property
    def classes(self) -> Sequence[NDArray[Any]]:
        """The labels of each target; empty unless the targets are classes with labels."""
        return ()

    def target(self, y: Any) -> NDArray[np.generic]:
        """Return y as (n_rows, n_targets) class codes or real values, checked."""
        y = as_columns(y, len(self.classes) or self.forest.n_outputs)
        if not self.classes:
            return as_real_target(y)
        return np.column_stack([class_codes(column, labels) for column, labels in zip(y.T, self.classes, strict=True)])

    def decode(self, label: NDArray[np.generic]) -> NDArray[np.generic]:
        """Return class codes as the model's labels, and values unchanged; a single target loses its axis."""
        if self.classes:
            label = np.column_stack([c.take(codes) for c, codes in zip(self.classes, label.T, strict=True)])
        return label[:, 0] if label.shape[1] == 1 else label

    def predict(self, raw: NDArray[np.floating]) -> NDArray[np.generic]:
        """Return what the model's `predict` returns, computed from the raw predictions of one of its prunings."""
        return self.decode(self.forest.response.label(raw, self.forest.n_classes))

    def probabilities(self, raw: NDArray[np.floating]) -> Any:
        """Return what the model's `predict_proba` returns: an array, or a list of arrays for several targets."""
        blocks = self.forest.response.mean(raw, self.forest.n_classes)
        return blocks[0] if len(blocks) == 1 else blocks

    def predictor(self, model: Any, method: str) -> Callable[[Any], Any] | None:
        """Return the method of a model of this kind that predicts rows in memory; None if it has no such method."""
        return getattr(model, method, None)

    @property
    def raw_is_total(self) -> bool:
        """Whether `predict` takes the undivided sum over trees although the model averages its trees."""
        return False

    @property
    def objective(self) -> str | None:
        """The name of the training loss; None if it is the default loss of the model's link."""
        return None

    @property
    def package(self) -> str:
        """The distribution that contains the library, for its version."""
        return self.library

    @property
    def type_name(self) -> str:
        """The class name of the model."""
        return type(self.model).__name__

    def labels(self, target: int = 0) -> NDArray[Any]:
        """Return the labels of a classification target, in the order of their codes."""
        n_classes = self.forest.n_classes
        codes = np.zeros((n_classes[target], len(n_classes)), np.intp)
        codes[:, target] = np.arange(n_classes[target])
        return np.asarray(self.decode(codes)).reshape(codes.shape)[:, target]

    @property
    def column_names(self) -> tuple[str, ...] | None:
        """The names of the columns of X, in the order of training; None if unknown."""
        return self.forest.feature_names

    @property
    def accepts_text(self) -> bool:
        """Whether `rows` encodes columns of text."""
        return False

    @property
    def routes_missing(self) -> bool:
        """Whether the tree model predicts rows with missing values; steps before it may refuse them."""
        return True

    @property
    def missing_value(self) -> float:
        """The number that marks missing entries in addition to NaN; NaN if there is none."""
        return float("nan")

    def input_columns(self) -> InputColumns:
        """Return the input columns and the column behind each feature.

        Raises
        ------
        UnsupportedModelError
            If a feature is computed from several columns, or in a way that is not known.
        """
        forest, numeric = self.forest, np.ones(self.forest.n_features, bool)
        if len(forest.categories.row):
            numeric[forest.feature[forest.categories.row != -1]] = False
        return InputColumns(forest.feature_names, np.arange(forest.n_features, dtype=np.int32), numeric)

    def cast(self, numbers: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return values of numeric columns as the trees compare them."""
        # Values beyond the range of float32 become infinite.
        with np.errstate(over="ignore"):
            return numbers.astype(self.forest.input_dtype)

    def portable(self) -> "Adapter":
        """Return an adapter that can be pickled and that encodes rows and predicts as this one does."""
        return self

    @property
    def column_roles(self) -> ColumnRoles:
        """The columns of a Spark DataFrame that hold features, labels and weights."""
        return ColumnRoles()

    @property
    def stages_before(self) -> Sequence[Any]:
        """The fitted stages of a Spark pipeline that compute the features column."""
        return ()

    def n_bytes_after(self, decision: Decision) -> int:
        """Return the size in bytes of the saved model after pruning."""
        return self.n_bytes(self.write(decision))

    def n_bytes(self, model: Any) -> int:
        """Return the size in bytes of a saved model of this kind: its pickle, counted without keeping the bytes."""
        counter = _Counter()
        pickle.dump(model, counter, protocol=5)
        return counter.count

    def why_immutable(self, what: str) -> str | None:
        """Return why the model cannot store a new "value", "tree_weight" or "base", or None if it can."""
        return None

    def check_decision(self, decision: Decision) -> None:
        """Raise ValueError if the decision is not a valid pruning, or changes a quantity the model cannot store."""
        check_keep(self.forest, decision.keep)
        for what in ("value", "tree_weight", "base"):
            reason = self.why_immutable(what)
            if reason and getattr(decision, what) is not None:
                raise InvalidInputError(f"The pruning changes a quantity that the model cannot store: {reason}")

    def offset(self, rows: NDArray[np.floating]) -> NDArray[np.float64] | None:
        """Return the initial raw prediction of each row, (n_rows, n_outputs), or None if all rows share it."""
        return None

    def draws(self, n_rows: int) -> Iterable[NDArray[np.integer] | None] | None:
        """Return the indices of the training rows drawn for each tree; None instead of indices for every row once.

        None if the model does not record it, or was not trained on `n_rows` rows. By default all trees are trained on
        all rows; adapters of models that sample rows override this. Trees are drawn as they are iterated over, so that
        only the rows of one tree are in memory.
        """
        samples = self.samples_per_node()
        if samples is None or (samples[self.forest.root] != n_rows).any():
            return None
        return repeat(None, self.forest.n_trees)

    def in_bag(self, n_rows: int) -> NDArray[np.uint8] | None:
        """Return how often each training row was drawn for each tree, (n_trees, n_rows), or None if `draws` does."""
        draws = self.draws(n_rows)
        if draws is None:
            return None
        drawn = np.ones((self.forest.n_trees, n_rows), np.uint8)
        for tree, rows in enumerate(draws):
            if rows is not None:
                drawn[tree] = np.minimum(np.bincount(rows, minlength=n_rows), 255)
        return drawn

    def grown_on(self, leaves: Leaves) -> bool:
        """Return whether the rows that reach these leaves are very probably the training rows, in training order.

        By default, whether the rows drawn for each tree give exactly the leaf counts of training.
        """
        forest, n_rows = self.forest, leaves.shape[1]
        # Trees of a single leaf have the same counts for any rows and prove nothing.
        draws = self.draws(n_rows) if forest.is_split.any() else None
        samples = None if draws is None else self.samples_per_node()
        if draws is None or samples is None:
            return False
        trees = (slice(*nodes) for nodes in pairwise(forest.tree_start.tolist()))
        return all(
            np.array_equal(_count_rows(reached, rows, tree.stop - tree.start), samples[tree] * ~forest.is_split[tree])
            for reached, rows, tree in zip(leaves, draws, trees, strict=True)
        )

    def refit(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """Return a new model trained like this one on other rows, for cross-validation."""
        raise UnsupportedModelError(
            f"Cross-validation trains new models, but secateur cannot train another {type(self.model).__name__} like "
            "this one. Pass validation=(X_val, y_val) instead."
        )

    def native_ids(self) -> NDArray[np.int64]:
        """Return the library's id of each node within its tree, (n_nodes,); the preorder position if it has no ids."""
        start = self.forest.tree_start
        return np.arange(start[-1]) - np.repeat(start[:-1], np.diff(start))

    def samples_per_node(self) -> NDArray[np.int64] | None:
        """Return the number of distinct training rows at each node, (n_nodes,); None if it is not recorded."""
        return None

    def impurity_per_node(self) -> NDArray[np.float64] | None:
        """Return the impurity of the training rows at each node, (n_nodes,); None if it is not recorded."""
        return None


def _count_rows(leaves: NDArray[np.unsignedinteger], rows: NDArray[np.integer] | None, n_nodes: int) -> NDArray[Any]:
    """Return how many distinct rows, of all rows or of those given, reach each leaf of a tree, (n_nodes,)."""
    if rows is None:
        return kernels.count_rows(leaves, n_nodes)
    drawn = np.zeros(len(leaves))
    drawn[rows] = 1.0
    return np.bincount(leaves, drawn, n_nodes)


class _Counter:
    """Count the bytes written to a file-like object and discard them."""

    count = 0

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        self.count += size
        return size


class ForestAdapter(Adapter):
    """Adapt a Forest, unchanged: rows are matrices, classes are codes, and pruning returns a Forest."""

    library = "secateur"
    predicts_natively = False

    def read(self) -> Forest:
        """Return the forest itself."""
        forest: Forest = self.model
        return forest

    def write(self, decision: Decision) -> Forest:
        """Return the pruned forest."""
        return subforest(self.forest, decision)

    def rows(self, X: Any) -> NDArray[np.floating]:
        """Return X as a checked matrix."""
        return as_matrix(X, self.forest)

    def target(self, y: Any) -> NDArray[np.generic]:
        """Return y as class codes or values, (n_rows, n_targets)."""
        y = as_columns(y, len(self.forest.n_classes) or self.forest.n_outputs)
        if not self.forest.n_classes:
            return as_real_target(y)
        codes = y.astype(np.intp)
        for k, n_classes in enumerate(self.forest.n_classes):
            check_known_labels(np.unique(codes[:, k]), np.arange(n_classes))
        return codes


def not_fitted(model: Any) -> InvalidInputError:
    """Return the error for a model that is not trained."""
    return InvalidInputError(
        f"This {type(model).__name__} is not fitted, but pruning needs a trained model. Call fit first."
    )


def as_matrix(X: Any, forest: Forest) -> NDArray[np.floating]:
    """Return X as a C-ordered matrix of the forest's input type.

    Raises
    ------
    InvalidInputError
        If X is not numeric, has other columns than the training data, or has no rows.
    """
    check_feature_names(X, forest.feature_names)
    if hasattr(X, "toarray"):
        X = X.toarray()
    matrix = np.ascontiguousarray(as_numbers(X, forest.input_dtype))
    if matrix.ndim != 2 or matrix.shape[1] != forest.n_features:
        raise InvalidInputError(
            f"X has shape {matrix.shape}, but the model was trained on {forest.n_features} features and needs "
            f"(n_rows, {forest.n_features}). Pass the columns the model was trained on, in that order."
        )
    if not len(matrix):
        raise InvalidInputError("X has no rows, but pruning needs data. Pass at least one row.")
    return matrix


def check_feature_names(X: Any, expected: tuple[str, ...] | None) -> None:
    """Raise ValueError if X has column names and they are not the ones the model was trained with."""
    # In Arrow tables `columns` holds the values and `column_names` the names.
    columns = getattr(X, "column_names", None)
    if not isinstance(columns, list):
        columns = getattr(X, "columns", None)
    if columns is None or expected is None:
        return
    names = tuple(str(name) for name in columns)
    if names == expected:
        return
    missing = [name for name in expected if name not in names]
    extra = [name for name in names if name not in expected]
    found = f"missing {missing[:5]}, unexpected {extra[:5]}" if missing or extra else "the same names in another order"
    raise InvalidInputError(
        f"The columns of X differ from those the model was trained with ({found}). "
        "Pass X[list(model.feature_names_in_)]."
    )
