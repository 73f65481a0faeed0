"""Encode rows as LightGBM does: its precision, and categorical table columns as codes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.errors import InvalidInputError
from secateur.libraries.adapter import check_feature_names
from secateur.libraries.numeric_columns import as_numbers, column_as_numbers

ZERO = float(np.float32(1e-35))
"""The largest absolute value LightGBM treats as 0."""


def encode(X: Any, categories: list[list[Any]] | None, names: tuple[str, ...] | None) -> Any:
    """Return X as numbers; values within `ZERO` of 0 become 0, as LightGBM drops them when it reads a row.

    Parameters
    ----------
    X : matrix or table
        Anything but a table or a float64 matrix is cast to float32 first, as LightGBM does.
    categories : list of lists, or None
        The categories of each categorical column of the training table.
    names : tuple of str, or None
        The training column names; LightGBM replaces spaces by underscores.
    """
    # Arrow and polars tables.
    if hasattr(X, "to_pandas"):
        X = X.to_pandas()
    if hasattr(X, "columns"):
        if names is not None:
            check_feature_names(X.rename(columns=lambda name: str(name).replace(" ", "_")), names)
        return _tiny_to_zero(_encode_table(X, categories))
    if hasattr(X, "toarray"):
        X = X.toarray()
    matrix = np.asarray(X)
    if matrix.dtype in (np.float32, np.float64):
        return _tiny_to_zero(matrix)
    return _tiny_to_zero(as_numbers(matrix, "float32"))


def _tiny_to_zero(matrix: NDArray[np.floating]) -> NDArray[np.floating]:
    tiny = (np.abs(matrix) <= ZERO) & (matrix != 0)
    return np.where(tiny, matrix.dtype.type(0), matrix) if tiny.any() else matrix


def _encode_table(table: Any, categories: list[list[Any]] | None) -> NDArray[np.float64]:
    """Return a pandas table as a matrix; a category that is not in the training table becomes NaN."""
    import pandas as pd

    columns = [table.iloc[:, i] for i in range(table.shape[1])]
    categorical = [i for i, column in enumerate(columns) if isinstance(column.dtype, pd.CategoricalDtype)]
    if categories is not None and len(categorical) != len(categories):
        raise InvalidInputError(
            f"X has {len(categorical)} categorical columns, but the model was trained with {len(categories)}. Convert "
            "the same columns as for training with astype('category')."
        )
    matrix = np.empty(table.shape, np.float64)
    for i, column in enumerate(columns):
        if i in categorical:
            known = column if categories is None else column.cat.set_categories(categories[categorical.index(i)])
            codes = known.cat.codes.to_numpy(np.float64, copy=True)
            codes[codes < 0] = np.nan
            matrix[:, i] = codes
        else:
            matrix[:, i] = column_as_numbers(column, column.name, "float64", text=False)
    return matrix
