"""Send models and forests to executors: once per value, as a Spark broadcast if the session supports it."""

from typing import Any

from secateur.errors import UnsupportedModelError
from secateur.spark.tasks import Enclosed, Payload

_MOST = 4


class Broadcaster:
    """Send values from the driver to the executors of a session.

    A classic session uses broadcasts. Spark Connect has no broadcasts, so values are enclosed in the tasks, and each
    process unpickles them once.
    """

    def __init__(self, frame: Any) -> None:
        connect = type(frame).__module__.startswith("pyspark.sql.connect")
        self._context = None if connect else frame.sparkSession.sparkContext
        self._sent: dict[int, tuple[Any, Payload]] = {}

    def send(self, value: Any) -> Payload:
        """Return the payload of a value; a value among the `_MOST` most recently sent is not sent again."""
        known = self._sent.pop(id(value), None)
        payload = known[1] if known else self._payload(value)
        # Holding a reference to the value guarantees that its id is not reused.
        self._sent[id(value)] = (value, payload)
        while len(self._sent) > _MOST:
            self._sent.pop(next(iter(self._sent)))
        return payload

    def _payload(self, value: Any) -> Payload:
        content = _pickled(value)
        if self._context is None:
            return Enclosed(content)
        payload: Payload = self._context.broadcast(content)
        return payload


def _pickled(value: Any) -> bytes:
    from pyspark import cloudpickle

    try:
        content: bytes = cloudpickle.dumps(value)
    # Pickling runs code of the model, which may raise any exception.
    except Exception as error:
        # The value is a forest, or an adapter, which holds a model.
        name = type(getattr(value, "model", value)).__name__
        raise UnsupportedModelError(
            f"This {name} cannot be pickled ({type(error).__name__}: {error}), but executors need a copy of it. "
            "Remove the parts that cannot be pickled, or prune sc.as_forest(model), with class codes as labels."
        ) from error
    return content
