"""Fitted models of every supported kind and option, one file per library."""

from functools import cache
from importlib import import_module

from tests.cases.case import Case

from secateur.libraries import adapt
from secateur.libraries.adapter import Adapter

LIBRARIES = ("sklearn", "lightgbm", "xgboost", "spark", "catboost")
"""Files of this folder: RECIPES maps names to functions that return a Case; FOR_SOLVERS are tried with every solver."""

FILES = [import_module(f"tests.cases.{library}") for library in LIBRARIES]
RECIPES = FILES[0].RECIPES
"""Models of scikit-learn."""
ALL_RECIPES = {name: recipe for file in FILES for name, recipe in file.RECIPES.items()}
FOR_SOLVERS = [name for file in FILES for name in file.FOR_SOLVERS]


@cache
def case(name: str) -> Case:
    """Return one fitted model by name."""
    return ALL_RECIPES[name]()


@cache
def adapter_of(name: str) -> Adapter:
    """Return the adapter of one fitted model."""
    return adapt(case(name).model)
