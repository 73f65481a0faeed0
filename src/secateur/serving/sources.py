"""Fetch feature values from functions, tables in memory or SQL databases, one column for many rows at a time."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from secateur._util.text import quoted
from secateur.errors import InvalidInputError
from secateur.serving.results import Feature


@runtime_checkable
class FeatureSource(Protocol):
    """Protocol of objects that return one feature for given rows."""

    def fetch(self, feature: Feature, rows: NDArray[Any]) -> Any:
        """Return a value for each of the rows, in their order.

        None and NaN are missing values. An exception object in place of a value marks that single value as
        unavailable. If `fetch` raises, the value is unavailable for all of these rows. `rows` are the row identifiers
        passed to `LazyPredictor.predict`.
        """


@dataclass(frozen=True)
class Calls:
    """Fetch values by calling `get(feature, row)` once per value; an exception affects only that value."""

    get: Callable[[Feature, Any], Any]

    def fetch(self, feature: Feature, rows: NDArray[Any]) -> list[Any]:
        """Return the value, or the exception raised, for each row."""
        return [self._one(feature, row) for row in rows]

    def _one(self, feature: Feature, row: Any) -> Any:
        try:
            return self.get(feature, row)
        except Exception as error:
            return error


@dataclass(frozen=True, eq=False)
class Columns:
    """Fetch values from columns in memory, by feature; rows are positions in the columns."""

    columns: Mapping[Any, Any]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def check(self, features: Sequence[Feature], rows: NDArray[Any]) -> None:
        """Raise InvalidInputError if a feature has no column, or a row is not a valid position."""
        unknown = [feature for feature in features if feature not in self.columns]
        if unknown:
            raise InvalidInputError(
                f"The source has no column {quoted([str(f) for f in unknown])}, which the model uses. "
                "Add the missing columns to the source."
            )
        valid = (rows >= 0) & (rows < len(self)) if rows.dtype.kind in "iu" else np.zeros(len(rows), bool)
        if not valid.all():
            raise InvalidInputError(
                f"rows contains {rows[~valid].tolist()[0]!r}, but rows of a table in memory are positions from 0 to "
                f"{len(self) - 1}. Pass such positions; to identify rows by keys, pass a function or a database."
            )

    def fetch(self, feature: Feature, rows: NDArray[Any]) -> NDArray[Any]:
        """Return the values of a column at the given rows."""
        column = self.columns[feature]
        # An Arrow column.
        if hasattr(column, "to_numpy") and not hasattr(column, "iloc"):
            return np.asarray(column.take(np.asarray(rows)).to_numpy(zero_copy_only=False))
        if hasattr(column, "iloc"):
            return np.asarray(column.iloc[np.asarray(rows)])
        return np.asarray(column)[np.asarray(rows)]


@dataclass(frozen=True, eq=False)
class Sql:
    """Fetch values from a database table by DB-API queries: `SELECT key, column FROM table WHERE key IN (…)`.

    Attributes
    ----------
    connection : DB-API 2 connection
        For example of sqlite3, duckdb or psycopg.
    table, key : str
        The table name, optionally qualified by its schema, and the key column whose values identify `rows`.
    columns : dict of feature: column, optional
        The column name of each feature, if these differ.
    at_once : int
        Number of rows per statement. Old versions of SQLite accept at most 999.
    mark : str
        The parameter placeholder in a statement: "?", or "%s" for psycopg.
    """

    connection: Any
    table: str
    key: str = "id"
    columns: Mapping[Feature, str] | None = None
    at_once: int = 900
    mark: str = "?"

    def fetch(self, feature: Feature, rows: NDArray[Any]) -> list[Any]:
        """Return the values of a column; if a statement fails, all its rows get the exception."""
        column = self._column(feature)
        keys = np.asarray(rows).tolist()
        found: list[Any] = []
        for first in range(0, len(keys), self.at_once):
            chunk = keys[first : first + self.at_once]
            try:
                found += self._select(column, chunk)
            except Exception as error:
                found += [error] * len(chunk)
        return found

    def check(self, features: Sequence[Feature], rows: NDArray[Any]) -> None:
        """Raise InvalidInputError if the table has no column for a feature."""
        for feature in features:
            try:
                self._run(self._column(feature), "1 = 0", [])
            except Exception as error:
                raise InvalidInputError(
                    f"Cannot select feature {feature!r} from table {self.table} ({error}). Each feature the model uses "
                    "requires a column. Pass the column name of each feature as columns=."
                ) from error

    def _column(self, feature: Feature) -> str:
        return str(feature) if self.columns is None else self.columns[feature]

    def _select(self, column: str, keys: list[Any]) -> list[Any]:
        marks = ", ".join([self.mark] * len(keys))
        pairs = self._run(column, f"source_table.{_quoted(self.key)} IN ({marks})", keys)
        values = dict(pairs)
        if len(values) < len(pairs):
            raise LookupError(
                f"Several rows of table {self.table} have the same {self.key}, but keys must be unique. "
                "Remove the duplicates or use another key"
            )
        return [
            values[key] if key in values else LookupError(f"Table {self.table} has no row with {self.key} {key!r}")
            for key in keys
        ]

    def _run(self, column: str, where: str, keys: list[Any]) -> list[tuple[Any, Any]]:
        """Return pairs of key and value.

        Column names are qualified by the table alias: SQLite would read an unknown quoted name as a string literal.
        """
        table = ".".join(_quoted(part) for part in self.table.split("."))
        cursor = self.connection.cursor()
        try:
            names = f"source_table.{_quoted(self.key)}, source_table.{_quoted(column)}"
            cursor.execute(f"SELECT {names} FROM {table} AS source_table WHERE {where}", keys)
            pairs: list[tuple[Any, Any]] = cursor.fetchall()
            return pairs
        finally:
            cursor.close()


def as_source(source: Any, features: Sequence[Feature] = ()) -> FeatureSource:
    """Convert an object to a FeatureSource.

    A FeatureSource is returned unchanged. A DataFrame, an Arrow table, a matrix or a mapping of columns becomes
    `Columns`. A function of a feature and a row becomes `Calls`. `features` are the column names of a matrix.

    Raises
    ------
    TypeError
        If the object has none of these types.
    """
    if isinstance(source, FeatureSource) and not isinstance(source, type):
        return source
    if isinstance(source, Mapping):
        return Columns(source)
    if hasattr(source, "iloc") and hasattr(source, "columns"):
        return Columns(_TableColumns([str(name) for name in source.columns], lambda k: source.iloc[:, k]))
    if hasattr(source, "column_names"):
        return Columns(_TableColumns(list(source.column_names), source.column))
    if isinstance(source, np.ndarray) and source.ndim == 2:
        return Columns(_TableColumns(list(features or range(source.shape[1])), lambda k: source[:, k]))
    if callable(source) and not _is_async(source):
        return Calls(source)
    raise TypeError(
        f"Cannot fetch features from an object of type {type(source).__name__}. Pass a table, a dict of columns, a "
        "function get(feature, row), or an object with a method fetch(feature, rows)."
    )


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function)


class _TableColumns(Mapping[Any, Any]):
    """Map names and numbers to the columns of a table."""

    def __init__(self, names: Sequence[Feature], column: Callable[[int], Any]) -> None:
        self.position: dict[Feature, int] = {k: k for k in range(len(names))}
        self.position.update({name: k for k, name in enumerate(names)})
        self.column = column

    def __getitem__(self, feature: Any) -> Any:
        return self.column(self.position[feature])

    def __iter__(self) -> Iterator[Any]:
        return iter(self.position)

    def __len__(self) -> int:
        return len(self.position)


def _quoted(name: str) -> str:
    """Return a quoted SQL identifier; quotes inside the name are doubled."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def row_names(source: FeatureSource, rows: Any) -> NDArray[Any]:
    """Return the row identifiers to pass to the source, (n_rows,); by default all positions of a source with a length.

    Raises
    ------
    InvalidInputError
        If there are no rows, or none are given and the source has no length.
    """
    if rows is None and not hasattr(source, "__len__"):
        raise InvalidInputError(
            f"The source has type {type(source).__name__}, which has no length, so its rows are not known. "
            "Pass the row identifiers as rows=."
        )
    if rows is None:
        rows = range(len(source))  # type: ignore[arg-type]
    if not len(rows):
        raise InvalidInputError("rows is empty, so there are no rows to predict. Pass at least one row.")
    if isinstance(rows, range) or hasattr(rows, "dtype"):
        return np.asarray(rows)
    names = np.empty(len(rows), object)
    for k, name in enumerate(rows):
        names[k] = name
    return names.astype(np.int64) if all(isinstance(name, Integral) for name in names) else names
