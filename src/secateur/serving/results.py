"""Define the results of lazy prediction: the prediction, its price, the purchased features and the stopping reason."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.errors import InvalidInputError
from secateur.libraries.adapter import Adapter

Feature = str | int
"""The name of an input column, or its number if columns have no names."""

OPEN, COMPLETE, DECIDED, CAPPED, FAILED, UNAVAILABLE = range(6)
STOPPED = np.array(["open", "complete", "decided", "capped", "failed", "unavailable"])
"""The text of each stopping code, indexed by the code."""


class FeatureUnavailableError(LookupError):
    """Raised when a feature is unavailable and the row cannot be predicted without it."""


@dataclass(frozen=True, eq=False)
class Answer:
    """The prediction for one row.

    Attributes
    ----------
    prediction : scalar or array
        The output of the model's own `predict` for the row; None if the row failed.
    price : float
        The total price of the purchased features.
    features : tuple
        The purchased features, in the order of purchase.
    missing : tuple
        The requested features without a value: None, NaN, or an error.
    stopped : "complete", "decided", "capped", "unavailable" or "failed"
        Why buying stopped. "complete": all trees have reached a leaf. "decided": the remaining features cannot change
        the answer. "capped": no needed feature is affordable. "unavailable": a feature on which the answer depends was
        unavailable and counted as missing. "failed": a feature is unavailable, and the row has no prediction.
    reason : str or None
        The first error or missing value, also if the model's rule for missing values was followed instead.
    raw : (n_outputs,)
        Raw scores, before the link. A tree that has not reached a leaf contributes the value of its current node.
    """

    prediction: Any
    price: float
    features: tuple[Feature, ...]
    missing: tuple[Feature, ...]
    stopped: str
    reason: str | None
    raw: NDArray[np.floating] = field(repr=False)
    source: Adapter = field(repr=False)

    @property
    def certain(self) -> bool:
        """Whether the answer equals that of the full model on the row's true values, in the sense of `same`."""
        return self.stopped in ("complete", "decided")

    @property
    def probabilities(self) -> Any:
        """The class probabilities computed from `raw`."""
        return _row(probabilities(self.source, self.raw[None]), 0)


@dataclass(frozen=True, eq=False)
class Answers:
    """The predictions for many rows.

    Attributes
    ----------
    prediction : (n_rows, ...)
        The output of the model's own `predict`. Failed rows hold NaN in a floating-point array; any other array
        becomes an object array in which they hold None.
    price : (n_rows,)
        The total price of the purchased features.
    order : (n_rows, n_columns) int16
        The position of each column in the row's sequence of purchases, counted from 0; −1 if it was not bought.
    missing : (n_rows, n_columns) bool
        The requested columns without a value.
    stopped : (n_rows,) of "complete", "decided", "capped", "unavailable" or "failed"
    reasons : dict of position: str
        The first error or missing value of a row, also if the model's rule for missing values was followed instead.
    features : tuple
        The names, or numbers, of the columns.
    raw : (n_rows, n_outputs)
        Raw scores, before the link.
    """

    prediction: NDArray[Any]
    price: NDArray[np.float64]
    order: NDArray[np.int16]
    missing: NDArray[np.bool_]
    stopped: NDArray[np.str_]
    reasons: dict[int, str]
    features: tuple[Feature, ...]
    raw: NDArray[np.floating] = field(repr=False)
    source: Adapter = field(repr=False)

    def __len__(self) -> int:
        return len(self.price)

    def __getitem__(self, row: int) -> Answer:
        bought = np.flatnonzero(self.order[row] >= 0)
        bought = bought[np.argsort(self.order[row, bought])]
        return Answer(
            prediction=None if self.failed[row] else self.prediction[row],
            price=float(self.price[row]),
            features=tuple(self.features[k] for k in bought),
            missing=tuple(self.features[k] for k in np.flatnonzero(self.missing[row])),
            stopped=str(self.stopped[row]),
            reason=self.reasons.get(row),
            raw=self.raw[row],
            source=self.source,
        )

    @property
    def bought(self) -> NDArray[np.bool_]:
        """Mask of the columns bought for each row, (n_rows, n_columns)."""
        return self.order >= 0

    @property
    def failed(self) -> NDArray[np.bool_]:
        """Mask of the rows without a prediction, (n_rows,)."""
        return self.stopped == STOPPED[FAILED]

    @property
    def certain(self) -> NDArray[np.bool_]:
        """Mask of the answers that equal the full model's on the rows' true values, as `same` says, (n_rows,)."""
        return np.isin(self.stopped, STOPPED[[COMPLETE, DECIDED]])

    @property
    def probabilities(self) -> Any:
        """The class probabilities computed from `raw`: an array, or a list of arrays for several targets."""
        return probabilities(self.source, self.raw)


def probabilities(source: Adapter, raw: NDArray[np.floating]) -> Any:
    """Return the class probabilities for raw scores, as the classifier's `predict_proba` computes them.

    Raises
    ------
    InvalidInputError
        If the model is not a classifier.
    """
    if not source.forest.n_classes:
        raise InvalidInputError(
            "The model is not a classifier and predicts no probabilities. Use the attribute `prediction`."
        )
    return source.probabilities(raw)


def mask_failed(prediction: NDArray[Any], failed: NDArray[np.bool_]) -> NDArray[Any]:
    """Return predictions with NaN (floating-point arrays) or None (all others) for failed rows."""
    if not failed.any():
        return prediction
    prediction = prediction.copy() if prediction.dtype.kind == "f" else prediction.astype(object)
    prediction[failed] = np.nan if prediction.dtype.kind == "f" else None
    return prediction


def _row(blocks: Any, row: int) -> Any:
    return [block[row] for block in blocks] if isinstance(blocks, list) else blocks[row]
