"""Adapt live Spark models: Spark saves the model to a folder, which is pruned and loaded again."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from secateur.errors import InvalidInputError
from secateur.forest.subforest import Decision
from secateur.libraries.spark.adapter import SparkAdapter
from secateur.libraries.spark.saved_model import SavedModel


class LiveAdapter(SparkAdapter):
    """Adapt a model in a Spark session, classic or Spark Connect; nodes are read from the saved folder only."""

    def as_saved(self, model: Any) -> SavedModel:
        """Return the folder that the model saves, as a SavedModel."""
        return _save_live(model)

    def write(self, decision: Decision) -> Any:
        """Return the model that Spark loads from the pruned folder."""
        pruned = self.pruned(decision)
        with _shared_folder() as folder:
            pruned.save(folder)
            return type(self.model).load(folder.as_uri())


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
