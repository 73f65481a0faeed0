"""Recover the tree model that produced the predictions of a DataFrame from its query plan.

Spark ML passes a stage the rows transformed by the preceding stage, but not the preceding model. The plan of these rows
ends with the functions that compute the predictions, and their closures have captured the model. The captured objects
are read through `writeReplace`, as Spark itself does before it serialises a closure.
"""

from collections.abc import Iterator
from typing import Any

from secateur.errors import UnsupportedModelError
from secateur.libraries.spark.saved_model import KINDS


def fitted_before(frame: Any) -> Any:
    """Return the Spark ML tree model that transformed a DataFrame last.

    Raises
    ------
    ValueError
        If the plan contains no tree model, or is not accessible, as over Spark Connect.
    """
    if not hasattr(frame, "_jdf"):
        raise UnsupportedModelError(
            "The model of the preceding stage is not available over Spark Connect, which does not expose query plans. "
            "Use PruneEstimator(estimator=…), or secateur.spark.prune(model, df)."
        )
    from pyspark.ml.wrapper import JavaParams

    for held in _held_by(frame._jdf.queryExecution().analyzed(), frame.sparkSession.sparkContext._gateway):
        if held.getClass().getSimpleName() in KINDS:
            return JavaParams._from_java(held)
    raise UnsupportedModelError(
        "No tree model of Spark ML has computed predictions for these rows, but PruneEstimator without an estimator "
        "prunes such a model. Put the tree estimator before this stage, or pass PruneEstimator(estimator=…)."
    )


def _held_by(plan: Any, gateway: Any) -> Iterator[Any]:
    """Yield the objects captured by the functions of a plan, starting with the function applied last."""
    for expression in _all(plan.expressions()):
        yield from _held_in(expression, gateway)
    for child in _all(plan.children()):
        yield from _held_by(child, gateway)


def _held_in(expression: Any, gateway: Any) -> Iterator[Any]:
    if expression.getClass().getSimpleName() == "ScalaUDF":
        for captured in _captured(expression.function(), gateway):
            yield captured.value() if captured.getClass().getSimpleName().endswith("Broadcast") else captured
    for child in _all(expression.children()):
        yield from _held_in(child, gateway)


def _captured(function: Any, gateway: Any) -> Iterator[Any]:
    """Yield the objects captured by a Scala closure."""
    from py4j.protocol import Py4JError

    jvm = gateway.jvm
    try:
        method = function.getClass().getDeclaredMethod("writeReplace", gateway.new_array(jvm.java.lang.Class, 0))
        method.setAccessible(True)
        form = method.invoke(function, gateway.new_array(jvm.java.lang.Object, 0))
        captured = [form.getCapturedArg(place) for place in range(form.getCapturedArgCount())]
    # Not a serialisable lambda.
    except Py4JError:
        return
    yield from (one for one in captured if hasattr(one, "getClass"))


def _all(sequence: Any) -> list[Any]:
    return [sequence.apply(place) for place in range(sequence.size())]
