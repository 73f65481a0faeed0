"""Where features come from: a function, columns in memory, or a database, all asked for one column of many rows."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from secateur._util.text import quoted
from secateur.serving.results import Feature


@runtime_checkable
class FeatureSource(Protocol):
    """Anything that can be asked for one feature of some rows."""

    def fetch(self, feature: Feature, rows: NDArray[Any]) -> Any:
        """Return a value for each of the rows, in their order.

        None and NaN are missing values. An exception in the place of a value says that this one could not be had; one
        that is raised, that none of these rows' could. `rows` are what the caller of `predict` named them by.
        """


@dataclass(frozen=True)
class Calls:
    """A function `get(feature, row)`, called for one value at a time; what it raises is that value's error."""

    get: Callable[[Feature, Any], Any]

    def fetch(self, feature: Feature, rows: NDArray[Any]) -> list[Any]:
        """Return what the function gives for each row."""
        return [self._one(feature, row) for row in rows]

    def _one(self, feature: Feature, row: Any) -> Any:
        try:
            return self.get(feature, row)
        except Exception as error:
            return error


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns in memory, by feature; rows are places in them."""

    columns: Mapping[Any, Any]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def check(self, features: Sequence[Feature], rows: NDArray[Any]) -> None:
        """Raise ValueError if there is no column for one of the features, or one of the rows is no place in them."""
        unknown = [feature for feature in features if feature not in self.columns]
        if unknown:
            raise ValueError(
                f"The source has no column {quoted([str(f) for f in unknown])}, which the model looks at. Give it one."
            )
        known = (rows >= 0) & (rows < len(self)) if rows.dtype.kind in "iu" else np.zeros(len(rows), bool)
        if not known.all():
            raise ValueError(
                f"rows must be places from 0 to {len(self) - 1}, as the source is a table in memory; one is "
                f"{rows[~known].tolist()[0]!r}. To name rows by keys, pass a function or a database."
            )

    def fetch(self, feature: Feature, rows: NDArray[Any]) -> NDArray[Any]:
        """Return the entries of a column."""
        column = self.columns[feature]
        if hasattr(column, "to_numpy") and not hasattr(column, "iloc"):  # Arrow
            return np.asarray(column.take(np.asarray(rows)).to_numpy(zero_copy_only=False))
        if hasattr(column, "iloc"):
            return np.asarray(column.iloc[np.asarray(rows)])
        return np.asarray(column)[np.asarray(rows)]


@dataclass(frozen=True, eq=False)
class Sql:
    """A table of a database, asked through a DB-API connection: `SELECT key, column FROM table WHERE key IN (…)`.

    Attributes
    ----------
    connection : DB-API 2 connection
        Such as those of sqlite3, duckdb or psycopg.
    table, key : str
        The table, perhaps with its schema before a dot, and the column by which `rows` name its rows.
    columns : dict of feature: column, optional
        Where the columns of the table have other names than the features.
    at_once : int
        How many rows one statement asks for. Old versions of SQLite take at most 999.
    mark : str
        What stands for a value in a statement: "?" or, as for psycopg, "%s".
    """

    connection: Any
    table: str
    key: str = "id"
    columns: Mapping[Feature, str] | None = None
    at_once: int = 900
    mark: str = "?"

    def fetch(self, feature: Feature, rows: NDArray[Any]) -> list[Any]:
        """Return the entries of a column; a statement that fails is the error of the rows it asks for."""
        column = self._column(feature)
        keys = np.asarray(rows).tolist()
        found: list[Any] = []
        for first in range(0, len(keys), self.at_once):
            some = keys[first : first + self.at_once]
            try:
                found += self._select(column, some)
            except Exception as error:
                found += [error] * len(some)
        return found

    def check(self, features: Sequence[Feature], rows: NDArray[Any]) -> None:
        """Raise ValueError if the table has no column for one of the features."""
        for feature in features:
            try:
                self._run(self._column(feature), "1 = 0", [])
            except Exception as error:
                raise ValueError(
                    f"{self.table} cannot be asked for {feature!r} ({error}). Name its column with columns=."
                ) from error

    def _column(self, feature: Feature) -> str:
        return str(feature) if self.columns is None else self.columns[feature]

    def _select(self, column: str, keys: list[Any]) -> list[Any]:
        marks = ", ".join([self.mark] * len(keys))
        pairs = self._run(column, f"asked.{_quoted(self.key)} IN ({marks})", keys)
        values = dict(pairs)
        if len(values) < len(pairs):
            raise LookupError(f"Several rows of {self.table} have the same {self.key}; a key must name one. Mend it.")
        return [
            values[key] if key in values else LookupError(f"{self.table} has no row with {self.key} {key!r}")
            for key in keys
        ]

    def _run(self, column: str, where: str, keys: list[Any]) -> list[tuple[Any, Any]]:
        """Return pairs of key and value; names are qualified, as SQLite takes unknown ones in quotes for texts."""
        table = ".".join(_quoted(part) for part in self.table.split("."))
        cursor = self.connection.cursor()
        try:
            names = f"asked.{_quoted(self.key)}, asked.{_quoted(column)}"
            cursor.execute(f"SELECT {names} FROM {table} AS asked WHERE {where}", keys)
            pairs: list[tuple[Any, Any]] = cursor.fetchall()
            return pairs
        finally:
            cursor.close()


def as_source(source: Any, features: Sequence[Feature] = ()) -> FeatureSource:
    """Return anything that gives features as a FeatureSource.

    A FeatureSource passes through. A DataFrame, an Arrow table, a matrix or a mapping of columns becomes `Columns`,
    a function of a feature and a row `Calls`. `features` are the names of the columns of a matrix.

    Raises
    ------
    TypeError
        If it is none of these.
    """
    if isinstance(source, FeatureSource) and not isinstance(source, type):
        return source
    if isinstance(source, Mapping):
        return Columns(source)
    if hasattr(source, "iloc") and hasattr(source, "columns"):
        return Columns(_Named([str(name) for name in source.columns], lambda k: source.iloc[:, k]))
    if hasattr(source, "column_names"):
        return Columns(_Named(list(source.column_names), source.column))
    if isinstance(source, np.ndarray) and source.ndim == 2:
        return Columns(_Named(list(features or range(source.shape[1])), lambda k: source[:, k]))
    if callable(source) and not _awaits(source):
        return Calls(source)
    raise TypeError(
        f"Features cannot be fetched from a {type(source).__name__}; needed is a table, a dict of columns, a function "
        "get(feature, row), or an object with fetch(feature, rows). Pass one of these."
    )


def _awaits(function: Any) -> bool:
    return inspect.iscoroutinefunction(function)


class _Named(Mapping[Any, Any]):
    """The columns of a table, by name and by number."""

    def __init__(self, names: Sequence[Feature], column: Callable[[int], Any]) -> None:
        self.place: dict[Feature, int] = {k: k for k in range(len(names))}
        self.place.update({name: k for k, name in enumerate(names)})
        self.column = column

    def __getitem__(self, feature: Any) -> Any:
        return self.column(self.place[feature])

    def __iter__(self) -> Iterator[Any]:
        return iter(self.place)

    def __len__(self) -> int:
        return len(self.place)


def _quoted(name: str) -> str:
    """Return a name as SQL wants it, whatever is in it."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def row_names(source: FeatureSource, rows: Any) -> NDArray[Any]:
    """Return what the source knows the rows by, (n_rows,); all it has, if it can count them and none are named.

    Raises
    ------
    ValueError
        If there are none, or nobody knows which.
    """
    if rows is None and not hasattr(source, "__len__"):
        raise ValueError(f"A {type(source).__name__} does not say which rows it has. Pass rows=, their names to it.")
    if rows is None:
        rows = range(len(source))  # type: ignore[arg-type]
    if not len(rows):
        raise ValueError("There are no rows to predict. Pass at least one.")
    if isinstance(rows, range) or hasattr(rows, "dtype"):
        return np.asarray(rows)
    names = np.empty(len(rows), object)
    for k, name in enumerate(rows):
        names[k] = name
    return names.astype(np.int64) if all(isinstance(name, Integral) for name in names) else names
