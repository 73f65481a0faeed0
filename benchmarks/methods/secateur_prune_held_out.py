"""Run secateur.prune with WeakestLink on the validation rows only: path on three quarters, selection on the rest."""

from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.discovery import Method
from benchmarks.tasks import Limit, PruneTask, prune_within


def prepare(task: PruneTask) -> Callable[[Limit], Any]:
    return partial(prune_within, task.model, task.validation, 0.25)


METHOD = Method("secateur_held_out", "prune", prepare)
