"""Store fetched values in a batch: encode them as tree features, and handle missing values and errors."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.serving.batch import BatchState, Places
from secateur.serving.encoding import Encoder, Values
from secateur.serving.results import FAILED, Feature, FeatureUnavailableError


@dataclass(frozen=True, eq=False)
class Intake:
    """Encode fetched values of one input column and store them in a batch.

    Attributes
    ----------
    encoder : Encoder
    features : tuple
        The names, or numbers, of the input columns.
    """

    encoder: Encoder
    features: tuple[Feature, ...]

    def take(self, batch: BatchState, column: int, places: Places, found: Any, names: Any = ()) -> None:
        """Store the values, or the exceptions raised instead, of a column in a batch.

        `found` has one entry for each row in `places`. `names` are the identifiers of all rows of the batch, used in
        error messages.

        Raises
        ------
        FeatureUnavailableError
            If missing="raise" and a row fails.
        """
        read = self.encoder.read(column, found, len(places))
        came = np.ones(len(places), bool)
        came[list(read.errors)] = False
        batch.put(column, places[came], read.missing[came])
        if read.errors:
            batch.give_back(column, places[~came])
        made, refused = self.encoder.encode(column, read.values)
        batch.X[np.ix_(places, self.encoder.features[column])] = made
        failed = self._failed(batch, read, made, refused)
        batch.fail(places[failed])
        self._explain(batch, column, places, {**refused, **read.errors}, failed)
        if batch.terms.missing == "raise" and failed.any():
            place = int(places[failed][0])
            where = f"Row {np.asarray(names)[[place]].tolist()[0]!r}: " if len(names) else ""
            raise FeatureUnavailableError(f"{where}{batch.reasons[place]}. Use missing='model' or 'report' to go on.")

    def take_one(self, batch: BatchState, column: int, found: Any) -> None:
        """Store one value in the batch of a single row.

        Raises
        ------
        FeatureUnavailableError
            If the row fails, unless missing="report".
        """
        self.take(batch, column, np.zeros(1, np.intp), [found])
        if batch.stopped[0] == FAILED and batch.terms.missing != "report":
            raise FeatureUnavailableError(f"{batch.reasons[0]}. Use missing='report' to get an answer that says so.")

    def _failed(
        self, batch: BatchState, read: Values, made: NDArray[np.floating], refused: dict[int, str]
    ) -> NDArray[np.bool_]:
        """Return which values make their rows fail, (n_places,)."""
        failed = read.missing.copy() if batch.terms.missing != "model" else np.zeros(len(made), bool)
        failed[list(refused)] = True
        return failed if self.encoder.knows_missing else failed | np.isnan(made).any(axis=1)

    def _explain(
        self, batch: BatchState, column: int, places: Places, reasons: dict[int, str], failed: NDArray[np.bool_]
    ) -> None:
        """Record why values are unavailable; only the first reason of each row is kept."""
        plain = "it is missing" if batch.terms.missing != "model" else "it is missing, and the model has no rule for it"
        reasons = dict.fromkeys(np.flatnonzero(failed).tolist(), plain) | reasons
        for k, why in reasons.items():
            batch.reasons.setdefault(int(places[k]), f"{self.features[column]!r} could not be had: {why}")
