"""Checks of reliability: every module of this folder is one.

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
    """Define the result of a check.

    Attributes
    ----------
    rows : list of dict
        One row per kind of attempt, with the same keys: what was tried, how often, how it ended.
    bad : list of str
        Failures, described so that they can be reproduced; empty if there are none.
    notes : list of str
        Explanations of the rows.
    """

    rows: list[dict[str, Any]]
    bad: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def checks() -> dict[str, ModuleType]:
    """Return all checks by name, in the order of their names."""
    return {found.name: import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)}
