"""Minimum-error pruning (MEP), Niblett and Bratko 1986, Cestnik and Bratko 1991: expected errors, bottom-up."""

from dataclasses import dataclass
from itertools import pairwise
from typing import final

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.forest import Forest
from secateur.losses import Loss, ZeroOne
from secateur.path import Path
from secateur.problem import Problem
from secateur.solvers.base import Solver
from secateur.solvers.single_tree._two_point_path import ONLY_OWN_PREDICTIONS, cut_below, two_points


@final
@dataclass(frozen=True, repr=False)
class MinimumError(Solver):
    """Prune by the errors to expect when the class counts of a node are smoothed.

    A leaf with n rows, of which n_c are of the class c it predicts, among k classes has the expected error

        (n − n_c + k − 1) / (n + k)                    Niblett and Bratko (m=None), or
        (n − n_c + (1 − p_c) m) / (n + m)              the m-estimate, p_c the share of class c among all rows.

    A split is cut when its expected error as a leaf is at most the mean of its sides', weighted by their rows; a node
    without rows is a tie and goes. Made for the rows the tree was grown on; classification only; several targets are
    averaged. Exact for its own criterion: bottom-up finds the pruning with the least expected error. O(nodes).

    Parameters
    ----------
    m : float, optional
        How many rows the prior is worth; larger prunes more.
    """

    m: float | None = None

    name = "minimum_error"

    @property
    def needs_rows(self) -> bool:
        """No: sums at the nodes will do."""
        return False

    def default_loss(self, forest: Forest) -> Loss | None:
        """Count wrong labels: that is what is expected here."""
        return ZeroOne() if forest.n_classes else None

    def unsupported(self, problem: Problem) -> str | None:
        """Return a reason for numbers and for boosting."""
        if not problem.forest.n_classes:
            return "the expected error is defined by class counts, and this model predicts numbers. Use reduced_error."
        return None if problem.forest.trees_predict_target else ONLY_OWN_PREDICTIONS

    def path(self, problem: Problem) -> Path:
        """Return the unpruned forest and its minimum-error pruning."""
        forest = problem.forest
        expected = problem.weight * _expected_error(problem, self.m)
        return two_points(problem, cut_below(forest, kernels.cheapest_cut(forest.right, expected)), repr(self))


def _expected_error(problem: Problem, m: float | None) -> NDArray[np.float64]:
    """Return the smoothed share of wrong labels at each node, (n_nodes,), averaged over targets."""
    forest, stats = problem.forest, problem.stats
    places = np.cumsum((0, *forest.n_classes))
    nodes = np.arange(forest.n_nodes)
    result = np.zeros(forest.n_nodes)
    for first, stop in pairwise(places):
        counts = stats.counts[:, first:stop]
        label = forest.value[:, first:stop].argmax(axis=1)
        prior = 1 / (stop - first) if m is None else counts[forest.root[0]][label] / counts[forest.root[0]].sum()
        rows = float(stop - first) if m is None else m
        result += (stats.weight - counts[nodes, label] + (1 - prior) * rows) / np.maximum(stats.weight + rows, 1e-300)
    return result / len(forest.n_classes)
