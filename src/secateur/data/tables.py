"""Read named columns from .csv, .csv.gz or .parquet files, and convert them to X and y."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur._util.text import quoted
from secateur.data.csv_file import MISSING, read_csv
from secateur.data.parquet import as_text, read_parquet
from secateur.errors import DamagedFileError, InvalidInputError, UnsupportedFileError

_BOOLEANS = {"True": 1.0, "TRUE": 1.0, "true": 1.0, "False": 0.0, "FALSE": 0.0, "false": 0.0}


@dataclass(frozen=True, eq=False)
class Table:
    """Hold named columns of equal length.

    Attributes
    ----------
    columns : dict of (n_rows,) arrays
        float64 if every value is a number or missing, else strings (dtype object).
    name : str
        The file, for messages.
    """

    columns: dict[str, NDArray[Any]]
    name: str = "The table"

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def take(self, rows: NDArray[np.intp]) -> "Table":
        """Return the rows with these indices."""
        return Table({name: column[rows] for name, column in self.columns.items()}, self.name)

    def split(
        self,
        target: str | None,
        features: Sequence[str] | None = None,
        *,
        classes: Any = None,
        drop: Sequence[str] = (),
    ) -> tuple[Any, NDArray[Any] | None]:
        """Return (X, y) as a model needs them.

        Parameters
        ----------
        target : str or None
            The column of y; None for no y.
        features : sequence of str, optional
            The training column names: these columns are used, in this order. By default all columns but the target and
            those in `drop`, in file order.
        classes : array, optional
            The model's labels; if they are strings, y is returned as strings.
        drop : sequence of str
            Columns that are not features.

        Returns
        -------
        X : (n_rows, n_features) float64, or a pandas DataFrame if there are names to check or text columns
        y : (n_rows,) array of int, float or str, or None

        Raises
        ------
        InvalidInputError
            If a column is missing.
        ImportError
            If there are text columns and pandas is not installed.
        """
        y = None if target is None else _labels(self.column(target), classes)
        names = list(features) if features is not None else [n for n in self.columns if n not in (target, *drop)]
        if not names:
            raise InvalidInputError(
                f"{self.name} has no column besides the target, but features are needed. Check the file."
            )
        columns = {name: _as_feature(column) for name, column in zip(names, self._pick(names), strict=True)}
        return _matrix_or_frame(columns, named=features is not None), y

    def column(self, name: str) -> NDArray[Any]:
        """Return one column."""
        return self._pick([name])[0]

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Return one column; raise InvalidInputError if it is not numeric."""
        column = self.column(name)
        if column.dtype == object:
            raise InvalidInputError(
                f"The column {name!r} of {self.name} contains text such as {column[0]!r}, but numbers are needed. "
                "Choose another column."
            )
        return column

    def _pick(self, names: Sequence[str]) -> list[NDArray[Any]]:
        missing = [name for name in names if name not in self.columns]
        if missing:
            available = get_close_matches(missing[0], self.columns) or list(self.columns)
            raise InvalidInputError(
                f"{self.name} has no column {quoted(missing)}; it has {quoted(available)}. Check the names, or the "
                "file."
            )
        return [self.columns[name] for name in names]


def read_table(file: str | PathLike[str], *, text: Sequence[str] = ()) -> Table:
    """Read a .csv, .csv.gz or .parquet file; the first line of a csv names the columns.

    The columns in `text`, if present, are returned as text even if all their values look like numbers.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    UnsupportedFileError
        If the suffix is unknown.
    DamagedFileError
        If the file is empty or damaged.
    ImportError
        If it is a .parquet file and pyarrow is not installed.
    """
    source = Path(file)
    reader = next((reader for suffix, reader in READERS.items() if source.name.lower().endswith(suffix)), None)
    if reader is None:
        raise UnsupportedFileError(
            f"{source} has an unknown suffix; a data file ends in {', '.join(READERS)}. Use one of these."
        )
    if not source.is_file():
        raise FileNotFoundError(f"There is no file {source}; a data file is needed. Check the name.")
    columns = reader(source, text)
    if not columns or not len(next(iter(columns.values()))):
        raise DamagedFileError(
            f"{source} has no rows, but a data file needs a line of column names and rows of data. Check the file."
        )
    return Table(columns, str(source))


READERS: dict[str, Callable[[Path, Sequence[str]], dict[str, NDArray[Any]]]] = {
    ".csv": read_csv,
    ".csv.gz": read_csv,
    ".parquet": read_parquet,
}
"""The reader of each suffix of a data file."""


def _as_feature(column: NDArray[Any]) -> NDArray[Any]:
    """Return numbers and booleans as float64, and text with NaN for missing values."""
    if column.dtype != object:
        return column
    texts = set(column.tolist())
    if texts <= _BOOLEANS.keys():
        return np.array([_BOOLEANS[text] for text in column.tolist()])
    return np.array([np.nan if text in MISSING else text for text in column.tolist()], dtype=object)


def _matrix_or_frame(columns: dict[str, NDArray[Any]], *, named: bool) -> Any:
    text = [name for name, column in columns.items() if column.dtype == object]
    if not text and not named:
        return np.column_stack(list(columns.values()))
    try:
        import pandas
    except ImportError as error:
        if text:
            raise ImportError(
                f"The columns {quoted(text)} contain text, which needs pandas, but pandas is not installed. "
                "Run: pip install 'secateur[pandas]'."
            ) from error
        return np.column_stack(list(columns.values()))
    return pandas.DataFrame(columns)


def _labels(column: NDArray[Any], classes: Any) -> NDArray[Any]:
    """Return a target in the type of the model's labels.

    Text if the model's labels are text; otherwise integers as int, booleans as bool, and anything else unchanged.
    """
    if classes is not None and all(isinstance(label, str) for label in np.ravel(np.asarray(classes, object))):
        return np.array([as_text(value) for value in column.tolist()], dtype=object)
    if column.dtype == object:
        known = set(column.tolist()) <= _BOOLEANS.keys()
        return np.array([_BOOLEANS[text] == 1.0 for text in column.tolist()]) if known else column
    integers = np.isfinite(column).all() and (column == np.round(column)).all() and (np.abs(column) < 2**53).all()
    return column.astype(np.int64) if integers else column
