"""secateur.prune with WeakestLink and only the validation rows: made on three quarters of them, chosen on the rest."""

import warnings
from collections.abc import Callable
from typing import Any

import secateur
from benchmarks.discovery import Method
from benchmarks.tasks import Limit, PruneTask


def prepare(task: PruneTask) -> Callable[[Limit], Any]:
    def prune(limit: Limit) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that nothing was pruned is seen in the table
            return secateur.prune(
                task.model,
                task.validation.X,
                task.validation.y,
                solver="weakest_link",
                validation=0.25,
                max_loss_increase=limit.max_loss_increase,
                max_nodes=limit.max_nodes,
            )

    return prune


METHOD = Method("secateur_held_out", "prune", prepare)
