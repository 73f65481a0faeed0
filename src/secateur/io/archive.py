"""A Forest as named arrays and plain facts: the written form described in docs/format.md."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.forest import Categories, Forest, check_forest

_FACTS = (
    "link",
    "n_features",
    "n_classes",
    "aggregation",
    "unit",
    "divisor",
    "comparison",
    "input_dtype",
    "feature_names",
)


def forest_to_arrays(forest: Forest) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the facts (JSON values) and the arrays of a forest; array names start with `forest.`."""
    facts = {name: getattr(forest, name) for name in _FACTS}
    arrays = {
        f"forest.{field.name}": getattr(forest, field.name)
        for field in fields(Forest)
        if field.name not in (*_FACTS, "categories")
    }
    for field in fields(Categories):
        arrays[f"forest.categories.{field.name}"] = getattr(forest.categories, field.name)
    return facts, arrays


def forest_from_arrays(facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Forest:
    """Return the checked forest these facts and arrays describe.

    Raises
    ------
    KeyError, TypeError, ValueError
        If something is missing or does not fit.
    """
    fields_of: dict[str, Any] = dict(facts)
    fields_of["n_classes"] = tuple(facts["n_classes"])
    if facts["feature_names"] is not None:
        fields_of["feature_names"] = tuple(facts["feature_names"])
    for field in fields(Forest):
        if field.name not in (*_FACTS, "categories"):
            fields_of[field.name] = arrays[f"forest.{field.name}"]
    categories = Categories(**{f.name: arrays[f"forest.categories.{f.name}"] for f in fields(Categories)})
    forest = Forest(**fields_of, categories=categories)
    check_forest(forest)
    return forest


def same_forest(a: Forest, b: Forest) -> bool:
    """Return whether two forests have the same facts and arrays."""
    (facts_a, arrays_a), (facts_b, arrays_b) = forest_to_arrays(a), forest_to_arrays(b)
    return facts_a == facts_b and all(np.array_equal(arrays_a[k], arrays_b[k]) for k in arrays_a)
