"""The rim: one file or folder per model library, imported only when a model of that library arrives."""

from importlib import import_module
from typing import Any

from secateur.forest import Forest
from secateur.io.adapter import Adapter, ForestAdapter

LIBRARIES: dict[str, str] = {
    "sklearn": "secateur.io.sklearn",
}
"""The package a model class comes from, and the module here whose `adapt(model)` understands it."""


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
        module = LIBRARIES.get(kind.__module__.split(".")[0])
        if module:
            adapter: Adapter = import_module(module).adapt(model)
            return adapter
    raise TypeError(
        f"Got {type(model).__module__}.{type(model).__qualname__}, which is not a model of a library secateur "
        f"reads. Known libraries: {', '.join(LIBRARIES)}. Pass a fitted tree model of one of these, or a Forest."
    )
