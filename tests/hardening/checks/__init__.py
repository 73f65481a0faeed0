"""Checks of reliability: every module is one, found by being here.

A module has a first line that is its claim, `run(scale) -> Figures`, and `LONG`, the scale of `make harden`;
`make test-all` runs scale 1.
"""

import pkgutil
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType
from typing import Any


@dataclass
class Figures:
    """What a check found.

    Attributes
    ----------
    rows : list of dict
        One row for each kind of thing tried, with the same keys: what was tried, how often, how it ended.
    bad : list of str
        What ended as it must not, in words that let it be done again; empty if all is well.
    notes : list of str
        What a reader must know to understand the rows.
    """

    rows: list[dict[str, Any]]
    bad: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def checks() -> dict[str, ModuleType]:
    """Return all checks by name, in the order of their names."""
    return {found.name: import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)}
