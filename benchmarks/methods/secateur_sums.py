"""Run secateur's routing and sums of leaf values on a model already read."""

from benchmarks.discovery import Method
from benchmarks.measure import Job
from benchmarks.tasks import RowsTask
from secateur import as_forest
from secateur.forest.routing import raw_scores, route


def prepare(task: RowsTask) -> Job:
    forest = as_forest(task.model)
    return Job(lambda: raw_scores(forest, route(forest, task.X))[:, 0])


METHOD = Method("secateur_sums", "sums", prepare)
