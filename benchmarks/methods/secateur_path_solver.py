"""Run the WeakestLink solver alone: the tree is read and the rows are routed before timing."""

import numpy as np
from numpy.typing import NDArray

from benchmarks.discovery import Method
from benchmarks.measure import Job
from benchmarks.tasks import PathTask
from secateur.costs import LeafCost
from secateur.data.rows import read_sample
from secateur.libraries import adapt
from secateur.losses import default_loss
from secateur.problem import Problem
from secateur.solvers import WeakestLink


def prepare(task: PathTask) -> Job:
    adapter = adapt(task.model)
    sample = read_sample(adapter, task.X, task.y)

    def run() -> NDArray[np.float64]:
        # A new problem each time: a problem remembers its sums.
        problem = Problem(adapter.forest, sample, default_loss(adapter.forest), LeafCost())
        penalty: NDArray[np.float64] = WeakestLink().path(problem).table["penalty"]
        return penalty

    return Job(run)


METHOD = Method("secateur_solver", "path", prepare)
