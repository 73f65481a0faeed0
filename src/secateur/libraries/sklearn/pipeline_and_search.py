"""Adapt a Pipeline or a fitted search that ends in a tree model."""

import copy
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from secateur.errors import InvalidInputError
from secateur.forest import Forest, Leaves
from secateur.forest.subforest import Decision
from secateur.libraries.adapter import Adapter
from secateur.libraries.input_columns import InputColumns
from secateur.libraries.sklearn.step_columns import source_columns


class PipelineAdapter(Adapter):
    """Adapt a Pipeline whose last step is a tree model and whose earlier steps transform the rows."""

    library = "sklearn"
    package = "scikit-learn"
    generates_names = False
    accepts_text = True
    inner: Adapter

    def __init__(self, model: Any, inner: Adapter) -> None:
        super().__init__(model)
        self.inner = inner
        self.supervised = inner.supervised
        self.predicts_labels = inner.predicts_labels

    @property
    def column_names(self) -> tuple[str, ...] | None:
        """The columns that the first step was fitted on; None if they had no names."""
        names = getattr(self.model, "feature_names_in_", None)
        return None if names is None else tuple(str(name) for name in names)

    @property
    def routes_missing(self) -> bool:
        """Whether the inner model predicts rows with missing values."""
        return self.inner.routes_missing

    @property
    def missing_value(self) -> float:
        """The number that marks missing entries for the inner model."""
        return self.inner.missing_value

    def input_columns(self) -> InputColumns:
        """Return the input columns; each output of the steps must be computed from one of them."""
        n_columns = int(self.model.n_features_in_)
        columns = source_columns([step for _, step in self.model.steps[:-1]], n_columns)
        origin = columns[self.inner.input_columns().origin]
        return InputColumns(self.column_names, origin.astype(np.int32), np.zeros(n_columns, bool))

    def read(self) -> Forest:
        """Return the inner model's forest; its features are the outputs of the earlier steps."""
        return self.inner.forest

    def prepare(self, X: Any) -> Any:
        """Return X transformed by all steps before the last.

        Raises
        ------
        InvalidInputError
            If a step fails on these rows.
        """
        if len(self.model.steps) == 1:
            return X
        try:
            return self.model[:-1].transform(X)
        except MemoryError:
            raise
        except Exception as error:
            # Third-party transformers may raise any exception.
            raise InvalidInputError(
                "The transformers of the pipeline fail on these rows "
                f"({type(error).__name__}: {error}). "
                "Pass rows like the training rows. If they fail on those too, the pipeline is damaged: save it again."
            ) from error

    def rows(self, X: Any) -> NDArray[np.floating]:
        """Return the transformed rows as the inner model encodes them."""
        return self.inner.rows(self.prepare(X))

    def target(self, y: Any) -> NDArray[np.generic]:
        """Return the target as the inner model encodes it."""
        return self.inner.target(y)

    def decode(self, label: NDArray[np.generic]) -> NDArray[np.generic]:
        """Return labels or values as the inner model decodes them."""
        return self.inner.decode(label)

    def predict(self, raw: NDArray[np.floating]) -> NDArray[np.generic]:
        """Return the inner model's predictions."""
        return self.inner.predict(raw)

    def probabilities(self, raw: NDArray[np.floating]) -> Any:
        """Return the inner model's probabilities."""
        return self.inner.probabilities(raw)

    @property
    def objective(self) -> str | None:
        """The loss the inner model was trained for."""
        return self.inner.objective

    def offset(self, rows: NDArray[np.floating]) -> NDArray[np.float64] | None:
        """Return the inner model's initial raw predictions."""
        return self.inner.offset(rows)

    def draws(self, n_rows: int) -> Iterable[NDArray[np.integer] | None] | None:
        """Return the rows drawn for each tree of the inner model."""
        return self.inner.draws(n_rows)

    def grown_on(self, leaves: Leaves) -> bool:
        """Return whether the inner model was trained on these rows."""
        return self.inner.grown_on(leaves)

    can_refit = True

    def refit(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """Return a clone of the whole pipeline, fitted on other rows."""
        weight = {} if sample_weight is None else {f"{self.model.steps[-1][0]}__sample_weight": sample_weight}
        return clone(self.model).fit(X, y, **weight)

    def native_ids(self) -> NDArray[np.int64]:
        """Return the inner model's node ids."""
        return self.inner.native_ids()

    def samples_per_node(self) -> NDArray[np.int64] | None:
        """Return the number of training rows at each node of the inner model."""
        return self.inner.samples_per_node()

    def impurity_per_node(self) -> NDArray[np.float64] | None:
        """Return the impurities of the inner model."""
        return self.inner.impurity_per_node()

    def why_immutable(self, what: str) -> str | None:
        """Return the inner model's reason, or None."""
        return self.inner.why_immutable(what)

    def write(self, decision: Decision) -> Any:
        """Return a deep copy in which only the inner model is replaced."""
        return copy.deepcopy(self.model, {id(self.inner.model): self.inner.write(decision)})


class SearchAdapter(PipelineAdapter):
    """Adapt a fitted search, such as GridSearchCV, over a tree model or a Pipeline; rows pass through it unchanged."""

    def __init__(self, model: Any, inner: Adapter) -> None:
        super().__init__(model, inner)
        self.generates_names, self.accepts_text = inner.generates_names, inner.accepts_text

    @property
    def column_names(self) -> tuple[str, ...] | None:
        """The column names of the best estimator."""
        return self.inner.column_names

    def input_columns(self) -> InputColumns:
        """Return the input columns of the best estimator."""
        return self.inner.input_columns()

    def cast(self, numbers: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return values as the trees of the best estimator compare them."""
        return self.inner.cast(numbers)

    def prepare(self, X: Any) -> Any:
        """Return X unchanged: the best estimator transforms it."""
        return X

    def refit(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """Return the best estimator fitted on other rows, without a new search."""
        return self.inner.refit(X, y, sample_weight)
