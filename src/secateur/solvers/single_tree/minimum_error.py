"""Prune each tree bottom-up to the least expected error under smoothed class frequencies (MEP)."""

from dataclasses import dataclass
from itertools import pairwise
from typing import final

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.path import Path
from secateur.problem import Problem
from secateur.solvers.base import Solver
from secateur.solvers.single_tree._two_point_path import ONLY_OWN_PREDICTIONS, cut_below, two_points


@final
@dataclass(frozen=True, repr=False)
class MinimumError(Solver):
    """Minimum-error pruning (MEP): minimise the expected error under smoothed class frequencies.

    It minimises Σ_leaves n(leaf) · expected_error(leaf) over all prunings of each tree. With k classes, a leaf with n
    rows, n_c of them of the predicted class c, has the expected error

        (n − n_c + k − 1) / (n + k)                    Niblett and Bratko (m=None), or
        (n − n_c + (1 − p_c) m) / (n + m)              the m-estimate, p_c the prior probability of class c.

    The prior p_c is the fraction of class c among all rows. A split becomes a leaf if its expected error as a leaf is
    at most the mean of its children's expected errors, weighted by their rows. Ties prune, and a node without rows is
    a tie. The method is designed for the rows the tree was trained on. It handles classification only and averages
    over several targets.

    Exact for this criterion: the bottom-up pass finds the pruning with the least expected error. O(nodes).

    Parameters
    ----------
    m : float, optional
        Weight of the prior, in rows; a larger value prunes more.

    References
    ----------
    T. Niblett and I. Bratko (1986). Learning decision rules in noisy domains. Expert Systems 86.

    B. Cestnik and I. Bratko (1991). On estimating probabilities in tree pruning. EWSL-91.

    Examples
    --------
    >>> import secateur as sc
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> tree = DecisionTreeClassifier(random_state=0).fit(X, y)
    >>> sc.prune_path(tree, X, y, solver=sc.solvers.MinimumError(m=20.0)).table["n_leaves"].tolist()
    [12, 9]
    """

    m: float | None = None

    name = "minimum_error"
    minimises_errors = True
    needs_rows = False

    def unsupported(self, problem: Problem) -> str | None:
        """Return a reason if the model is a regressor or a boosted ensemble."""
        if not problem.forest.n_classes:
            return "the expected error is defined by class counts, but this model predicts numbers. Use reduced_error."
        return None if problem.forest.trees_predict_target else ONLY_OWN_PREDICTIONS

    def path(self, problem: Problem) -> Path:
        """Return the unpruned forest and its minimum-error pruning."""
        forest = problem.forest
        expected = problem.weight * _expected_error(problem, self.m)
        return two_points(problem, cut_below(forest, kernels.cheapest_cut(forest.right, expected)), repr(self))


def _expected_error(problem: Problem, m: float | None) -> NDArray[np.float64]:
    """Return the expected error rate of each node as a leaf, (n_nodes,), averaged over targets."""
    forest, stats = problem.forest, problem.stats
    offsets = np.cumsum((0, *forest.n_classes))
    nodes = np.arange(forest.n_nodes)
    result = np.zeros(forest.n_nodes)
    for first, stop in pairwise(offsets):
        counts = stats.counts[:, first:stop]
        label = forest.value[:, first:stop].argmax(axis=1)
        prior = 1 / (stop - first) if m is None else counts[forest.root[0]][label] / counts[forest.root[0]].sum()
        # Niblett and Bratko is the m-estimate with a uniform prior 1/k and m = k.
        pseudo_rows = float(stop - first) if m is None else m
        result += (stats.weight - counts[nodes, label] + (1 - prior) * pseudo_rows) / np.maximum(
            stats.weight + pseudo_rows, 1e-300
        )
    return result / len(forest.n_classes)
