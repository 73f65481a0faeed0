"""Map each feature of the trees to the input column it is computed from.

Trees may split on derived features: a Pipeline encodes its input columns, CatBoost computes statistics of categories.
Lazy routing requires that every feature used by a split is derived from a single input column.
"""

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur._util.text import quoted
from secateur.errors import UnsupportedModelError
from secateur.libraries.adapter import Adapter

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


@dataclass(frozen=True, eq=False)
class Purchasable:
    """Input columns that can be bought, and the features derived from them.

    Attributes
    ----------
    names : tuple of str, or None
    origin : (n_features,) int32
        The input column from which each feature of the forest is derived.
    n_columns : int
    """

    names: tuple[str, ...] | None
    origin: NDArray[np.int32]
    n_columns: int


def purchasable(adapter: Adapter, example: Any = None) -> Purchasable:
    """Return the input columns of a model and the column behind each of its features.

    Raises
    ------
    UnsupportedModelError
        If a feature is derived from several columns, or by a step whose column mapping is not known.
    """
    if hasattr(adapter, "inner"):
        names, n_columns = _names_of(adapter.model), int(adapter.model.n_features_in_)
        origin = _input_columns(adapter)[np.arange(adapter.forest.n_features)]
    elif adapter.library == "catboost":
        names, n_columns, origin = _of_catboost(adapter)
    else:
        n_columns = adapter.forest.n_features
        names, origin = adapter.forest.feature_names, np.arange(n_columns)
    if len(getattr(example, "columns", ())) == n_columns:
        names = tuple(str(name) for name in example.columns)
    return Purchasable(names, origin.astype(np.int32), n_columns)


def _names_of(model: Any) -> tuple[str, ...] | None:
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else tuple(str(name) for name in names)


def _input_columns(adapter: Adapter) -> NDArray[np.intp]:
    """Return the input column behind each feature of a possibly nested model."""
    model, inner = adapter.model, getattr(adapter, "inner", None)
    if inner is None:
        return np.arange(adapter.forest.n_features)
    # A hyperparameter search passes its rows on unchanged.
    if not hasattr(model, "steps"):
        return _input_columns(inner)
    return _through_steps([step for _, step in model.steps[:-1]], int(model.n_features_in_))[_input_columns(inner)]


def _through_steps(steps: list[Any], n_columns: int) -> NDArray[np.intp]:
    columns = np.arange(n_columns)
    for step in steps:
        columns = columns[_source_columns(step, len(columns))]
    return columns


def _source_columns(step: Any, n_columns: int) -> NDArray[np.intp]:
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
        return _through_steps([inner for _, inner in step.steps], n_columns)
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
            source[outputs[name]] = columns[_source_columns(inner, len(columns))]
    return source


def _as_index(chosen: Any, names: list[str]) -> list[Any]:
    """Return a column selection (names, numbers or a mask) as an index into an array."""
    return [names.index(c) if isinstance(c, str) else c for c in np.atleast_1d(chosen).tolist()]


def _of_catboost(adapter: Any) -> tuple[tuple[str, ...] | None, int, NDArray[np.intp]]:
    """Return the column names, the number of columns, and the column behind each plain or derived feature."""
    conditions = adapter.native.conditions
    n_columns = conditions.n_columns
    names = conditions.names[:n_columns]
    origin = np.arange(len(conditions.names))
    used = set(adapter.forest.features_used.tolist())
    for k in range(n_columns, len(conditions.names)):
        text = conditions.names[k]
        sources = [c for c, name in enumerate(names) if text.startswith(_derived_prefixes(name))]
        if k in used and (len(sources) != 1 or any(character in names[sources[0]] for character in ",>=")):
            raise UnsupportedModelError(
                f"The model uses the feature {quoted([text])}, which may be derived from several columns. Buying "
                "columns one at a time requires features derived from one column. Train with max_ctr_complexity=1 and "
                "column names without commas, > and =."
            )
        origin[k] = sources[0] if sources else 0
    default_names = names == tuple(str(k) for k in range(n_columns))
    return None if default_names else names, n_columns, origin


def _derived_prefixes(name: str) -> tuple[str, ...]:
    """Return the prefixes of the names of features that CatBoost derives from one column."""
    return (f"{name} is category ", f"ctr({name}) ", f"text({name}) ", f"embedding({name}) ")
