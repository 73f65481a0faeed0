"""Encode tables and matrices as XGBoost does: float32, missing values as NaN, categories as codes."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.errors import InvalidInputError
from secateur.forest import Forest
from secateur.libraries.adapter import as_matrix, check_feature_names
from secateur.libraries.numeric_columns import column_as_numbers, refuse_other_kinds
from secateur.libraries.xgboost.saved_model import LARGEST_CATEGORY, Saved, damaged, integers

Names = list[Any]
_WHOLE_NAMES = (3, 4)
"""The version of XGBoost known to save names beyond ASCII whole; 3.2 saves them in pieces."""


def known_categories(model: Saved, n_features: int, version: Sequence[int] = _WHOLE_NAMES) -> list[Names | None]:
    """Return the training categories of each feature, None for features of codes or numbers.

    Names are texts if the `version` that saved the model stores whole names, otherwise pieces of their bytes.
    """
    encodings = model.get("cats", {}).get("enc", [])
    if not len(encodings):
        # Trained on plain numbers, or saved by a version that does not store category names.
        return [None] * n_features
    if len(encodings) != n_features:
        raise damaged(f"it has category names for {len(encodings)} features, but {n_features} features")
    names = [_names(encoding) for encoding in encodings]
    if tuple(version) < _WHOLE_NAMES:
        return names
    return [None if known is None else [_as_text(name) for name in known] for known in names]


def _as_text(name: Any) -> Any:
    return name.decode("utf-8", "surrogateescape") if isinstance(name, bytes) else name


def _names(encoding: Any) -> Names | None:
    values = np.asarray(encoding["values"]) if isinstance(encoding, dict) and "values" in encoding else None
    if values is None or values.ndim != 1 or (len(values) and values.dtype.kind not in "iu"):
        raise damaged("its category names are not lists of integers or strings")
    if "offsets" not in encoding:
        return values.tolist() if len(values) else None
    offsets = integers(encoding["offsets"], "offsets", None, len(values) + 1)
    if (np.diff(offsets) < 0).any():
        raise damaged("the offsets of its category names are not increasing")
    text = values.astype(np.uint8).tobytes()
    names = [text[a:b] for a, b in pairwise(offsets)]
    return names if names else None


def rows(X: Any, forest: Forest, known: list[Names | None], categorical: NDArray[np.int32], missing: float) -> Any:
    """Return X as a float32 matrix.

    Parameters
    ----------
    X : array, DataFrame, or sparse matrix
        Entries that a sparse matrix does not store are missing values.
    forest : Forest
    known : list
        From `known_categories`.
    categorical : array of int
        The features with categorical splits.
    missing : float
        The value that marks missing entries in addition to NaN.
    """
    if type(X).__name__ in ("DMatrix", "QuantileDMatrix"):
        raise InvalidInputError(
            f"X is a {type(X).__name__}, from which the values cannot be read back. Pass the array, DataFrame or "
            "sparse matrix from which it was built."
        )
    if hasattr(X, "toarray"):
        X = _dense(X)
    elif hasattr(X, "to_pandas"):
        X = X.to_pandas()
    if hasattr(X, "dtypes") and hasattr(X, "columns"):
        check_feature_names(X, forest.feature_names)
        X = _matrix(X, known)
    refuse_other_kinds(X)
    matrix = as_matrix(X, forest)
    if matrix is X and (len(categorical) or not np.isnan(missing)):
        matrix = matrix.copy()
    if not np.isnan(missing):
        matrix[matrix == np.float32(missing)] = np.nan
    if len(categorical):
        # XGBoost treats codes out of range as no category. Truncation would turn a code in (-1, 0) into category 0.
        codes = matrix[:, categorical]
        matrix[:, categorical] = np.where((codes < 0) | (codes >= LARGEST_CATEGORY), np.float32(-1), codes)
    return matrix


def _dense(X: Any) -> NDArray[np.float32]:
    """Return a sparse matrix as a dense one, with NaN for entries that are not stored."""
    stored = X.tocsr().tocoo()
    matrix = np.full(X.shape, np.nan, np.float32)
    matrix[stored.row, stored.col] = stored.data
    return matrix


def _matrix(frame: Any, known: list[Names | None]) -> NDArray[np.float32]:
    """Return a DataFrame as a matrix, with categories as the model's codes."""
    matrix = np.empty(frame.shape, np.float32)
    for j in range(frame.shape[1]):
        column = frame.iloc[:, j]
        if hasattr(column, "cat"):
            names = known[j] if j < len(known) else None
            matrix[:, j] = _codes(column.cat.categories, column.cat.codes.to_numpy(), names, frame.columns[j])
            continue
        matrix[:, j] = column_as_numbers(column, frame.columns[j], "float32", text=False)
    return matrix


def _codes(categories: Any, codes: NDArray[Any], known: Names | None, column: Any) -> NDArray[np.float32]:
    """Return the model's code for each row of a categorical column, NaN for missing values."""
    in_pieces = known is None or any(isinstance(name, bytes) for name in known)
    names = _native_names(categories, in_pieces)
    new_codes = np.arange(len(names), dtype=np.float32)
    if known is not None and names != known:
        code_of = {name: code for code, name in enumerate(known)}
        new_codes = np.array([code_of.get(name, -1) for name in names], np.float32)
        used = np.unique(codes[codes >= 0])
        unknown = [categories[i] for i in used if new_codes[i] < 0]
        unsure = [categories[i] for i in used if not _matches(names, int(i), known, int(new_codes[i]))]
        if unknown or unsure:
            found = f" (new: {unknown[:5]})" if unknown else f" (in other places: {unsure[:5]})"
            raise InvalidInputError(
                f"The categories of column {column!r} differ from those the model was trained with{found}. XGBoost has "
                "no codes for new categories and can match names from the first one that is not ASCII on only in their "
                "places. Set the categories of the column to those of the training data, in their order."
            )
    return np.append(new_codes, np.float32(np.nan))[codes]


def _matches(names: Names, i: int, known: Names, code: int) -> bool:
    """Return whether equal pieces of names are equal names: both are whole, or all pieces up to them are equal.

    Pieces are whole up to the first name that is not ASCII.
    """
    if i == code and names[: i + 1] == known[: code + 1]:
        return True
    before = names[: i + 1] + known[: code + 1]
    return all(not isinstance(name, bytes) or name.isascii() for name in before)


def _native_names(categories: Any, in_pieces: bool) -> Names:
    """Return category names as XGBoost saves them.

    XGBoost before 3.4 splits the joined UTF-8 text at offsets that count characters but are applied to bytes. Non-ASCII
    names are therefore saved in pieces.
    """
    values = categories.tolist()
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        return values
    texts = [str(value) for value in values]
    if not in_pieces:
        return texts
    text = "".join(texts).encode("utf-8")
    ends = np.cumsum([0, *(len(value) for value in texts)])
    return [text[a:b] for a, b in pairwise(ends)]
