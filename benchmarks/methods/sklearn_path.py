"""Run scikit-learn's cost_complexity_pruning_path, which refits the tree; the time of a plain fit is subtracted."""

from sklearn.base import clone

from benchmarks.discovery import Method
from benchmarks.measure import Job
from benchmarks.tasks import PathTask


def prepare(task: PathTask) -> Job:
    return Job(
        run=lambda: task.model.cost_complexity_pruning_path(task.X, task.y).ccp_alphas,
        minus=lambda: clone(task.model).fit(task.X, task.y),
    )


METHOD = Method("sklearn", "path", prepare)
