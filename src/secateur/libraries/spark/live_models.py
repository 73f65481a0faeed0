"""Live Spark models: they save themselves to a folder, which is pruned and loaded again. No node is asked for."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from secateur.forest.subforest import Decision
from secateur.libraries.spark.adapter import SparkAdapter
from secateur.libraries.spark.saved_model import SavedModel


class LiveAdapter(SparkAdapter):
    """A model in a Spark session, also over Spark Connect: no node is asked for, the model saves itself."""

    def as_saved(self, model: Any) -> SavedModel:
        """Return what the model saves."""
        return _save_live(model)

    def write(self, decision: Decision) -> Any:
        """Return a model that Spark loads from the pruned folder."""
        pruned = self.pruned(decision)
        with _shared_folder() as folder:
            pruned.save(folder)
            return type(self.model).load(folder.as_uri())


def _save_live(model: Any) -> SavedModel:
    """Return what a live model saves."""
    with _shared_folder() as folder:
        model.write().save(folder.as_uri())
        if not folder.is_dir():
            raise ValueError(
                f"Spark saved the model to {folder}, but on another machine; the folder is needed here. "
                "Save the model where both can reach it and pass SavedModel.load(folder)."
            )
        return SavedModel.load(folder)


@contextmanager
def _shared_folder() -> Iterator[Path]:
    """Give the name of a folder that does not exist yet, and remove it in the end."""
    with tempfile.TemporaryDirectory(prefix="secateur-spark-") as temporary:
        yield Path(temporary) / "model"
