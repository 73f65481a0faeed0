"""Store fetched values in a batch: encode them as tree features, and handle missing values and errors."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.serving.batch import BatchState, RowIndex
from secateur.serving.encoding import Encoder, Values
from secateur.serving.results import FAILED, Feature, FeatureUnavailableError


@dataclass(frozen=True, eq=False)
class ColumnWriter:
    """Encode fetched values of one input column and store them in a batch.

    Attributes
    ----------
    encoder : Encoder
    features : tuple
        The names, or numbers, of the input columns.
    """

    encoder: Encoder
    features: tuple[Feature, ...]

    def write(self, batch: BatchState, column: int, rows: RowIndex, found: Any, names: Any = ()) -> None:
        """Store the values, or the exceptions raised instead, of a column in a batch.

        `found` has one entry for each row in `rows`. `names` are the identifiers of all rows of the batch, used in
        error messages.

        Raises
        ------
        FeatureUnavailableError
            If missing="raise" and a row fails.
        """
        read = self.encoder.read(column, found, len(rows))
        arrived = np.ones(len(rows), bool)
        arrived[list(read.errors)] = False
        batch.record(column, rows[arrived], read.missing[arrived])
        if read.errors:
            batch.refund(column, rows[~arrived])
        encoded, rejected = self.encoder.encode(column, read.values)
        batch.X[np.ix_(rows, self.encoder.features[column])] = encoded
        failed = self._fails(batch, read, encoded, rejected)
        batch.fail(rows[failed])
        self._record_reasons(batch, column, rows, {**rejected, **read.errors}, failed)
        if batch.terms.missing == "raise" and failed.any():
            row = int(rows[failed][0])
            prefix = f"Row {np.asarray(names)[[row]].tolist()[0]!r}: " if len(names) else ""
            raise FeatureUnavailableError(
                f"{prefix}{batch.reasons[row]}. Use missing='model' to treat such values as missing, or "
                "missing='report' to predict the other rows."
            )

    def write_one(self, batch: BatchState, column: int, found: Any) -> None:
        """Store one value in the batch of a single row.

        Raises
        ------
        FeatureUnavailableError
            If the row fails, unless missing="report".
        """
        self.write(batch, column, np.zeros(1, np.intp), [found])
        if batch.stopped[0] == FAILED and batch.terms.missing != "report":
            raise FeatureUnavailableError(
                f"{batch.reasons[0]}. Use missing='report' to get an answer with this reason instead of an error."
            )

    def _fails(
        self, batch: BatchState, read: Values, encoded: NDArray[np.floating], rejected: dict[int, str]
    ) -> NDArray[np.bool_]:
        """Return which values make their rows fail, (n_rows,)."""
        failed = read.missing.copy() if batch.terms.missing != "model" else np.zeros(len(encoded), bool)
        failed[list(rejected)] = True
        return failed if self.encoder.adapter.routes_missing else failed | np.isnan(encoded).any(axis=1)

    def _record_reasons(
        self, batch: BatchState, column: int, rows: RowIndex, reasons: dict[int, str], failed: NDArray[np.bool_]
    ) -> None:
        """Record why values are unavailable; only the first reason of each row is kept."""
        default = "the value is missing"
        if batch.terms.missing == "model":
            default += ", and the model does not support missing values"
        reasons = dict.fromkeys(np.flatnonzero(failed).tolist(), default) | reasons
        for k, reason in reasons.items():
            batch.reasons.setdefault(int(rows[k]), f"Feature {self.features[column]!r} is unavailable: {reason}")
