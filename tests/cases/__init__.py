"""Fitted models of every kind and option we promise, one file per library."""

from functools import cache
from importlib import import_module

from tests.cases.case import Case

LIBRARIES = ("sklearn", "lightgbm", "xgboost", "spark", "catboost")
"""Files here: RECIPES names functions that return a Case, FOR_SOLVERS are those of them every solver is tried on."""

_FILES = [import_module(f"tests.cases.{library}") for library in LIBRARIES]
RECIPES = _FILES[0].RECIPES
"""Models of scikit-learn."""
ALL_RECIPES = {name: recipe for file in _FILES for name, recipe in file.RECIPES.items()}
FOR_SOLVERS = [name for file in _FILES for name in file.FOR_SOLVERS]


@cache
def case(name: str) -> Case:
    """Return one fitted model by name."""
    return ALL_RECIPES[name]()
