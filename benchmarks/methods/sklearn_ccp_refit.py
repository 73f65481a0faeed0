"""Refit the tree in scikit-learn with values of `ccp_alpha` from its path, selected on the validation rows."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.tree import BaseDecisionTree

from benchmarks.discovery import Method
from benchmarks.tasks import Limit, PruneTask, count_nodes, model_loss

_CANDIDATES = 100


def prepare(task: PruneTask) -> Callable[[Limit], Any] | str:
    if not isinstance(task.model, BaseDecisionTree):
        return "only a single tree has a cost-complexity path in scikit-learn"

    @lru_cache
    def candidates() -> list[tuple[int, float, Any]]:
        """Return size, validation loss and tree for at most 100 penalties, evenly spread over the path."""
        path = task.model.cost_complexity_pruning_path(task.train.X, task.train.y)
        places = np.linspace(0, len(path.ccp_alphas) - 1, min(_CANDIDATES, len(path.ccp_alphas))).astype(int)
        trees = [
            clone(task.model).set_params(ccp_alpha=max(alpha, 0.0)).fit(task.train.X, task.train.y)
            for alpha in path.ccp_alphas[places]
        ]
        return [(count_nodes(tree), model_loss(tree, task.validation), tree) for tree in trees]

    def prune(limit: Limit) -> Any:
        if limit.max_loss_increase is not None:
            bound = model_loss(task.model, task.validation) * (1 + limit.max_loss_increase)
            return min((c for c in candidates() if c[1] <= bound), key=lambda c: c[0])[2]
        return min((c for c in candidates() if c[0] <= (limit.max_nodes or 0)), key=lambda c: c[1])[2]

    return prune


METHOD = Method("sklearn_ccp_refit", "prune", prepare)
