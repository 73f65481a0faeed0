"""Run `apply` of a scikit-learn forest in one thread."""

from typing import Any

from benchmarks.discovery import Method
from benchmarks.measure import Job
from benchmarks.tasks import RowsTask


def prepare(task: RowsTask) -> Job:
    model: Any = task.model.set_params(n_jobs=1)
    return Job(lambda: model.apply(task.X))


METHOD = Method("sklearn_apply", "leaves", prepare)
