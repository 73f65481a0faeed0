"""Find the adapter of a fitted model: one file or folder per model library.

A library is imported only when a model of that library is passed.
"""

from importlib import import_module
from typing import Any

from secateur.errors import UnsupportedModelError
from secateur.forest import Forest
from secateur.libraries.adapter import Adapter, ForestAdapter

LIBRARIES: dict[str, str] = {
    "sklearn": "secateur.libraries.sklearn",
    "catboost": "secateur.libraries.catboost",
    "lightgbm": "secateur.libraries.lightgbm",
    "xgboost": "secateur.libraries.xgboost",
    "pyspark": "secateur.libraries.spark",
}
"""Adapter module of each library: its `adapt(model)` takes models whose class is defined in that package."""


def _module_of_class(name: str) -> str | None:
    """Return the module of secateur that defines this model class, such as that of a saved Spark model, or None."""
    return next((module for module in LIBRARIES.values() if name.startswith(f"{module}.")), None)


def adapt(model: Any) -> Adapter:
    """Return the adapter of a fitted model.

    Raises
    ------
    UnsupportedModelError
        If the model's library, or this kind of model, is not supported.
    """
    if isinstance(model, Adapter):
        return model
    if isinstance(model, Forest):
        return ForestAdapter(model)
    for kind in type(model).__mro__:
        module = LIBRARIES.get(kind.__module__.split(".")[0]) or _module_of_class(kind.__module__)
        if module:
            adapter: Adapter = import_module(module).adapt(model)
            return adapter
    raise UnsupportedModelError(
        f"Got {type(model).__module__}.{type(model).__qualname__}, which is not a model of a supported library. "
        f"Supported libraries: {', '.join(LIBRARIES)}. Pass a fitted tree model of one of these, or a Forest."
    )
