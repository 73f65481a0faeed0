"""The solver for a caller who names none."""

from secateur.costs import Cost, SharedCost
from secateur.forest import Forest
from secateur.solvers.base import Solver
from secateur.solvers.combined import Several
from secateur.solvers.ensemble.additive_model import not_additive
from secateur.solvers.ensemble.block_descent import BlockDescent
from secateur.solvers.feature_cost.cost_descent import CostDescent
from secateur.solvers.feature_cost.min_cut import MinCut
from secateur.solvers.single_tree.weakest_link import WeakestLink


def automatic(forest: Forest, cost: Cost | None, *, new_values: bool) -> Solver:
    """Return BlockDescent for an ensemble that is a sum and can hold new values, else WeakestLink.

    What is bought for rows and shared between trees is for CostDescent, and where trees give labels of their own for
    MinCut, too.

    All ridges, and kept values, are on one path: which suits the model is for the rows that choose a point to tell.
    """
    if isinstance(cost, SharedCost):
        return _for_features(forest, new_values and not not_additive(forest))
    if forest.n_trees < 2 or not new_values or not_additive(forest):
        return WeakestLink()
    squares = forest.response.linear
    ridge = (5.0, 25.0, 100.0, 400.0) if squares else (1.0, 5.0, 25.0)
    return BlockDescent(granularity="layer" if forest.symmetric else "node", values="both", ridge=ridge)


def _for_features(forest: Forest, new_values: bool) -> Solver:
    """Return the solvers for features that cost."""
    if not new_values:
        return MinCut(scope="both")
    if len(forest.n_classes) != 1 or not forest.trees_predict_target:
        return CostDescent()
    return Several((MinCut(scope="both"), CostDescent()))
