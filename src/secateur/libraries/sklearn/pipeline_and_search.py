"""Models inside models: a Pipeline, or a fitted search, around a tree model."""

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from secateur.forest import Forest, Leaves
from secateur.forest.subforest import Decision
from secateur.libraries.adapter import Adapter


class PipelineAdapter(Adapter):
    """A Pipeline whose last step is a tree model; the steps before it prepare the rows."""

    library = "sklearn"

    def __init__(self, model: Any, inner: Adapter) -> None:
        super().__init__(model)
        self.inner = inner
        self.supervised = inner.supervised

    def read(self) -> Forest:
        """Return the inner model's forest; its features are those after the steps before it."""
        return self.inner.forest

    def prepare(self, X: Any) -> Any:
        """Return X as the last step gets it."""
        if len(self.model.steps) == 1:
            return X
        try:
            return self.model[:-1].transform(X)
        except MemoryError:
            raise
        except Exception as error:  # whatever steps of anybody do not expect
            raise ValueError(
                "The steps before the trees of the pipeline cannot prepare these rows "
                f"({type(error).__name__}: {error}). "
                "Pass rows like those it was trained on; if it fails there, too, it is damaged: save it again."
            ) from error

    def rows(self, X: Any) -> NDArray[np.floating]:
        """Return the inner model's rows."""
        return self.inner.rows(self.prepare(X))

    def target(self, y: Any) -> NDArray[np.generic]:
        """Return the inner model's targets."""
        return self.inner.target(y)

    def decode(self, label: NDArray[np.generic]) -> NDArray[np.generic]:
        """Return the inner model's predictions."""
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
        """Return the inner model's starting sums."""
        return self.inner.offset(rows)

    def in_bag(self, n_rows: int) -> NDArray[np.uint8] | None:
        """Return how often the inner model drew each row."""
        return self.inner.in_bag(n_rows)

    def grown_on(self, leaves: Leaves) -> bool:
        """Return whether the inner model was grown on these rows."""
        return self.inner.grown_on(leaves)

    can_refit = True

    def refit(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """Return a clone fitted on other rows, steps before the last included."""
        weight = {} if sample_weight is None else {f"{self.model.steps[-1][0]}__sample_weight": sample_weight}
        return clone(self.model).fit(X, y, **weight)

    def native_ids(self) -> NDArray[np.int64]:
        """Return the inner model's numbers of its nodes."""
        return self.inner.native_ids()

    def samples_per_node(self) -> NDArray[np.int64] | None:
        """Return how many training rows reached each node of the inner model."""
        return self.inner.samples_per_node()

    def impurity_per_node(self) -> NDArray[np.float64] | None:
        """Return the impurities of the inner model."""
        return self.inner.impurity_per_node()

    def why_immutable(self, what: str) -> str | None:
        """Return what the inner model says."""
        return self.inner.why_immutable(what)

    def write(self, decision: Decision) -> Any:
        """Return a deep copy in which only the inner model is replaced."""
        return copy.deepcopy(self.model, {id(self.inner.model): self.inner.write(decision)})


class SearchAdapter(PipelineAdapter):
    """A fitted search, such as GridSearchCV, around a tree model or a Pipeline."""

    def prepare(self, X: Any) -> Any:
        """Return X as it is: the search passes it on."""
        return X

    def refit(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """Return the best estimator fitted on other rows, without searching again."""
        return self.inner.refit(X, y, sample_weight)
