"""Keep the first trees of a forest, as many as fit into the reference's number of nodes; at least one."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.discovery import Method
from benchmarks.tasks import Limit, PruneTask, count_nodes


def prepare(task: PruneTask) -> Callable[[Limit], Any] | str:
    if not hasattr(task.model, "estimators_"):
        return "a single tree has no fewer trees"
    nodes = np.cumsum([count_nodes(tree) for tree in task.model.estimators_])

    def prune(limit: Limit) -> Any:
        n_trees = max(int(np.searchsorted(nodes, limit.same_nodes or 0, side="right")), 1)
        small = copy.copy(task.model)
        small.estimators_ = task.model.estimators_[:n_trees]
        small.n_estimators = n_trees
        return small

    return prune


METHOD = Method("fewer_trees", "prune", prepare)
