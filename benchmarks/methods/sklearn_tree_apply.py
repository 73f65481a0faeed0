"""Run `Tree.apply` of a scikit-learn forest tree by tree: no validation, no conversion, no thread pool."""

import numpy as np
from numpy.typing import NDArray

from benchmarks.discovery import Method
from benchmarks.measure import Job
from benchmarks.tasks import RowsTask


def prepare(task: RowsTask) -> Job | str:
    if task.X.dtype != np.float32:
        return "Tree.apply takes float32 only"

    def run() -> NDArray[np.intp]:
        return np.array([tree.tree_.apply(task.X) for tree in task.model.estimators_]).T

    return Job(run)


METHOD = Method("sklearn_tree_apply", "leaves", prepare)
