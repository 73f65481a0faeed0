"""secateur.prune with WeakestLink: the path is made on the training rows, the point chosen on the validation rows."""

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
                task.train.X,
                task.train.y,
                solver="weakest_link",
                validation=(task.validation.X, task.validation.y),
                max_loss_increase=limit.max_loss_increase,
                max_nodes=limit.max_nodes,
            )

    return prune


METHOD = Method("secateur", "prune", prepare)
