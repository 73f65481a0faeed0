"""Present a point of a path as a fitted scikit-learn estimator, so that any scorer can call it."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.forest.subforest import Decision, subforest
from secateur.libraries.adapter import Adapter
from secateur.path.pruned import raw_of

Response = Callable[[NDArray[np.floating]], Any]
"""Computes what a prediction method returns from raw scores."""


class UnreadRows:
    """Stand for rows of which only the leaves are known; a point predicts them, and nothing else can be done."""

    def __init__(self, n_rows: int) -> None:
        self.n_rows = n_rows

    def __len__(self) -> int:
        return self.n_rows


class PointEstimator:
    """Predict with a pruning as its native model does: `predict` and, as far as the model has them, other methods.

    The predictions of the rows it was made for are computed once; other rows are predicted by the pruned forest.

    Parameters
    ----------
    source : Adapter
    decision : callable
        Returns the decision of the pruning, for other rows.
    raw : (n_rows, n_outputs)
        Raw scores of the rows, as `Pruned.raw` returns them.
    rows : object
        The rows: the very object that a scorer gets as X.
    known : dict, optional
        Predictions of the rows, by the name of the method.
    """

    def __init__(
        self,
        source: Adapter,
        decision: Callable[[], Decision],
        raw: NDArray[np.floating],
        rows: Any,
        known: Mapping[str, Any] | None = None,
    ) -> None:
        self._source, self._decision, self._raw, self._rows = source, decision, raw, rows
        self._responses = responses_of(source)
        self._known: dict[str, Any] = dict(known or {})

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__.get("_responses", {}):
            return self._method(name)
        # Copies look up attributes before they have any.
        kind = self._source.type_name if "_source" in self.__dict__ else "model"
        raise AttributeError(f"A pruned {kind} has no {name}")

    def _method(self, name: str) -> Response:
        def predict(X: Any) -> Any:
            return self._predict(name, X)

        # Scorers look up the name of a method.
        predict.__name__ = name
        return predict

    def _predict(self, name: str, X: Any) -> Any:
        if X is not self._rows:
            pruned = subforest(self._source.forest, self._decision())
            return self._responses[name](raw_of(self._source, pruned, X))
        if name not in self._known:
            self._known[name] = self._responses[name](self._raw)
        # Scorers may change what they get.
        return _each(np.copy, self._known[name])

    def take(self, index: NDArray[np.intp], rows: Any) -> "PointEstimator":
        """Return the estimator for some of its rows, which a scorer gets as `rows`."""
        known = {name: _each(lambda array: array[index], found) for name, found in self._known.items()}
        return PointEstimator(self._source, self._decision, self._raw[index], rows, known)

    @property
    def predictions(self) -> Mapping[str, Any]:
        """The predictions of its rows that were asked for, by the name of the method."""
        return self._known

    @property
    def classes_(self) -> Any:
        """The labels, in the order of the columns of `predict_proba`; a list of arrays for several targets."""
        n_targets = len(self._source.forest.n_classes)
        if not n_targets:
            raise AttributeError("A model that predicts numbers has no classes_")
        named = getattr(self._source.model, "classes_", None)
        if named is not None:
            return named if n_targets > 1 and isinstance(named, list) else np.asarray(named)
        labels = [self._source.labels(target) for target in range(n_targets)]
        return labels[0] if n_targets == 1 else labels

    @property
    def _estimator_type(self) -> str:
        if not self._source.supervised and "score_samples" in self._responses:
            return "outlier_detector"
        return "classifier" if self._source.forest.n_classes else "regressor"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, RegressorTags, Tags, TargetTags

        kind = self._estimator_type
        return Tags(
            estimator_type=kind,
            target_tags=TargetTags(required=self._source.supervised),
            classifier_tags=ClassifierTags() if kind == "classifier" else None,
            regressor_tags=RegressorTags() if kind == "regressor" else None,
        )


def responses_of(source: Adapter) -> dict[str, Response]:
    """Return the prediction methods of a model's prunings, as functions of raw scores."""
    forest = source.forest
    if not source.supervised and forest.link == "anomaly":
        return {
            "predict": source.predict,
            "score_samples": partial(_anomaly_scores, source),
            "decision_function": partial(_anomaly_scores, source, offset=getattr(source.model, "offset_", 0.0)),
        }
    if not forest.n_classes:
        return {"predict": source.predict}
    found: dict[str, Response] = {
        "predict": source.predict if source.predicts_labels else partial(_labels, source),
        "predict_proba": source.probabilities,
    }
    if forest.response.logits and hasattr(source.model, "decision_function"):
        found["decision_function"] = lambda raw: raw[:, 0] if raw.shape[1] == 1 else raw
    return found


def _labels(source: Adapter, raw: NDArray[np.floating]) -> NDArray[np.generic]:
    return source.decode(source.forest.response.label(raw, source.forest.n_classes))


def _anomaly_scores(source: Adapter, raw: NDArray[np.floating], offset: float = 0.0) -> NDArray[np.floating]:
    return np.asarray(source.forest.response.mean(raw, ())[0][:, 0] - offset)


def _each(function: Callable[[Any], Any], predictions: Any) -> Any:
    """Return the function of an array, or of each of a list of arrays, which several targets have."""
    if isinstance(predictions, list):
        return [function(array) for array in predictions]
    return function(predictions)
