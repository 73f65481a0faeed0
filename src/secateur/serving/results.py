"""What comes back: the answer, what it cost, what was bought in which order, and whether it is the full model's."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.libraries.adapter import Adapter

Feature = str | int
"""The name of a column of the user's, or its number where there are no names."""

OPEN, COMPLETE, DECIDED, CAPPED, FAILED = range(5)
STOPPED = np.array(["open", "complete", "decided", "capped", "failed"])
"""What each of these is called."""


class FeatureUnavailableError(LookupError):
    """A feature could not be had, and the caller asked not to do without."""


@dataclass(frozen=True, eq=False)
class Answer:
    """The prediction for one row.

    Attributes
    ----------
    prediction : scalar or array
        What the model's own `predict` gives for the row; None if it failed.
    price : float
        What was paid.
    features : tuple
        What was bought, in this order.
    missing : tuple
        What was asked for and is missing: None, NaN, or an error.
    stopped : "complete", "decided", "capped" or "failed"
        Why no more was bought: all trees came to a leaf; what is left cannot change the answer; it cannot be paid;
        a feature could not be had.
    reason : str or None
        What went wrong first, also where the model's rule for missing values was followed instead.
    raw : (n_outputs,)
        The sums before the link. A tree that did not come to a leaf adds the value of the node it stands at.
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
        """Whether the answer is the full model's, in the sense that was asked for."""
        return self.stopped in ("complete", "decided")

    @property
    def probabilities(self) -> Any:
        """What `predict_proba` gives for the row, of the trees as far as they came; see `raw`."""
        return _row(probabilities(self.source, self.raw[None]), 0)


@dataclass(frozen=True, eq=False)
class Answers:
    """The predictions for many rows.

    Attributes
    ----------
    prediction : (n_rows, ...)
        What the model's own `predict` gives. Where rows failed, NaN among numbers; labels are objects then, and None.
    price : (n_rows,)
    order : (n_rows, n_columns) int16
        When each column was bought for a row, counted from 0; −1 if it was not.
    missing : (n_rows, n_columns) bool
        What was asked for and is missing.
    stopped : (n_rows,) of "complete", "decided", "capped" or "failed"
    reasons : dict of position: str
        What went wrong first for a row, also where the model's rule for missing values was followed instead.
    features : tuple
        The names, or numbers, of the columns.
    raw : (n_rows, n_outputs)
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
        """Which columns were bought for each row, (n_rows, n_columns)."""
        return self.order >= 0

    @property
    def failed(self) -> NDArray[np.bool_]:
        """Which rows have no answer, (n_rows,)."""
        return self.stopped == STOPPED[FAILED]

    @property
    def certain(self) -> NDArray[np.bool_]:
        """Which answers are the full model's, in the sense that was asked for, (n_rows,)."""
        return np.isin(self.stopped, STOPPED[[COMPLETE, DECIDED]])

    @property
    def probabilities(self) -> Any:
        """What `predict_proba` gives, of the trees as far as they came: an array, or a list for several targets."""
        return probabilities(self.source, self.raw)


def probabilities(source: Adapter, raw: NDArray[np.floating]) -> Any:
    """Return what a classifier's `predict_proba` gives for sums.

    Raises
    ------
    ValueError
        If the model has no probabilities.
    """
    if not source.forest.n_classes:
        raise ValueError("This model predicts numbers and has no probabilities. Use the prediction.")
    return source.probabilities(raw)


def without(prediction: NDArray[Any], failed: NDArray[np.bool_]) -> NDArray[Any]:
    """Return predictions in which those of failed rows cannot be taken for answers."""
    if not failed.any():
        return prediction
    prediction = prediction.copy() if prediction.dtype.kind == "f" else prediction.astype(object)
    prediction[failed] = np.nan if prediction.dtype.kind == "f" else None
    return prediction


def _row(blocks: Any, row: int) -> Any:
    return [block[row] for block in blocks] if isinstance(blocks, list) else blocks[row]
