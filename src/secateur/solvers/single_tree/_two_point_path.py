"""Build two-point paths for methods with a single result: the unpruned forest and its pruning."""

import numpy as np
from numpy.typing import NDArray

from secateur.forest import Forest
from secateur.path import PackedMasks, Path
from secateur.path.build import trace_path
from secateur.problem import Problem

ONLY_OWN_PREDICTIONS = (
    "it compares the prediction of each node with the target, but a tree of this model predicts only a contribution to "
    "the target. Use weakest_link."
)


def cut_below(forest: Forest, cut: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the mask that removes all descendants of the nodes in `cut`, (n_nodes,)."""
    # The descendants of v are the slice v + 1 : end[v] of the preorder.
    cuts, n = np.flatnonzero(cut & forest.is_split), forest.n_nodes
    begin, end = np.bincount(cuts + 1, minlength=n + 1), np.bincount(forest.end[cuts], minlength=n + 1)
    # The running sum counts the cut ancestors of each node.
    return np.cumsum(begin - end)[:n] == 0


def two_points(problem: Problem, keep: NDArray[np.bool_], solver: str) -> Path:
    """Return the path of the unpruned forest and one pruning; the method has no penalty, so that column is NaN."""
    masks = PackedMasks.pack(np.array([np.ones_like(keep), keep]))
    return trace_path(problem, masks, np.full(2, np.nan), solver)
