"""Cut a large forest to the nodes that a small budget could use, so that a descent does not visit all others.

A subtree below a node reduces squared error by at most the spread of the targets there, Σ w |y − mean|². Nodes below
splits of small spread are therefore not worth their price. Where a budget is a small part of all nodes, the descent
works on a forest without them, and its prunings are those of the given forest.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.data.rows import LocalRows
from secateur.forest import Forest
from secateur.forest.routing import leaf_type
from secateur.forest.subforest import Decision, subforest
from secateur.losses.objectives import objective_of
from secateur.path.build import Point
from secateur.problem import Problem
from secateur.solvers.ensemble.additive_model import as_numbers

_PER_NODE, _PER_NODE_OF_MANY, _MANY = 16, 8, 16
"""Number of nodes left for each node of the budget, and the same from `_MANY` outputs on, whose nodes take long.

With 16, prunings had the same validation loss as those of the whole forest, on average. With 8, that of a forest of ten
classes was up to 12 % higher.
"""
_LARGE = 1_000_000
"""Number of values, nodes times outputs, from which a forest is cut."""


@dataclass(frozen=True, eq=False)
class SmallerForest:
    """A part of a forest with the same roots, and the rows routed through it.

    Attributes
    ----------
    forest : Forest
        The given forest.
    problem : Problem
        The problem for the smaller forest.
    nodes : (n_nodes of the smaller forest,)
        The indices of its nodes in the given forest.
    """

    forest: Forest
    problem: Problem
    nodes: NDArray[np.intp]

    def route(self, rows: LocalRows) -> LocalRows:
        """Return rows of the given forest, routed through the smaller one."""
        marked = np.zeros(self.forest.n_nodes, bool)
        marked[self.nodes] = True
        return _routed(self.forest, self.problem.forest, marked, rows)

    def restored(self, point: Point) -> Point:
        """Return a pruning of the smaller forest as one of the given forest."""
        keep = np.zeros(self.forest.n_nodes, bool)
        keep[self.nodes[point.keep]] = True
        return replace(point, keep=keep)


def smaller_forest(problem: Problem, budget: int | None) -> SmallerForest | None:
    """Return the part of a forest that a node budget could use; None if the forest is too small to save time.

    The trees must predict the target itself, and be fitted by squared error, so that the spread of the targets bounds
    what a subtree gains.
    """
    forest, objective = problem.forest, objective_of(problem.forest)
    n_nodes = (_PER_NODE_OF_MANY if forest.n_outputs >= _MANY else _PER_NODE) * (budget or 0)
    if budget is None or forest.n_nodes * forest.n_outputs < _LARGE or forest.n_nodes < 2 * n_nodes:
        return None
    if not forest.trees_predict_target or objective is None or not objective.quadratic or forest.symmetric:
        return None
    rows = problem.sample
    target = objective.target(as_numbers(forest, rows.y))
    if not forest.n_classes:
        target = target - rows.weight @ target / rows.weight.sum()
    spread = kernels.target_spread(rows.leaves, forest.tree_start, forest.right, rows.weight, target)
    of_splits = spread[forest.is_split]
    place = len(of_splits) - n_nodes // 2
    least = float(np.partition(of_splits, place)[place])
    marked = kernels.mark_spread(forest.tree_start, forest.right, spread, least)
    smaller = subforest(forest, Decision(marked))
    routed = _routed(forest, smaller, marked, rows)
    return SmallerForest(forest, replace(problem, forest=smaller, row_source=routed), np.flatnonzero(marked))


def _routed(forest: Forest, smaller: Forest, marked: NDArray[np.bool_], rows: LocalRows) -> LocalRows:
    """Return rows of a forest, routed through the smaller one that has the marked nodes."""
    # `forest.parent` would stay in memory during the search.
    number = kernels.lift_to_kept(kernels.tree_parent(forest.right), marked)
    leaves = np.empty(rows.leaves.shape, leaf_type(smaller))
    for tree, (start, stop) in enumerate(zip(forest.root, forest.tree_start[1:], strict=True)):
        local = (number[start:stop] - number[start]).astype(leaves.dtype)
        np.take(local, rows.leaves[tree], out=leaves[tree])
    return replace(rows, leaves=leaves)
