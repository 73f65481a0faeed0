"""Run the kernel of WeakestLink: from risks and prices per node to one critical penalty per split."""

import numpy as np
from numpy.typing import NDArray

from benchmarks.discovery import Method
from benchmarks.measure import Job
from benchmarks.tasks import PathTask
from secateur import kernels
from secateur.costs import LeafCost
from secateur.data.rows import read_sample
from secateur.libraries import adapt
from secateur.losses import default_loss
from secateur.problem import Problem


def prepare(task: PathTask) -> Job:
    adapter = adapt(task.model)
    forest = adapter.forest
    problem = Problem(forest, read_sample(adapter, task.X, task.y), default_loss(forest), LeafCost())
    arrays = (forest.parent, forest.right, problem.risk, *problem.prices)

    def run() -> NDArray[np.float64]:
        critical = kernels.weakest_link(*arrays)
        return np.union1d(0.0, critical[np.isfinite(critical)])

    return Job(run)


METHOD = Method("secateur_kernel", "path", prepare)
