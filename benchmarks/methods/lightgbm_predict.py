"""Run `predict` of LightGBM in one thread, raw scores."""

from typing import Any

from benchmarks.discovery import Method
from benchmarks.measure import Job
from benchmarks.tasks import RowsTask


def prepare(task: RowsTask) -> Job | str:
    if not hasattr(task.model, "booster_"):
        return "not a LightGBM model"
    booster: Any = task.model.booster_
    return Job(lambda: booster.predict(task.X, raw_score=True, num_threads=1))


METHOD = Method("lightgbm_predict", "sums", prepare)
