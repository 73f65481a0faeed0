"""Select the feature, label and weight columns of a Spark DataFrame, and convert Arrow tables to arrays."""

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from secateur.errors import InvalidInputError

Matrix = NDArray[np.floating]


class MissingValuesError(ValueError):
    """Raised on an executor when a required column has nulls; the driver then counts them on the cluster."""

    def __init__(self, column: str) -> None:
        super().__init__(column)
        self.column = column


@dataclass(frozen=True)
class FrameColumns:
    """Roles of the columns of a DataFrame.

    Attributes
    ----------
    features : str or tuple of str
        A column of vectors or arrays; or plain columns of any type, passed to the model as a pandas DataFrame.
    label : str or None
        The target, or an array of targets; None for unsupervised models.
    weight : str or None
        The row weights; None for equal weights.
    """

    features: str | tuple[str, ...]
    label: str | None = None
    weight: str | None = None

    @property
    def names(self) -> list[str]:
        """The needed columns without duplicates."""
        features = (self.features,) if isinstance(self.features, str) else self.features
        return list(dict.fromkeys(name for name in (*features, self.label, self.weight) if name is not None))

    def place(self, name: str) -> str:
        """Return the name of a column on the cluster (c0, c1, …), which is free of special characters."""
        return f"c{self.names.index(name)}"


def select(frame: Any, columns: FrameColumns) -> Any:
    """Return a DataFrame with the needed columns, renamed to c0, c1, … and cast to types Arrow supports.

    Vectors become arrays, decimals become doubles.

    Raises
    ------
    ValueError
        If a column does not exist, is ambiguous, or has an unsuitable type.
    """
    if not columns.names or not columns.features:
        raise InvalidInputError(
            "No feature column is given, but the model needs its features. Pass their columns as features."
        )
    types = {name: _type_of(frame, name) for name in columns.names}
    if isinstance(columns.features, str):
        _check_array(columns.features, types[columns.features], "features")
    if columns.label is not None and types[columns.label].startswith("array<"):
        _check_array(columns.label, types[columns.label], "labels")
    if columns.weight is not None and not _is_number(types[columns.weight]):
        raise InvalidInputError(
            f"The weight column {columns.weight!r} has type {types[columns.weight]}, but weights must be numbers. "
            "Pass a numeric column."
        )
    return frame.select(*[carried(frame, name).alias(columns.place(name)) for name in columns.names])


def _type_of(frame: Any, name: str) -> str:
    """Return Spark's name of the type of a column; raise ValueError unless exactly one column has this name."""
    found = [field.dataType.simpleString() for field in frame.schema.fields if field.name == name]
    if len(found) == 1:
        return str(found[0])
    if found:
        raise InvalidInputError(
            f"The DataFrame has {len(found)} columns named {name!r}, but names must be unique. Rename one of them."
        )
    close = get_close_matches(name, frame.columns, 1)
    there = ", ".join(frame.columns[:20]) + (", …" if len(frame.columns) > 20 else "")
    advice = f"Did you mean {close[0]!r}?" if close else "Pass one of these."
    raise InvalidInputError(f"There is no column {name!r}; the DataFrame has {there}. {advice}")


def _is_number(kind: str) -> bool:
    return kind.startswith("decimal") or kind in (
        *("tinyint", "smallint", "int", "bigint", "float", "double", "boolean"),
    )


def _check_array(name: str, kind: str, what: str) -> None:
    """Raise ValueError unless a column holds vectors, arrays of numbers or numbers."""
    inner = kind.removeprefix("array<").removesuffix(">")
    if kind != "vector" and not _is_number(inner):
        raise InvalidInputError(
            f"The column {name!r} has type {kind}, but a single column of {what} must have vectors, arrays of "
            "numbers or numbers. Assemble the columns, or pass a list of columns."
        )


def carried(frame: Any, name: str) -> Any:
    """Return a column cast to a type Arrow supports."""
    from pyspark.ml.functions import vector_to_array
    from pyspark.sql import functions as F  # noqa: N812

    kind, found = _type_of(frame, name), F.col("`" + name.replace("`", "``") + "`")
    if kind == "vector":
        return vector_to_array(found)
    if kind.startswith("decimal"):
        return found.cast("double")
    return found.cast("array<double>") if kind.startswith("array<decimal") else found


def read_features(table: pa.Table, columns: FrameColumns) -> Any:
    """Return the features of a table: a matrix from vectors or arrays, a pandas DataFrame from plain columns."""
    if isinstance(columns.features, str):
        found = table.column(columns.features)
        if _is_list(found):
            return _matrix(found, columns.features)
        return table.select([columns.features]).to_pandas()
    return table.select(list(columns.features)).to_pandas()


def read_label(table: pa.Table, columns: FrameColumns) -> NDArray[Any] | None:
    """Return the labels of a table without encoding, None if there is no label column."""
    if columns.label is None:
        return None
    found = table.column(columns.label)
    if found.null_count:
        raise MissingValuesError(columns.label)
    if _is_list(found):
        return _matrix(found, columns.label)
    labels: NDArray[Any] = found.to_numpy()
    return labels


def read_weight(table: pa.Table, columns: FrameColumns) -> NDArray[np.float64]:
    """Return the validated weights of a table; ones without a weight column.

    The weights of one table may all be zero: only the total over all partitions must be positive.
    """
    if columns.weight is None:
        return np.ones(table.num_rows)
    found = table.column(columns.weight)
    if found.null_count:
        raise MissingValuesError(columns.weight)
    weight = found.to_numpy().astype(np.float64)
    wrong = ~np.isfinite(weight) | (weight < 0)
    if wrong.any():
        raise InvalidInputError(
            f"The weight column {columns.weight!r} contains {weight[wrong][0]:g}, but weights must be finite and not "
            "negative. Fix or drop those rows."
        )
    return weight


def _is_list(found: pa.ChunkedArray) -> bool:
    return bool(pa.types.is_list(found.type) or pa.types.is_large_list(found.type))


def _matrix(found: pa.ChunkedArray, name: str) -> Matrix:
    """Return a column of lists as a matrix; nulls inside a list become NaN."""
    if found.null_count:
        raise MissingValuesError(name)
    lists = found.combine_chunks()
    lists = lists if isinstance(lists, pa.Array) else pa.concat_arrays(lists.chunks)
    size = np.diff(lists.offsets.to_numpy())
    if (size != size[0]).any():
        raise InvalidInputError(
            f"The entries of column {name!r} have {size.min()} to {size.max()} numbers, but all rows must have "
            "the same number. Fix or drop the rows that differ."
        )
    flat: NDArray[Any] = lists.flatten().to_numpy(zero_copy_only=False)
    # Booleans with nulls arrive as objects.
    if flat.dtype == object:
        flat = flat.astype(np.float64)
    return flat.reshape(len(lists), int(size[0]))
