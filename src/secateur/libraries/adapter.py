"""What every library must offer: a fitted model seen through a handful of questions."""

import pickle
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from secateur.data.targets import as_columns, as_real_target, check_known_labels
from secateur.forest import Forest, Leaves
from secateur.forest.subforest import Decision, check_keep, subforest


class Adapter(ABC):
    """A fitted model of some library; the only thing here that knows the library.

    Learning rates, base scores, the order of classes and columns stay behind this class.
    """

    library: ClassVar[str]
    supervised: bool = True
    """Whether the model learned from a target; one that did not is judged by its own unpruned answers."""

    can_refit: bool = False
    """Whether `refit` can train a clone."""

    def __init__(self, model: Any) -> None:
        self.model = model

    @cached_property
    def forest(self) -> Forest:
        """The model in neutral form."""
        return self.read()

    @abstractmethod
    def read(self) -> Forest:
        """Return the model in neutral form."""

    @abstractmethod
    def write(self, decision: Decision) -> Any:
        """Return a pruned copy of the model, of the model's own type."""

    @abstractmethod
    def rows(self, X: Any) -> NDArray[np.floating]:
        """Return X as the trees see it: a checked matrix of the forest's `input_dtype`."""

    @abstractmethod
    def target(self, y: Any) -> NDArray[np.generic]:
        """Return y as (n_rows, n_targets) class codes or real values, checked."""

    @abstractmethod
    def decode(self, label: NDArray[np.generic]) -> NDArray[np.generic]:
        """Return class codes as the model's own labels, and values as they are; a single target loses its axis."""

    def predict(self, raw: NDArray[np.floating]) -> NDArray[np.generic]:
        """Return what the model's own `predict` returns, from the sums of a pruning of it."""
        return self.decode(self.forest.response.label(raw, self.forest.n_classes))

    def probabilities(self, raw: NDArray[np.floating]) -> Any:
        """Return what the model's own `predict_proba` returns: an array, or a list of them for several targets."""
        blocks = self.forest.response.mean(raw, self.forest.n_classes)
        return blocks[0] if len(blocks) == 1 else blocks

    @property
    def raw_is_total(self) -> bool:
        """Whether the model's own sums, of which `predict` is told, stay undivided though it is a mean of its trees."""
        return False

    @property
    def objective(self) -> str | None:
        """The name of the loss the model was trained for, where that is not what its kind is usually judged by."""
        return None

    def n_bytes_after(self, decision: Decision) -> int:
        """Return the size of the saved model, once it is pruned."""
        return self.n_bytes(self.write(decision))

    def n_bytes(self, model: Any) -> int:
        """Return the size of a model of this kind when it is saved: pickled, without keeping the bytes."""
        counter = _Counter()
        pickle.dump(model, counter, protocol=5)
        return counter.count

    def why_immutable(self, what: str) -> str | None:
        """Return why the model has no place for a new "value", "tree_weight" or "base", or None if it has."""
        return None

    def check_decision(self, decision: Decision) -> None:
        """Raise ValueError if the decision is no pruning or changes something the model has no place for."""
        check_keep(self.forest, decision.keep)
        for what in ("value", "tree_weight", "base"):
            reason = self.why_immutable(what)
            if reason and getattr(decision, what) is not None:
                raise ValueError(f"The pruning changes what this model cannot hold: {reason}")

    def offset(self, rows: NDArray[np.floating]) -> NDArray[np.float64] | None:
        """Return where the sums start for each row, (n_rows, n_outputs), if that differs by row."""
        return None

    def in_bag(self, n_rows: int) -> NDArray[np.uint8] | None:
        """Return how often each training row was drawn for each tree, (n_trees, n_rows).

        None if the model does not tell, or was not trained on `n_rows` rows.
        """
        return None

    def grown_on(self, leaves: Leaves) -> bool:
        """Return whether the rows that reach these leaves are, in all likelihood, the training rows in their order."""
        return False

    def refit(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """Return a new model trained like this one on other rows, for cross-validation."""
        raise ValueError(
            f"A {type(self.model).__name__} cannot be trained again from here, which cross-validation needs. "
            "Use validation=(X_val, y_val)."
        )

    def native_ids(self) -> NDArray[np.int64]:
        """Return the library's own number of each node within its tree, (n_nodes,); its place in preorder if none."""
        start = self.forest.tree_start
        return np.arange(start[-1]) - np.repeat(start[:-1], np.diff(start))

    def samples_per_node(self) -> NDArray[np.int64] | None:
        """Return how many different training rows reached each node, (n_nodes,); None if the model does not tell."""
        return None

    def impurity_per_node(self) -> NDArray[np.float64] | None:
        """Return the impurity of the training rows at each node, (n_nodes,); None if the model does not tell."""
        return None


class _Counter:
    """A file that only counts."""

    count = 0

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        self.count += size
        return size


class ForestAdapter(Adapter):
    """A Forest passes through: rows are matrices, classes are codes, and pruning gives a Forest."""

    library = "secateur"

    def read(self) -> Forest:
        """Return the forest itself."""
        forest: Forest = self.model
        return forest

    def write(self, decision: Decision) -> Forest:
        """Return the pruned forest."""
        return subforest(self.forest, decision)

    def rows(self, X: Any) -> NDArray[np.floating]:
        """Return X checked."""
        return as_matrix(X, self.forest)

    def target(self, y: Any) -> NDArray[np.generic]:
        """Return y as codes or values."""
        y = as_columns(y, len(self.forest.n_classes) or self.forest.n_outputs)
        if not self.forest.n_classes:
            return as_real_target(y)
        codes = y.astype(np.intp)
        for k, n_classes in enumerate(self.forest.n_classes):
            check_known_labels(np.unique(codes[:, k]), np.arange(n_classes))
        return codes

    def decode(self, label: NDArray[np.generic]) -> NDArray[np.generic]:
        """Return codes or values; a single target loses its axis."""
        return label[:, 0] if label.shape[1] == 1 else label


def as_matrix(X: Any, forest: Forest) -> NDArray[np.floating]:
    """Return X as a C-ordered matrix of the forest's input type, or say what is wrong with it."""
    check_feature_names(X, forest.feature_names)
    if hasattr(X, "toarray"):
        X = X.toarray()
    try:
        matrix = np.ascontiguousarray(as_numbers(X, forest.input_dtype))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"X cannot be read as numbers ({error}); this model needs {forest.n_features} numeric features. "
            "Encode text columns as they were for training, or pass the whole Pipeline."
        ) from error
    if matrix.ndim != 2 or matrix.shape[1] != forest.n_features:
        raise ValueError(
            f"X has shape {matrix.shape}; the model was trained on {forest.n_features} features and needs "
            f"(n_rows, {forest.n_features}). Pass the columns the model was trained on, in that order."
        )
    if not len(matrix):
        raise ValueError("X has no rows; pruning needs data to judge by. Pass at least one row.")
    return matrix


def as_numbers(X: Any, dtype: str) -> NDArray[np.floating]:
    """Return a matrix or a table as numbers; what a table calls missing is NaN."""
    with np.errstate(over="ignore"):  # beyond float32 is infinite, and infinite values can be routed
        if hasattr(X, "iloc"):  # pandas has an NA of its own, which is no number
            X = X.to_numpy(dtype, na_value=np.nan)
        return np.asarray(X, dtype)


def check_feature_names(X: Any, expected: tuple[str, ...] | None) -> None:
    """Raise ValueError if X has column names and they are not the ones the model was trained with."""
    columns = getattr(X, "column_names", None)  # Arrow, where `columns` are the values
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
    raise ValueError(
        f"The columns of X differ from those the model was trained with ({found}). "
        "Pass X[list(model.feature_names_in_)]."
    )
