"""Find the adapter of a fitted model: one file or folder per model library.

A library is imported only when a model of that library is passed.
"""

from importlib import import_module
from typing import Any, NamedTuple

from secateur.errors import UnsupportedModelError
from secateur.forest import Forest
from secateur.libraries.adapter import Adapter, ForestAdapter


class Library(NamedTuple):
    """Describe a model library without importing it.

    Attributes
    ----------
    module : str
        The module of secateur whose `adapt(model)` takes models whose class is defined in the library.
    extra : str
        The extra of secateur that installs the library; empty if none is needed.
    suffixes : tuple of str
        The suffixes of the library's own model files; "" stands for a folder.
    threads_survive_fork : bool
        Whether the library can use its threads in a forked process.
    """

    module: str
    extra: str = ""
    suffixes: tuple[str, ...] = ()
    threads_survive_fork: bool = True


LIBRARIES: dict[str, Library] = {
    "sklearn": Library("secateur.libraries.sklearn"),
    "catboost": Library("secateur.libraries.catboost", "catboost", (".cbm", ".json")),
    "lightgbm": Library("secateur.libraries.lightgbm", "lightgbm", (".txt",), threads_survive_fork=False),
    "xgboost": Library("secateur.libraries.xgboost", "xgboost", (".json", ".ubj"), threads_survive_fork=False),
    "pyspark": Library("secateur.libraries.spark", "spark", ("",)),
}
"""The supported libraries by the name of their package."""


def library_of(model: Any) -> str | None:
    """Return the package of a model, a key of `LIBRARIES`; None if it is of none of these.

    Classes of secateur that stand for models of a library, such as a saved Spark model, belong to that library.
    """
    for kind in type(model).__mro__:
        for package, library in LIBRARIES.items():
            if kind.__module__.split(".")[0] == package or kind.__module__.startswith(f"{library.module}."):
                return package
    return None


def adapt(model: Any) -> Adapter:
    """Return the adapter of a fitted model.

    Raises
    ------
    UnsupportedModelError
        If the model's library, or this kind of model, is not supported.
    """
    if isinstance(model, Adapter):
        return model
    if isinstance(model, type):
        raise UnsupportedModelError(
            f"{model.__name__} is a class, but a fitted model is needed. Create one, call its fit, and pass that."
        )
    if isinstance(model, Forest):
        return ForestAdapter(model)
    package = library_of(model)
    if package is None and hasattr(model, "shape"):
        raise UnsupportedModelError(
            f"Got a {type(model).__name__} of shape {model.shape} as the model. The model comes first: pass "
            "(model, X, y)."
        )
    if package is None:
        raise UnsupportedModelError(
            f"Got {type(model).__module__}.{type(model).__qualname__}, which is not a model of a supported library. "
            f"Supported libraries: {', '.join(LIBRARIES)}. Pass a fitted tree model of one of these, or a Forest."
        )
    adapter: Adapter = import_module(LIBRARIES[package].module).adapt(model)
    return adapter
