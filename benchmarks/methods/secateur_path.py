"""Run secateur.prune_path from the fitted tree and rows to the whole path: reading, routing, sums, solver, table."""

import secateur
from benchmarks.discovery import Method
from benchmarks.measure import Job
from benchmarks.tasks import PathTask


def prepare(task: PathTask) -> Job:
    return Job(lambda: secateur.prune_path(task.model, task.X, task.y, cost="leaves").table["penalty"])


METHOD = Method("secateur", "path", prepare)
