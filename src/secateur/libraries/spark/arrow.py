"""Convert Arrow columns to numpy arrays and back; raise DamagedFileError for a column of the wrong type."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from secateur._util.text import quoted
from secateur.libraries.spark.saved_model import damaged

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def node_columns(table: pa.Table) -> dict[str, pa.Array]:
    """Return the columns of a node table, including the fields of `nodeData`."""
    columns = {name: _combined(table.column(name)) for name in table.column_names}
    if "nodeData" in columns:
        columns.update(inside(columns, "nodeData"))
    return columns


def _combined(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    # pyarrow before 22 returns a ChunkedArray if there are no chunks or several.
    if isinstance(combined, pa.ChunkedArray):
        combined = pa.concat_arrays(combined.chunks) if combined.num_chunks else pa.array([], column.type)
    return combined


def inside(columns: dict[str, pa.Array], name: str) -> dict[str, pa.Array]:
    """Return the fields of a struct column as columns."""
    column = _column(columns, name)
    if not pa.types.is_struct(column.type):
        raise damaged(f"The column {name} has the type {column.type}, not a struct")
    return {field.name: part for field, part in zip(column.type, column.flatten(), strict=True)}


def _column(columns: dict[str, pa.Array], name: str) -> pa.Array:
    if name not in columns:
        raise damaged(f"The table has no column {name}; it has {quoted(list(columns))}")
    if columns[name].null_count:
        raise damaged(f"The column {name} has missing entries")
    return columns[name]


def numbers(columns: dict[str, pa.Array], name: str, dtype: Any) -> NDArray[Any]:
    """Return a numeric column as an array."""
    column = _column(columns, name)
    fits = pa.types.is_integer(column.type) or (dtype is np.float64 and pa.types.is_floating(column.type))
    if not fits:
        raise damaged(f"The column {name} has the type {column.type}, not {np.dtype(dtype).name}")
    return column.to_numpy(zero_copy_only=False).astype(dtype)


def lists(columns: dict[str, pa.Array], name: str) -> tuple[Floats, Ints]:
    """Return the concatenated numbers of a column of lists, and the offset of each list."""
    column = _column(columns, name)
    if not pa.types.is_list(column.type):
        raise damaged(f"The column {name} has the type {column.type}, not lists")
    entries = numbers({name: column.flatten()}, name, np.float64)
    offsets = column.offsets.to_numpy().astype(np.int64)
    return entries, offsets - offsets[0]


def arrow_array(content: Any, kind: pa.DataType) -> pa.Array:
    """Return an Arrow array from a matrix, from (numbers, length of each list), or from numbers."""
    if not pa.types.is_list(kind):
        return pa.array(content).cast(kind)
    if isinstance(content, np.ndarray):
        content = content.ravel(), np.full(len(content), content.shape[1])
    entries, length = content
    offsets = np.concatenate([[0], np.cumsum(length)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(entries).cast(kind.value_type), type=kind)
