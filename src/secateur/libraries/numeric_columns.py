"""Convert tables and matrices to floats; refuse, by the name of the column, what is not a number.

numpy converts dates and durations to counts, and complex numbers to their real part. Model libraries refuse all three.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.errors import InvalidInputError

_KINDS = {"c": "complex numbers", "m": "durations", "M": "dates"}
_SHOWN = 60


def as_numbers(X: Any, dtype: str) -> NDArray[np.floating]:
    """Return a matrix or a table as floats; missing values of a table become NaN.

    Raises
    ------
    InvalidInputError
        If a column is not numeric.
    """
    if hasattr(X, "iloc") or getattr(getattr(X, "dtype", None), "kind", "") == "c":
        # scikit-learn and LightGBM take a matrix of dates or durations, but no table of them.
        refuse_other_kinds(X)
    try:
        # A value beyond the range of float32 becomes infinite. An infinite value can still be routed.
        with np.errstate(over="ignore"):
            # pandas.NA does not convert to a float by itself.
            if hasattr(X, "iloc"):
                X = X.to_numpy(dtype, na_value=np.nan)
            return np.asarray(X, dtype)
    except (TypeError, ValueError, OverflowError) as error:
        for name, column in _columns(X):
            column_as_numbers(column, name, dtype)
        raise InvalidInputError(
            f"X cannot be read as numbers ({error}). The model needs a matrix or a table of numbers. Pass one row per "
            "sample and one number per column."
        ) from error


def column_as_numbers(column: Any, name: Any, dtype: str, *, text: bool = True) -> NDArray[np.floating]:
    """Return a column of a table as floats, NaN for missing values.

    Parameters
    ----------
    column : Series or array
    name : str or int
        The column's name, or its position in a matrix.
    dtype : str
    text : bool
        Whether texts such as "1.5" count as numbers.

    Raises
    ------
    InvalidInputError
        If the column has anything but numbers.
    """
    _refuse_kind(getattr(column, "dtype", None), name)
    if not text and (found := next((value for value in _objects(column) if isinstance(value, str)), None)) is not None:
        raise _not_numeric(name, f"text, such as {found[:_SHOWN]!r}")
    try:
        with np.errstate(over="ignore"):
            if hasattr(column, "iloc"):
                column = column.to_numpy(dtype, na_value=np.nan)
            return np.asarray(column, dtype)
    except OverflowError as error:
        raise _not_numeric(name, "an integer that no floating-point number can hold") from error
    except (TypeError, ValueError) as error:
        raise _not_numeric(name, f"values that cannot be read as numbers ({str(error)[:200]})") from error


def check_missing(rows: NDArray[np.floating], names: tuple[str, ...] | None, model: str) -> None:
    """Raise InvalidInputError, by the name of the column, if rows of a model without missing values have NaN."""
    missing = np.isnan(rows).any(axis=0)
    if missing.any():
        first = int(missing.argmax())
        name = repr(names[first]) if names else str(first)
        raise InvalidInputError(
            f"X has missing values (NaN) in column {name}, which this {model} does not take. It needs a number in "
            "every row. Fill or drop the missing values as for training."
        )


def refuse_other_kinds(X: Any) -> None:
    """Raise InvalidInputError if a table or a matrix has dates, durations or complex numbers."""
    if hasattr(X, "iloc"):
        for name, dtype in zip(X.columns, X.dtypes, strict=True):
            _refuse_kind(dtype, name)
    elif getattr(X, "ndim", 0) == 2:
        _refuse_kind(getattr(X, "dtype", None), 0)


def _refuse_kind(dtype: Any, name: Any) -> None:
    kind = _KINDS.get(getattr(dtype, "kind", ""))
    if kind is not None:
        raise _not_numeric(name, kind)


def _columns(X: Any) -> Iterator[tuple[Any, Any]]:
    """Yield name and values of each column."""
    if hasattr(X, "iloc"):
        yield from ((name, X.iloc[:, k]) for k, name in enumerate(X.columns))
        return
    try:
        matrix = np.asarray(X)
    except ValueError:
        return
    if matrix.ndim == 2:
        yield from enumerate(matrix.T)


def _objects(column: Any) -> list[Any]:
    """Return the values of a column that may hold texts; none if its type excludes them."""
    kind = getattr(getattr(column, "dtype", None), "kind", "O")
    return list(column) if kind in "OSUT" else []


def _not_numeric(name: Any, found: str) -> InvalidInputError:
    return InvalidInputError(
        f"Column {name!r} of X has {found}. The model needs numbers. Encode the column as for training, or pass the "
        "Pipeline that encodes it."
    )
