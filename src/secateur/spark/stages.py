"""Extract column names, the tree model and the preceding stages from Spark ML models and pipelines."""

from typing import Any

from secateur.libraries.adapter import Adapter
from secateur.libraries.spark.adapter import SparkAdapter
from secateur.libraries.spark.saved_model import KINDS
from secateur.spark.frame_columns import FrameColumns


def own_columns(adapter: Adapter) -> FrameColumns:
    """Return the columns a Spark ML model was trained on; Spark's default names for models of other libraries."""
    if not isinstance(adapter, SparkAdapter):
        return FrameColumns("features", "label")
    said = {name: adapter.saved.param(f"{name}Col") for name in ("features", "label", "weight")}
    return FrameColumns(said["features"] or "features", said["label"] or "label", said["weight"] or None)


def tree_model(model: Any) -> Any:
    """Return the Spark ML tree model that a model is or contains; None if it contains none."""
    if type(model).__name__ in KINDS:
        return model
    for inner in (getattr(model, "bestModel", None), getattr(model, "model", None), *getattr(model, "stages", ())):
        found = None if inner is None else tree_model(inner)
        if found is not None:
            return found
    return None


def stages_before(model: Any) -> list[Any]:
    """Return the fitted pipeline stages before the tree model, which compute its features."""
    best = getattr(model, "bestModel", None)
    if best is not None:
        return stages_before(best)
    before: list[Any] = []
    for stage in getattr(model, "stages", ()):
        if tree_model(stage) is not None:
            return before + stages_before(stage)
        before.append(stage)
    return []
