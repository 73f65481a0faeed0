"""What a source gave, put into a basket: values as the trees see them, and what becomes of rows that lack one."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.serving.batch import BatchState, Places
from secateur.serving.encoding import Encoder, Values
from secateur.serving.results import FAILED, Feature, FeatureUnavailableError


@dataclass(frozen=True, eq=False)
class Intake:
    """Takes values of one of the user's columns for some rows of a basket."""

    encoder: Encoder
    features: tuple[Feature, ...]

    def take(self, batch: BatchState, column: int, places: Places, found: Any, names: Any = ()) -> None:
        """Put values, or the errors that came instead, into a basket; `names` are what its rows are called.

        Raises
        ------
        FeatureUnavailableError
            If the terms are that nothing may be missing, and something is.
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
        """Put one value into the basket of one row.

        Raises
        ------
        FeatureUnavailableError
            If the row can get no answer, unless that is to be reported.
        """
        self.take(batch, column, np.zeros(1, np.intp), [found])
        if batch.stopped[0] == FAILED and batch.terms.missing != "report":
            raise FeatureUnavailableError(f"{batch.reasons[0]}. Use missing='report' to get an answer that says so.")

    def _failed(
        self, batch: BatchState, read: Values, made: NDArray[np.floating], refused: dict[int, str]
    ) -> NDArray[np.bool_]:
        """Return which values leave their rows without an answer."""
        failed = read.missing.copy() if batch.terms.missing != "model" else np.zeros(len(made), bool)
        failed[list(refused)] = True
        return failed if self.encoder.knows_missing else failed | np.isnan(made).any(axis=1)

    def _explain(
        self, batch: BatchState, column: int, places: Places, reasons: dict[int, str], failed: NDArray[np.bool_]
    ) -> None:
        """Keep the first reason of each row."""
        plain = "it is missing" if batch.terms.missing != "model" else "it is missing, and the model has no rule for it"
        reasons = dict.fromkeys(np.flatnonzero(failed).tolist(), plain) | reasons
        for k, why in reasons.items():
            batch.reasons.setdefault(int(places[k]), f"{self.features[column]!r} could not be had: {why}")
