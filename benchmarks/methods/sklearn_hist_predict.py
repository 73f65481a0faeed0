"""Run `predict` of HistGradientBoosting in one thread."""

from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks.discovery import Method
from benchmarks.measure import Job
from benchmarks.tasks import RowsTask


def prepare(task: RowsTask) -> Job | str:
    if not hasattr(task.model, "_predictors"):
        return "not a HistGradientBoosting model"

    def run() -> Any:
        with threadpool_limits(1):
            return task.model.predict(task.X)

    return Job(run)


METHOD = Method("sklearn_predict", "sums", prepare)
