"""Prune trained decision trees and tree ensembles; get the same kind of model back, smaller.

Everything is imported when first used, so that `import secateur` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from secateur import costs, losses, solvers
    from secateur.api import as_forest, prune, prune_path
    from secateur.decision import Decision, subforest
    from secateur.forest import Forest
    from secateur.path import Path, Pruned
    from secateur.validation import holdout_size

_HOME = {
    "Decision": "secateur.decision",
    "Forest": "secateur.forest",
    "Path": "secateur.path",
    "Pruned": "secateur.path",
    "as_forest": "secateur.api",
    "holdout_size": "secateur.validation",
    "prune": "secateur.api",
    "prune_path": "secateur.api",
    "subforest": "secateur.decision",
}
_MODULES = ("costs", "losses", "solvers")

__all__ = [
    "Decision",
    "Forest",
    "Path",
    "Pruned",
    "as_forest",
    "costs",
    "holdout_size",
    "losses",
    "prune",
    "prune_path",
    "solvers",
    "subforest",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name in _MODULES:
        return import_module(f"secateur.{name}")
    raise AttributeError(f"module 'secateur' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
