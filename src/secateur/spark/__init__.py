"""Prune models on the rows of a Spark DataFrame: prune(), prune_path(), evaluate(), and a pipeline stage.

Names are imported lazily, because executors import this package for every job and need little of it.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from secateur.spark.cluster_rows import ClusterSample
    from secateur.spark.pipeline import PruneEstimator, PruneModel
    from secateur.spark.pruning import evaluate, prune, prune_path, prune_point

if find_spec("pyspark") is None or find_spec("pyarrow") is None:
    raise ImportError(
        "secateur.spark needs pyspark and pyarrow, which are not both installed. Run: pip install 'secateur[spark]', "
        "and see that Java 17 is there (`java -version`; Debian and Ubuntu: apt-get install openjdk-17-jre-headless)."
    )

_HOMES = {
    "ClusterSample": "cluster_rows",
    "PruneEstimator": "pipeline",
    "PruneModel": "pipeline",
    "evaluate": "pruning",
    "prune": "pruning",
    "prune_path": "pruning",
    "prune_point": "pruning",
}

__all__ = ["ClusterSample", "PruneEstimator", "PruneModel", "evaluate", "prune", "prune_path", "prune_point"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
