"""The rim: one file or folder per model library, imported only when a model of that library arrives."""

from importlib import import_module
from typing import Any

from secateur.forest import Forest
from secateur.libraries.adapter import Adapter, ForestAdapter

LIBRARIES: dict[str, str] = {
    "sklearn": "secateur.libraries.sklearn",
    "catboost": "secateur.libraries.catboost",
    "lightgbm": "secateur.libraries.lightgbm",
    "xgboost": "secateur.libraries.xgboost",
    "pyspark": "secateur.libraries.spark",
}
"""The package a model class comes from, and the module here whose `adapt(model)` understands it."""


def _own_module(name: str) -> str | None:
    """Return the module here that defines a model class of its own, such as that of a saved Spark model."""
    return next((module for module in LIBRARIES.values() if name.startswith(f"{module}.")), None)


def adapt(model: Any) -> Adapter:
    """Return the adapter of any model we know.

    Raises
    ------
    TypeError
        If the model's library, or its kind of model, is not known.
    """
    if isinstance(model, Adapter):
        return model
    if isinstance(model, Forest):
        return ForestAdapter(model)
    for kind in type(model).__mro__:
        module = LIBRARIES.get(kind.__module__.split(".")[0]) or _own_module(kind.__module__)
        if module:
            adapter: Adapter = import_module(module).adapt(model)
            return adapter
    raise TypeError(
        f"Got {type(model).__module__}.{type(model).__qualname__}, which is not a model of a library secateur "
        f"reads. Known libraries: {', '.join(LIBRARIES)}. Pass a fitted tree model of one of these, or a Forest."
    )
