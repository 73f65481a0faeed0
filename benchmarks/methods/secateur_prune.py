"""Run secateur.prune with WeakestLink: path on the training rows, selection on the validation rows."""

from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.discovery import Method
from benchmarks.tasks import Limit, PruneTask, prune_within


def prepare(task: PruneTask) -> Callable[[Limit], Any]:
    return partial(prune_within, task.model, task.train, (task.validation.X, task.validation.y))


METHOD = Method("secateur", "prune", prepare)
