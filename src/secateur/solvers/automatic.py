"""The solver for a caller who names none."""

from secateur.costs import Cost, SharedCost
from secateur.forest import Forest
from secateur.solvers.additive import not_additive
from secateur.solvers.base import Solver
from secateur.solvers.block_descent import BlockDescent
from secateur.solvers.min_cut import MinCut
from secateur.solvers.weakest_link import WeakestLink


def automatic(forest: Forest, cost: Cost | None, *, new_values: bool) -> Solver:
    """Return BlockDescent for an ensemble that is a sum and can hold new values, else WeakestLink.

    What is bought for rows and shared between trees is for MinCut.

    All ridges, and kept values, are on one path: which suits the model is for the rows that choose a point to tell.
    """
    if isinstance(cost, SharedCost):
        return MinCut(scope="both")
    if forest.n_trees < 2 or not new_values or not_additive(forest):
        return WeakestLink()
    squares = forest.response.linear
    ridge = (5.0, 25.0, 100.0, 400.0) if squares else (1.0, 5.0, 25.0)
    return BlockDescent(granularity="layer" if forest.symmetric else "node", values="both", ridge=ridge)
