"""Read and write Spark ML tree models: saved folders without a JVM, and live models through a saved folder."""

from pathlib import Path
from typing import Any

from secateur.libraries.spark.adapter import SavedAdapter, SparkAdapter
from secateur.libraries.spark.live_models import LiveAdapter
from secateur.libraries.spark.saved_model import KINDS, SavedModel

__all__ = ["SavedModel", "adapt", "dump", "load"]

_HOLDERS = ("PipelineModel", "CrossValidatorModel", "TrainValidationSplitModel")
"""Live models that may contain one tree model among other stages."""


def adapt(model: Any) -> SparkAdapter:
    """Return the adapter of a saved or live Spark ML model.

    Raises
    ------
    TypeError
        If the model is neither a fitted tree model nor a pipeline that may contain one.
    """
    if isinstance(model, SavedModel):
        return SavedAdapter(model)
    if type(model).__name__ in (*KINDS, *_HOLDERS):
        return LiveAdapter(model)
    raise TypeError(
        f"Got {type(model).__module__}.{type(model).__qualname__}, which is no fitted tree model of Spark ML. Needed "
        f"is one of {', '.join((*KINDS, *_HOLDERS))}. Pass what `fit` returns, or the SavedModel of a saved folder."
    )


def load(file: Path) -> SavedModel:
    """Return the model saved in a folder."""
    return SavedModel.load(file)


def dump(model: Any, suffix: str) -> bytes:
    """Raise ValueError: Spark saves a model as a folder."""
    raise ValueError(
        f"A Spark model cannot be written as one {suffix} file; Spark keeps a model in a folder of files. "
        "Use model.save(folder) of a SavedModel, or model.write().save(folder) of a live model."
    )
