"""Read Parquet files, whole or in batches."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur._util.text import quoted
from secateur.data.batches import Batches, rows_per_part
from secateur.data.column_names import check_names
from secateur.errors import DamagedFileError, InvalidInputError
from secateur.files.size_limits import check_unpacked


def read_parquet(file: Path, text: Sequence[str] = ()) -> dict[str, NDArray[Any]]:
    """Return all columns: float64 for numbers, else strings (dtype object); columns in `text` always as strings.

    Raises
    ------
    DamagedFileError
        If the file is damaged.
    ImportError
        If pyarrow is not installed.
    """
    with _opened(file) as opened:
        names = opened.schema_arrow.names
        check_names(names, file)
        check_unpacked(
            opened.metadata.num_rows * len(names) * 8, file, "Read it in batches, with secateur.read_batches."
        )
        table = opened.read()
    return {name: (_names if name in text else _from_arrow)(table.column(name)) for name in names}


def read_batches(
    file: str | PathLike[str], target: str | None, features: Sequence[str] | None = None
) -> tuple[Batches, NDArray[Any] | None]:
    """Return the rows of a .parquet file, which are read in batches when needed, and its target.

    Parameters
    ----------
    file : str or path
    target : str or None
        The column of y; None for no y.
    features : sequence of str, optional
        The columns of X in the model's order; by default all but the target, in file order. They must be numeric.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    DamagedFileError
        If the file is damaged.
    InvalidInputError
        If a column is missing, or a feature is not numeric.
    ImportError
        If pyarrow is not installed.

    Examples
    --------
    Rows are read when a solver needs them, one batch at a time::

        X, y = secateur.read_batches("rows.parquet", target="price")
        small = secateur.prune(model, X, y, max_nodes=500)
    """
    if not Path(file).is_file():
        raise FileNotFoundError(f"There is no file {file}; a data file is needed. Check the name.")
    with _opened(Path(file)) as opened:
        names = _columns(opened.schema_arrow, target, features, str(file))
        n_rows = opened.metadata.num_rows
        y = None if target is None else _from_arrow(opened.read([target]).column(target))

    def parts() -> Iterator[NDArray[np.float64]]:
        with _opened(Path(file)) as opened:
            for batch in opened.iter_batches(rows_per_part(len(names)), columns=names):
                yield np.column_stack([_from_arrow(batch.column(name)) for name in names])

    return Batches((n_rows, len(names)), parts), y


def _columns(schema: Any, target: str | None, features: Sequence[str] | None, file: str) -> list[str]:
    """Return the names of the features; raise InvalidInputError if one is missing or not numeric."""
    names = list(features) if features is not None else [name for name in schema.names if name != target]
    missing = [name for name in (*names, target) if name is not None and name not in schema.names]
    if missing:
        raise InvalidInputError(
            f"{file} has no column {quoted(missing)}; it has {quoted(schema.names)}. Check the names, or the file."
        )
    text = [name for name in names if not _holds_numbers(schema.field(name).type)]
    if text:
        raise InvalidInputError(
            f"The columns {quoted(text)} of {file} are not numeric, but rows read in batches must be. Encode them as "
            "for training, or read the whole file into memory."
        )
    return names


@contextmanager
def _opened(file: Path) -> Iterator[Any]:
    """Open a file; convert errors of pyarrow to DamagedFileError."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            "A .parquet file needs pyarrow, which is not installed. Run: pip install 'secateur[parquet]'; "
            "or save the data as .csv."
        ) from error
    try:
        # With pre_buffer, pyarrow would hold the whole file in memory until it is closed.
        with pyarrow.parquet.ParquetFile(file, read_dictionary=_texts(file), pre_buffer=False) as opened:
            yield opened
    except (pyarrow.ArrowException, OSError, UnicodeError) as error:
        raise DamagedFileError(
            f"{file} cannot be read as parquet ({error}); it is damaged or has another format. Save the data again."
        ) from error


def _texts(file: Path) -> list[str]:
    """Return the text columns, which are read as dictionaries so that repeated values are stored once."""
    import pyarrow.parquet
    import pyarrow.types as kinds

    schema = pyarrow.parquet.read_schema(file)
    return [field.name for field in schema if kinds.is_string(field.type) or kinds.is_large_string(field.type)]


def _holds_numbers(kind: Any) -> bool:
    import pyarrow.types as kinds

    return kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind)


def _from_arrow(column: Any) -> NDArray[Any]:
    """Return a column as numbers or text."""
    if _holds_numbers(column.type):
        numbers: NDArray[np.float64] = column.cast("float64", safe=False).to_numpy(zero_copy_only=False)
        return numbers
    import pyarrow.types as kinds

    parts = column.chunks if hasattr(column, "chunks") else [column]
    if not kinds.is_dictionary(column.type):
        texts = ["" if value is None else str(value) for part in parts for value in part.to_pylist()]
        return _as_objects(texts)
    return np.concatenate([np.empty(0, object), *(_from_dictionary(part) for part in parts)])


def _names(column: Any) -> NDArray[Any]:
    """Return a column of names; integers that a missing value has turned into floats become integers again."""
    if not _holds_numbers(column.type):
        return _from_arrow(column)
    values = [None if value is None or value != value else value for value in column.to_pylist()]
    return _as_objects(["" if value is None else as_text(value) for value in values])


def as_text(value: Any) -> str:
    """Return the text of a value; that of an integer for a float that is one."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _from_dictionary(part: Any) -> NDArray[Any]:
    """Return texts; equal ones share one object."""
    texts = _as_objects([*("" if value is None else str(value) for value in part.dictionary.to_pylist()), ""])
    found: NDArray[Any] = texts[part.indices.fill_null(0).to_numpy(zero_copy_only=False)]
    found[part.indices.is_null().to_numpy(zero_copy_only=False)] = ""
    return found


def _as_objects(texts: list[str]) -> NDArray[Any]:
    array = np.empty(len(texts), object)
    array[:] = texts
    return array
