"""Read .csv and .csv.gz files: with pyarrow if it is installed, else with the csv module; both give the same values.

A column is numeric if every cell is a number or missing. Other columns keep the text of their cells.
"""

import csv
import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from secateur.data.column_names import check_names
from secateur.errors import DamagedFileError
from secateur.files.size_limits import check_gzip

MISSING = frozenset(
    [
        *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A"),
        *("NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
    ]
)
"""Texts that pandas.read_csv treats as missing, so that rows are read as they were for training."""

# pandas does not treat "?" as missing, but among numbers it can mean nothing else.
_MISSING_AMONG_NUMBERS = MISSING | {"?"}
_BLANKS = " \t"
_DELIMITERS = (",", ";", "\t")
# The characters of numbers, infinity, NaN and surrounding blanks.
_NUMBER_CHARACTERS = b"0123456789+-.eE \tinfatyINFATY"
_CHUNK_ROWS = 20_000
_GUESSED_ROWS = 100
# A quoted field that is not closed, or continues after its closing quote: pyarrow reads it, the csv module refuses it.
_MALFORMED_QUOTES = {
    delimiter: re.compile(
        rb'(?<![^%b\r\n\xbf])"[^"]*+(?:""[^"]*+)*+(?!"(?:[%b\r\n]|\Z))' % (delimiter.encode(), delimiter.encode())
    )
    for delimiter in _DELIMITERS
}


def read_csv(file: Path, text: Sequence[str] = ()) -> dict[str, NDArray[Any]]:
    """Return all columns: float64 for numbers, else strings (dtype object); columns in `text` always as strings.

    If the first line has no comma outside quotes, but semicolons or tabs, these are the delimiters.

    Raises
    ------
    DamagedFileError
        If the file is damaged or empty, a row has too few or too many fields, or a column name is repeated.
    """
    try:
        if _is_gzip(file):
            check_gzip(file, "If you trust its origin, unpack it with gunzip and pass the .csv.")
        delimiter, names = read_header(file)
        check_names(names, file)
        columns = _read_with_pyarrow(file, names, text, delimiter)
        return columns if columns is not None else _read_plain(file, names, text, delimiter)
    except (csv.Error, UnicodeDecodeError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DamagedFileError(
            f"{file} cannot be read as comma-separated text ({error}); it is damaged or has another format. "
            "Save it again as UTF-8 text, with commas, semicolons or tabs as delimiters."
        ) from error


def read_header(file: Path) -> tuple[str, list[str]]:
    """Return the delimiter, and the names in the first line."""
    found: dict[str, list[str]] = {}
    errors: list[csv.Error] = []
    for delimiter in _DELIMITERS:
        with _opened(file) as stream:
            try:
                found[delimiter] = next(csv.reader(stream, strict=True, delimiter=delimiter), [])
            except csv.Error as error:
                errors.append(error)
        # With a comma, other delimiters are characters of names.
        if len(found.get(",", ())) > 1:
            break
    if not found:
        raise errors[0]
    delimiter = max(found, key=lambda one: len(found[one]))
    return delimiter, found[delimiter]


def is_number(text: str) -> bool:
    """Return whether a text is a number in the sense of this module."""
    return _numbers([text]) is not None


def _is_gzip(file: Path) -> bool:
    return file.suffix.lower() == ".gz"


def _opened(file: Path) -> TextIO:
    opened: Any = gzip.open if _is_gzip(file) else open
    stream: TextIO = opened(file, "rt", encoding="utf-8-sig", newline="")
    return stream


def _read_with_pyarrow(
    file: Path, names: list[str], text: Sequence[str], delimiter: str
) -> dict[str, NDArray[Any]] | None:
    """Return the columns; None if pyarrow is not installed, or may not read this file as the csv module does."""
    try:
        import pyarrow.csv  # noqa: F401
    except ImportError:
        return None
    with gzip.open(file) if _is_gzip(file) else file.open("rb") as stream:
        content = stream.read()
    if b'"' in content and _MALFORMED_QUOTES[delimiter].search(content):
        return None
    table = _arrow_table(content, dict(_guess(file, names, text, delimiter)), delimiter)
    if table is None or table.column_names != names:
        return None
    found = {name: table.column(name).to_numpy() for name in names}
    if any(_has_other_nan(column, table.column(name).null_count) for name, column in found.items()):
        return None
    return {n: c if c.dtype != object or n in text else _numbers_or_text(c.tolist()) for n, c in found.items()}


def _guess(file: Path, names: list[str], text: Sequence[str], delimiter: str) -> Iterator[tuple[str, bool]]:
    """Yield each name and whether the column has numbers in the first rows."""
    with _opened(file) as stream:
        rows = list(islice(_rows(stream, file, delimiter), _GUESSED_ROWS))
    for name, cells in zip(names, zip(*rows, strict=True), strict=False):
        yield name, name not in text and _numbers_or_text(cells).dtype != object


def _arrow_table(content: bytes, numeric: dict[str, bool], delimiter: str) -> Any:
    """Return the parsed table; None if pyarrow refuses it, or a column that should be numeric is not."""
    import pyarrow
    import pyarrow.csv as arrow_csv

    kinds = {name: pyarrow.float64() if is_numeric else pyarrow.string() for name, is_numeric in numeric.items()}
    try:
        return arrow_csv.read_csv(
            pyarrow.BufferReader(content),
            arrow_csv.ReadOptions(use_threads=False),
            arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            arrow_csv.ConvertOptions(column_types=kinds, null_values=sorted(_MISSING_AMONG_NUMBERS)),
        )
    except pyarrow.ArrowException:
        return None


def _has_other_nan(column: NDArray[Any], n_missing: int) -> bool:
    """Return whether a column has NaN besides the missing values: pyarrow also takes nan(1) for a number."""
    return column.dtype != object and bool(np.isnan(column).sum() != n_missing)


def _read_plain(file: Path, names: list[str], text: Sequence[str], delimiter: str) -> dict[str, NDArray[Any]]:
    """Return the columns; numbers are converted in chunks, which takes far less memory than their texts."""
    chunks: dict[str, list[NDArray[Any]]] = {name: [] for name in names}
    with _opened(file) as stream:
        rows = _rows(stream, file, delimiter)
        while chunk := list(islice(rows, _CHUNK_ROWS)):
            for name, cells in zip(names, zip(*chunk, strict=True), strict=True):
                chunks[name].append(_as_objects(cells) if name in text else _numbers_or_text(cells))
    mixed = [name for name, parts in chunks.items() if len({part.dtype for part in parts}) > 1]
    if mixed:
        return _read_plain(file, names, (*text, *mixed), delimiter)
    return {name: np.concatenate(parts) if parts else np.empty(0) for name, parts in chunks.items()}


def _rows(stream: TextIO, file: Path, delimiter: str) -> Iterator[list[str]]:
    """Yield the rows without blank lines; raise DamagedFileError if one does not have as many fields as the first."""
    reader = csv.reader(stream, strict=True, delimiter=delimiter)
    n_columns = len(next(reader))
    for row in reader:
        if row and len(row) != n_columns:
            raise DamagedFileError(
                f"Line {reader.line_num} of {file} has {len(row)} fields, but the first line names {n_columns} "
                f"columns. Correct that line; fields that contain the delimiter, here {delimiter!r}, need quotes."
            )
        if row:
            yield row


def _numbers_or_text(cells: Sequence[str]) -> NDArray[Any]:
    """Return float64 if every cell is a number or missing, else the cells unchanged."""
    numbers = _numbers(cells)
    if numbers is None:
        numbers = _numbers(["nan" if cell.strip(_BLANKS) in _MISSING_AMONG_NUMBERS else cell for cell in cells])
    return _as_objects(cells) if numbers is None else numbers


def _numbers(cells: Sequence[str]) -> NDArray[np.float64] | None:
    """Return texts as numbers, None if one is not a number.

    Python's float also accepts 1_000 and digits of other scripts; these are not numbers here.
    """
    if "".join(cells).encode("utf-8", "surrogatepass").translate(None, _NUMBER_CHARACTERS):
        return None
    try:
        return _as_objects(cells).astype(np.float64)
    except ValueError:
        return None


def _as_objects(cells: Sequence[str]) -> NDArray[Any]:
    return np.array(cells, dtype=object)
