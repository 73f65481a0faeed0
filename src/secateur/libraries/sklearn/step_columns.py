"""Map each output column of fitted scikit-learn transformers to the input column it is computed from."""

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.errors import UnsupportedModelError

_ONE_TO_ONE = {
    "Binarizer",
    "MaxAbsScaler",
    "MinMaxScaler",
    "OrdinalEncoder",
    "PowerTransformer",
    "QuantileTransformer",
    "RobustScaler",
    "StandardScaler",
}
"""Transformers of scikit-learn that map each column to one column."""


def source_columns(steps: Sequence[Any], n_columns: int) -> NDArray[np.intp]:
    """Return the input column behind each output column of a sequence of fitted steps.

    Raises
    ------
    UnsupportedModelError
        If a step may compute a column from several others.
    """
    columns = np.arange(n_columns)
    for step in steps:
        columns = columns[_of_step(step, len(columns))]
    return columns


def _of_step(step: Any, n_columns: int) -> NDArray[np.intp]:
    """Return the input column of each output column of a fitted step."""
    kind = type(step).__name__
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return np.arange(n_columns)
    if not type(step).__module__.startswith("sklearn."):
        kind = ""
    if kind in _ONE_TO_ONE or (kind == "FunctionTransformer" and step.func is None):
        return np.arange(n_columns)
    if kind == "SimpleImputer":
        return _of_imputer(step)
    if kind == "OneHotEncoder":
        plain = copy.copy(step).set_params(feature_name_combiner="concat")
        vars(plain).pop("feature_names_in_", None)
        names = plain.get_feature_names_out([f"{k}|" for k in range(n_columns)])
        return np.array([int(name.partition("|")[0]) for name in names], np.intp)
    if kind == "ColumnTransformer":
        return _of_column_transformer(step)
    if kind == "Pipeline":
        return source_columns([inner for _, inner in step.steps], n_columns)
    raise UnsupportedModelError(
        f"The Pipeline has the step {type(step).__name__}, which may combine several input columns into one. Buying "
        "columns one at a time requires steps that derive each output column from one input column. Pass the last "
        "step, model[-1], and a source of the columns that it was trained on."
    )


def _of_imputer(step: Any) -> NDArray[np.intp]:
    kept = np.arange(step.n_features_in_)
    if not step.keep_empty_features:
        kept = kept[[not (value is None or value != value) for value in step.statistics_]]
    return np.concatenate([kept, step.indicator_.features_]) if step.add_indicator else kept


def _of_column_transformer(step: Any) -> NDArray[np.intp]:
    outputs = {name: output for name, output in step.output_indices_.items() if output.stop > output.start}
    source = np.empty(max((output.stop for output in outputs.values()), default=0), np.intp)
    all_columns = np.arange(step.n_features_in_)
    names = list(getattr(step, "feature_names_in_", ()))
    for name, inner, chosen in step.transformers_:
        if name in outputs:
            columns = all_columns[chosen if isinstance(chosen, slice) else _as_index(chosen, names)]
            source[outputs[name]] = columns[_of_step(inner, len(columns))]
    return source


def _as_index(chosen: Any, names: list[str]) -> list[Any]:
    """Return a column selection (names, numbers or a mask) as an index into an array."""
    return [names.index(c) if isinstance(c, str) else c for c in np.atleast_1d(chosen).tolist()]
