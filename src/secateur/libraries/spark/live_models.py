"""Adapt live Spark models: Spark saves the model to a folder, which is pruned and loaded again."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from secateur.errors import InvalidInputError, UnsupportedModelError
from secateur.forest.subforest import Decision
from secateur.libraries.spark.adapter import SparkAdapter
from secateur.libraries.spark.saved_model import KINDS, SavedModel


class LiveAdapter(SparkAdapter):
    """Adapt a model in a Spark session, classic or Spark Connect; nodes are read from the saved folder only."""

    def as_saved(self, model: Any) -> SavedModel:
        """Return the folder that the model saves, as a SavedModel."""
        return _save_live(model)

    @property
    def stages_before(self) -> list[Any]:
        """The stages of the pipeline before the tree model."""
        return _stages_before(self.model)

    def write(self, decision: Decision) -> Any:
        """Return the model that Spark loads from the pruned folder."""
        pruned = self.pruned(decision)
        with _shared_folder() as folder:
            pruned.save(folder)
            return type(self.model).load(folder.as_uri())


def tree_model(model: Any) -> Any:
    """Return the Spark ML tree model that a live model is or contains; None if it contains none."""
    if type(model).__name__ in KINDS:
        return model
    for inner in (getattr(model, "bestModel", None), getattr(model, "model", None), *getattr(model, "stages", ())):
        found = None if inner is None else tree_model(inner)
        if found is not None:
            return found
    return None


def _stages_before(model: Any) -> list[Any]:
    """Return the fitted pipeline stages before the tree model, which compute its features."""
    best = getattr(model, "bestModel", None)
    if best is not None:
        return _stages_before(best)
    before: list[Any] = []
    for stage in getattr(model, "stages", ()):
        if tree_model(stage) is not None:
            return before + _stages_before(stage)
        before.append(stage)
    return []


def native_booster(model: Any) -> Any:
    """Return the Booster of an xgboost.spark model; any other model unchanged.

    Raises
    ------
    UnsupportedModelError
        If it is a model of SynapseML.
    """
    package = type(model).__module__
    if package.startswith("synapse."):
        raise UnsupportedModelError(
            f"A {type(model).__name__} of SynapseML keeps its trees in Java. Save them with "
            "model.saveNativeModel(folder), and pass the path of the text file in that folder."
        )
    return model.get_booster() if package.startswith("xgboost.spark") and hasattr(model, "get_booster") else model


def _save_live(model: Any) -> SavedModel:
    """Return the folder that a live model saves, as a SavedModel."""
    with _shared_folder() as folder:
        model.write().save(folder.as_uri())
        if not folder.is_dir():
            raise InvalidInputError(
                f"Spark saved the model to {folder} on another machine, but secateur needs the folder on this one. "
                "Save the model to a folder that both machines can read, and pass SavedModel.load(folder)."
            )
        return SavedModel.load(folder)


@contextmanager
def _shared_folder() -> Iterator[Path]:
    """Yield the path of a folder that does not exist yet, and remove that folder at the end."""
    with tempfile.TemporaryDirectory(prefix="secateur-spark-") as temporary:
        yield Path(temporary) / "model"
