"""The tree model behind a DataFrame: Spark ML hands a stage the rows the stage before has transformed, not its model.

But the plan of those rows ends with the functions that make the predictions, and these hold the model. They are asked
for it as Spark itself asks closures what they have captured before it sends them away.
"""

from collections.abc import Iterator
from typing import Any

from secateur.libraries.spark.saved_model import KINDS


def fitted_before(frame: Any) -> Any:
    """Return the tree model of Spark ML that was the last to transform a DataFrame.

    Raises
    ------
    ValueError
        If there is none, or the plan cannot be looked at, as over Spark Connect.
    """
    if not hasattr(frame, "_jdf"):
        raise ValueError(
            "The model of the stage before cannot be seen over Spark Connect, which keeps plans to itself. "
            "Use PruneEstimator(estimator=…), or secateur.spark.prune(model, df)."
        )
    from pyspark.ml.wrapper import JavaParams

    for held in _held_by(frame._jdf.queryExecution().analyzed(), frame.sparkSession.sparkContext._gateway):
        if held.getClass().getSimpleName() in KINDS:
            return JavaParams._from_java(held)
    raise ValueError(
        "No tree model of Spark ML has made predictions for these rows; one is needed to prune. Put the tree estimator "
        "before this stage, or pass PruneEstimator(estimator=…)."
    )


def _held_by(plan: Any, gateway: Any) -> Iterator[Any]:
    """Yield what the functions of a plan hold, the last to be applied first."""
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
    """Yield the objects a Scala closure has captured."""
    from py4j.protocol import Py4JError

    jvm = gateway.jvm
    try:
        method = function.getClass().getDeclaredMethod("writeReplace", gateway.new_array(jvm.java.lang.Class, 0))
        method.setAccessible(True)
        form = method.invoke(function, gateway.new_array(jvm.java.lang.Object, 0))
        captured = [form.getCapturedArg(place) for place in range(form.getCapturedArgCount())]
    except Py4JError:  # a function of another kind
        return
    yield from (one for one in captured if hasattr(one, "getClass"))


def _all(sequence: Any) -> list[Any]:
    return [sequence.apply(place) for place in range(sequence.size())]
