"""What is sent to executors: each value once, as a broadcast where there is one."""

from dataclasses import replace
from typing import Any

from secateur.libraries.adapter import Adapter
from secateur.libraries.spark.adapter import SavedAdapter, SparkAdapter
from secateur.spark.tasks import Enclosed, Payload

_MOST = 4


class Broadcaster:
    """The way from the driver of a session to its executors.

    A classic session broadcasts; over Spark Connect, which has no broadcasts, values travel with the tasks, and each
    process opens them once.
    """

    def __init__(self, frame: Any) -> None:
        connect = type(frame).__module__.startswith("pyspark.sql.connect")
        self._context = None if connect else frame.sparkSession.sparkContext
        self._sent: dict[int, tuple[Any, Payload]] = {}

    def send(self, value: Any) -> Payload:
        """Return where executors find something; the same value is sent once, unless others came in between."""
        known = self._sent.pop(id(value), None)
        payload = known[1] if known else self._payload(value)
        self._sent[id(value)] = (value, payload)  # holding the value, no other can have its id
        while len(self._sent) > _MOST:
            self._sent.pop(next(iter(self._sent)))
        return payload

    def _payload(self, value: Any) -> Payload:
        content = _pickled(value)
        if self._context is None:
            return Enclosed(content)
        payload: Payload = self._context.broadcast(content)
        return payload


def portable(adapter: Adapter) -> Adapter:
    """Return what executors need of a model: of a Spark model no session, and no node but those of its forest."""
    if not isinstance(adapter, SparkAdapter):
        return adapter
    saved = adapter.saved
    light = SavedAdapter(replace(saved, nodes=saved.nodes.schema.empty_table(), trees=None, others={}))
    vars(light)["forest"] = adapter.forest
    return light


def _pickled(value: Any) -> bytes:
    from pyspark import cloudpickle

    try:
        content: bytes = cloudpickle.dumps(value)
    except Exception as error:  # whatever the model's own parts raise
        name = type(value.model if isinstance(value, Adapter) else value).__name__
        raise ValueError(
            f"This {name} cannot be pickled ({type(error).__name__}: {error}); executors need a copy of it. "
            "Remove what cannot be copied, or prune sc.as_forest(model), with classes counted from 0 as labels."
        ) from error
    return content
