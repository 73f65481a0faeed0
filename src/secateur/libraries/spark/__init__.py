"""Read and write Spark ML tree models: saved folders without a JVM, and live models through a saved folder."""

from pathlib import Path
from typing import Any

from secateur.errors import UnsupportedFileError, UnsupportedModelError
from secateur.libraries.spark.adapter import SavedAdapter, SparkAdapter
from secateur.libraries.spark.live_models import LiveAdapter
from secateur.libraries.spark.saved_model import KINDS, SavedModel

__all__ = ["SavedModel", "adapt", "dump", "load", "save"]

_CONTAINERS = ("PipelineModel", "CrossValidatorModel", "TrainValidationSplitModel")
"""Live models that may contain one tree model among other stages."""


def adapt(model: Any) -> SparkAdapter:
    """Return the adapter of a saved or live Spark ML model.

    Raises
    ------
    UnsupportedModelError
        If the model is neither a fitted tree model nor a pipeline that may contain one.
    """
    if isinstance(model, SavedModel):
        return SavedAdapter(model)
    if type(model).__name__ in (*KINDS, *_CONTAINERS):
        return LiveAdapter(model)
    raise UnsupportedModelError(
        f"Got {type(model).__module__}.{type(model).__qualname__}, which is not a fitted tree model of Spark ML. "
        f"Supported models: {', '.join((*KINDS, *_CONTAINERS))}. Pass the model that fit returns, or the SavedModel of "
        "a saved folder."
    )


def load(file: Path) -> SavedModel:
    """Return the model saved in a folder."""
    return SavedModel.load(file)


def save(model: Any, folder: Path, *, force: bool = False) -> Path:
    """Write a saved or live model to a folder, and return the folder."""
    return adapt(model).saved.save(folder, force=force)


def dump(model: Any, suffix: str) -> bytes:
    """Raise UnsupportedFileError: Spark saves a model as a folder."""
    raise UnsupportedFileError(
        f"A Spark model cannot be written as one {suffix} file, because Spark saves a model as a folder of files. "
        "Use model.save(folder) for a SavedModel, or model.write().save(folder) for a live model."
    )
