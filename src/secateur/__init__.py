"""Prune trained decision trees and tree ensembles; get the same kind of model back, smaller.

Submodules are imported on first use, so that `import secateur` is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from secateur import costs, losses, serving, solvers, training
    from secateur.api import as_forest, check_monotonic, prune, prune_path
    from secateur.data.batches import Batches
    from secateur.data.parquet import read_batches
    from secateur.editing import NodeView, majority_vote, node_views, prune_nodes, simplify
    from secateur.editing.smoothing import smooth
    from secateur.estimators import PrunedClassifier, PrunedRegressor
    from secateur.files.check import FileReport, check_file
    from secateur.forest import Forest
    from secateur.forest.monotonicity import MonotonicityCheck
    from secateur.forest.subforest import Decision, subforest
    from secateur.path import Path, Pruned
    from secateur.reporting import report
    from secateur.reporting.benchmark import benchmark
    from secateur.reporting.latency import Benchmark
    from secateur.selection.validation import holdout_size

_HOME = {
    "Batches": "secateur.data.batches",
    "Benchmark": "secateur.reporting.latency",
    "Decision": "secateur.forest.subforest",
    "FileReport": "secateur.files.check",
    "Forest": "secateur.forest",
    "MonotonicityCheck": "secateur.forest.monotonicity",
    "NodeView": "secateur.editing",
    "Path": "secateur.path",
    "Pruned": "secateur.path",
    "PrunedClassifier": "secateur.estimators",
    "PrunedRegressor": "secateur.estimators",
    "as_forest": "secateur.api",
    "benchmark": "secateur.reporting.benchmark",
    "check_file": "secateur.files.check",
    "check_monotonic": "secateur.api",
    "holdout_size": "secateur.selection.validation",
    "node_views": "secateur.editing",
    "prune": "secateur.api",
    "prune_nodes": "secateur.editing",
    "prune_path": "secateur.api",
    "read_batches": "secateur.data.parquet",
    "report": "secateur.reporting",
    "simplify": "secateur.editing",
    "smooth": "secateur.editing.smoothing",
    "majority_vote": "secateur.editing",
    "subforest": "secateur.forest.subforest",
}
# `spark` needs an optional dependency, so it is not in __all__.
_MODULES = ("costs", "losses", "serving", "solvers", "spark", "training")

__all__ = [
    "Batches",
    "Benchmark",
    "Decision",
    "FileReport",
    "Forest",
    "MonotonicityCheck",
    "NodeView",
    "Path",
    "Pruned",
    "PrunedClassifier",
    "PrunedRegressor",
    "as_forest",
    "benchmark",
    "check_file",
    "check_monotonic",
    "costs",
    "holdout_size",
    "losses",
    "majority_vote",
    "node_views",
    "prune",
    "prune_nodes",
    "prune_path",
    "read_batches",
    "report",
    "serving",
    "simplify",
    "smooth",
    "solvers",
    "subforest",
    "training",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        # Stored, so that the next access finds the name without this function.
        globals()[name] = getattr(import_module(_HOME[name]), name)
        return globals()[name]
    if name in _MODULES:
        return import_module(f"secateur.{name}")
    raise AttributeError(f"module 'secateur' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
