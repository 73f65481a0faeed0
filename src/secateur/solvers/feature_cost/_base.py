"""Define the base class of the solvers that trade wrong labels of single trees against feature cost."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.costs import Cost, FeatureCost
from secateur.errors import InvalidInputError
from secateur.problem import Problem
from secateur.solvers.base import Solver

Floats = NDArray[np.float64]


class FeatureSolver(Solver):
    """Base class of solvers that minimise the wrong labels of single trees plus the cost of the features rows need."""

    minimises_errors = True

    def default_cost(self) -> Cost | None:
        """Return the default cost: the number of distinct features a row needs."""
        return FeatureCost()

    def unsupported(self, problem: Problem) -> str | None:
        """Return why the problem is unsupported: the cost is not shared, or the trees predict no labels."""
        forest = problem.forest
        if not problem.cost.shared:
            return (
                f"it needs a feature cost, but the cost {problem.cost.name!r} is a sum over nodes. Use "
                "cost=FeatureCost(prices), or weakest_link."
            )
        if not forest.n_classes:
            return (
                "it minimises the number of wrong labels, but this model predicts numbers. Use block_descent with "
                "max_features, or train a classifier on a binned target."
            )
        if len(forest.n_classes) > 1:
            return (
                f"it supports one target, but this model has {len(forest.n_classes)}. Train and prune a model for each "
                "target."
            )
        if not forest.trees_predict_target:
            return (
                "it counts the wrong labels of single trees, but a tree of this model predicts only a contribution to "
                "the ensemble's score. Use a random forest, or block_descent with max_features."
            )
        if not problem.loss.counts_errors:
            return (
                f"it minimises the number of wrong labels, but the loss is {problem.loss.name!r}. Use loss='zero_one'."
            )
        return None


def node_labels(problem: Problem, errors: str) -> NDArray[np.intp]:
    """Return the label predicted at each node, (n_nodes,).

    With `errors="train"` it is the most frequent label of the rows at the node, otherwise the model's label.
    """
    votes = problem.stats.counts if errors == "train" else problem.forest.value
    return votes.argmax(axis=1)


def class_weights(problem: Problem, class_weight: Any) -> Floats:
    """Return the weight of an error for each class, (n_classes,)."""
    n_classes = problem.forest.n_classes[0]
    if class_weight is None:
        return np.ones(n_classes)
    if isinstance(class_weight, str) and class_weight == "balanced":
        total = problem.stats.counts[problem.forest.root[0]]
        return total.sum() / np.maximum(n_classes * total, 1e-300) * (total > 0)
    weights = np.atleast_1d(np.array(class_weight, np.float64))
    if weights.shape != (n_classes,) or not (np.isfinite(weights) & (weights >= 0)).all() or not weights.any():
        raise InvalidInputError(
            f"class_weight={class_weight!r}, but it must be 'balanced' or a tuple of {n_classes} finite nonnegative "
            "weights that are not all 0. Give one weight per class, in the order of the model's classes."
        )
    return weights
