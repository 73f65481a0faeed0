"""Encode fetched values as tree features, one input column at a time, with the model's own preprocessing."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.errors import InvalidInputError
from secateur.forest.routing import without_zeros
from secateur.libraries.adapter import Adapter
from secateur.libraries.input_columns import InputColumns

_CELLS = 4_000_000
"""Upper limit of rows · columns of a table encoded at once."""


@dataclass(frozen=True, eq=False)
class Values:
    """Fetched values of one column.

    Attributes
    ----------
    values : (n_rows,) float64 or object
        NaN or None where a value is missing or unavailable.
    missing : (n_rows,) bool
    errors : dict of position: str
        Why values are unavailable.
    """

    values: NDArray[Any]
    missing: NDArray[np.bool_]
    errors: dict[int, str]


@dataclass(frozen=True, eq=False)
class Encoder:
    """Compute the tree features derived from one input column.

    Attributes
    ----------
    adapter : Adapter
    columns : InputColumns
    example : DataFrame or (1, n_columns) array, optional
        A row the model can predict. It gives the column types, and its values fill all other columns while one column
        is encoded.
    """

    adapter: Adapter
    columns: InputColumns
    example: Any = None

    @cached_property
    def features(self) -> list[NDArray[np.intp]]:
        """The features of the forest derived from each column."""
        return [np.flatnonzero(self.columns.origin == k) for k in range(self.columns.n_columns)]

    @cached_property
    def filler(self) -> Any:
        """The row that fills the other columns: the example, or missing values if there is no example."""
        n_columns, names = self.columns.n_columns, self.columns.names
        if self.example is not None or self.adapter.inner is None or names is None:
            return np.full((1, n_columns), np.nan) if self.example is None else self.example
        import pandas as pd

        return pd.DataFrame([[np.nan] * n_columns], columns=list(names))

    def check(self) -> None:
        """Raise InvalidInputError if the model cannot preprocess the row that fills the other columns."""
        if self.example is None and self.columns.numeric[self.columns.origin[self.adapter.forest.features_used]].all():
            return
        try:
            self.adapter.rows(self.filler)
        except Exception as error:
            row = "a row of missing values" if self.example is None else "the example"
            raise InvalidInputError(
                f"The model cannot preprocess {row} ({error}). Columns are encoded one at a time, and the others are "
                "filled from a row that the model can predict. Pass example=X[:1], a row of the training data."
            ) from error

    def read(self, column: int, found: Any, n_rows: int) -> Values:
        """Separate the output of a source into values, missing values and errors."""
        length = len(found) if hasattr(found, "__len__") else None
        if length != n_rows:
            returned = f"a {type(found).__name__}" if length is None else f"{length} values"
            reason = f"the source returned {returned} for {n_rows} rows, but must return one value per row"
            return Values(np.full(n_rows, np.nan), np.ones(n_rows, bool), dict.fromkeys(range(n_rows), reason))
        if self.columns.numeric[column]:
            try:
                array = np.asarray(found)
                if array.shape == (n_rows,) and not _holds_other_than_numbers(array):
                    numbers = array.astype(np.float64)
                    return Values(numbers, np.isnan(numbers), {})
            except (TypeError, ValueError, OverflowError):
                pass
        return self._read_each(column, found, n_rows)

    def _read_each(self, column: int, found: Any, n_rows: int) -> Values:
        """Convert the values of a column one at a time, so that an invalid value affects only its row."""
        values = np.empty(n_rows, object)
        missing = np.zeros(n_rows, bool)
        errors: dict[int, str] = {}
        for k, value in enumerate(found):
            if isinstance(value, BaseException):
                errors[k] = f"{type(value).__name__}: {value}"
            elif self.columns.numeric[column] and not is_missing(value):
                try:
                    value = _as_float(value)
                except (TypeError, ValueError):
                    errors[k] = f"{value!r} is not a number"
                except OverflowError:
                    errors[k] = f"a {type(value).__name__} is too large for a floating-point number"
            missing[k] = k in errors or is_missing(value)
            values[k] = np.nan if missing[k] else value
        return Values(values.astype(np.float64) if self.columns.numeric[column] else values, missing, errors)

    def encode(self, column: int, values: NDArray[Any]) -> tuple[NDArray[np.floating], dict[int, str]]:
        """Return the features derived from a column, (n_rows, n_derived), and the reasons for values that failed."""
        if self.columns.numeric[column]:
            matrix = self.adapter.cast(values[:, None])
            return self._as_routed(np.repeat(matrix, len(self.features[column]), axis=1), column), {}
        encoded = np.full((len(values), len(self.features[column])), np.nan, self.adapter.forest.input_dtype)
        errors: dict[int, str] = {}
        step = max(1, _CELLS // max(self.columns.n_columns, 1))
        for first in range(0, len(values), step):
            self._encode_into(encoded, errors, column, values, first, min(first + step, len(values)))
        return self._as_routed(encoded, column), errors

    def _as_routed(self, encoded: NDArray[np.floating], column: int) -> NDArray[np.floating]:
        """Return values as `route` compares them: 0 becomes NaN in features for which zero means missing."""
        zeros = np.flatnonzero(np.isin(self.features[column], self.adapter.forest.zero_is_missing))
        return without_zeros(encoded, tuple(zeros.tolist())) if len(zeros) else encoded

    def _encode_into(
        self,
        encoded: NDArray[np.floating],
        errors: dict[int, str],
        column: int,
        values: NDArray[Any],
        first: int,
        last: int,
    ) -> None:
        """Encode the slice first:last; if the model rejects it, bisect, so that only the rejected values are lost."""
        try:
            encoded[first:last] = self.adapter.rows(self._table(column, values[first:last]))[:, self.features[column]]
        except Exception as error:
            if last - first == 1:
                errors[first] = f"{values[first]!r} cannot be encoded ({error})"
                return
            middle = (first + last) // 2
            self._encode_into(encoded, errors, column, values, first, middle)
            self._encode_into(encoded, errors, column, values, middle, last)

    def _table(self, column: int, values: NDArray[Any]) -> Any:
        """Return copies of the example row with one column replaced by `values`."""
        if hasattr(self.filler, "iloc"):
            table = self.filler.iloc[np.zeros(len(values), int)].reset_index(drop=True)
            table.isetitem(column, _series(values, self.filler.dtypes.iloc[column]))
            return table
        matrix = np.repeat(np.asarray(self.filler)[:1], len(values), axis=0)
        if matrix.dtype != object and values.dtype == object:
            try:
                values = values.astype(np.float64)
            except (TypeError, ValueError):
                matrix = matrix.astype(object)
        matrix[:, column] = values
        return matrix


def _as_float(value: Any) -> float:
    """Return a number as a float; numpy would also convert dates, durations and complex numbers."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        raise TypeError("not a real number")
    if isinstance(value, complex | np.complexfloating) and value.imag == 0:
        return float(value.real)
    if isinstance(value, np.complexfloating):
        raise TypeError("not a real number")
    return float(value)


def _holds_other_than_numbers(array: NDArray[Any]) -> bool:
    """Return whether an array has dates, durations or complex numbers, which numpy would convert to other numbers."""
    if array.dtype != object:
        return array.dtype.kind in "cmM"
    return not {np.datetime64, np.timedelta64}.isdisjoint(map(type, array.tolist()))


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN or `pandas.NA`."""
    try:
        return value is None or bool(value != value)
    # Comparing pandas.NA with itself gives no boolean, and an array gives several.
    except (TypeError, ValueError):
        return type(value).__name__ == "NAType"


def _series(values: NDArray[Any], dtype: Any) -> Any:
    """Return values as a Series of the example's dtype; unknown categories are appended after the known ones."""
    import pandas as pd

    if isinstance(dtype, pd.CategoricalDtype):
        known = dtype.categories.tolist()
        new = [value for value in dict.fromkeys(values) if not is_missing(value) and value not in set(known)]
        return pd.Series(pd.Categorical(values, categories=[*known, *new], ordered=dtype.ordered))
    try:
        return pd.Series(list(values), dtype=dtype)
    except (TypeError, ValueError):
        return pd.Series(list(values)).infer_objects()
