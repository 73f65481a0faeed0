"""Run secateur.forest.routing.route on a model already read; the conversion of float64 rows is timed."""

from benchmarks.discovery import Method
from benchmarks.measure import Job
from benchmarks.tasks import RowsTask
from secateur import as_forest
from secateur.forest.routing import route


def prepare(task: RowsTask) -> Job:
    forest = as_forest(task.model)
    return Job(lambda: route(forest, task.X).T)


METHOD = Method("secateur_route", "leaves", prepare)
