"""Prune each tree bottom-up to the least expected error under smoothed class frequencies (MEP)."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, final, get_args

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.forest import Forest
from secateur.forest.shrinkage import m_estimate
from secateur.path import Path
from secateur.path.build import Point, trace_points
from secateur.path.evaluation import match_by_parameter
from secateur.problem import Problem
from secateur.solvers.base import Solver, check_choices, check_valid
from secateur.solvers.single_tree._two_point_path import ONLY_OWN_PREDICTIONS, cut_below

Values = Literal["original", "estimated"]


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

    With two classes and m=None, a split into two pure leaves of different classes always has a lower expected error
    than the leaf in its place, so that little is cut from a tree grown until its leaves are pure. Use a larger m there.

    Parameters
    ----------
    m : float or tuple of float, optional
        Weight of the prior, in rows; a larger value prunes more. With a tuple, the path has one point for each.
    values : "original" or "estimated"
        With "estimated", a leaf predicts the smoothed class frequencies from which its error is computed.

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

    m: float | tuple[float, ...] | None = None
    values: Values = "original"

    name = "minimum_error"
    minimises_errors = True
    needs_rows = False

    def __post_init__(self) -> None:
        check_choices(self, values=get_args(Values))
        weights = self.m if isinstance(self.m, tuple) else (0.0 if self.m is None else self.m,)
        valid = len(weights) > 0 and all(0 <= m < np.inf for m in weights)
        check_valid(self, "m", valid, "a number of rows from 0 on, a tuple of them, or None", "10.0")

    @property
    def changes(self) -> tuple[str, ...]:
        """Return "value" if leaves predict estimates."""
        return ("value",) if self.values == "estimated" else ()

    def unsupported(self, problem: Problem) -> str | None:
        """Return a reason if the model is a regressor or a boosted ensemble."""
        if not problem.forest.n_classes:
            return "the expected error is defined by class counts, but this model predicts numbers. Use reduced_error."
        return None if problem.forest.trees_predict_target else ONLY_OWN_PREDICTIONS

    def path(self, problem: Problem) -> Path:
        """Return the unpruned forest and its minimum-error pruning for each weight of the prior."""
        return trace_points(problem, self._points(problem), repr(self), ensemble=False)

    def match(self, path: Path, other: Path, *, same_size: bool = False) -> NDArray[np.intp]:
        """Return for each point of `path` the point of `other` with the same weight of the prior."""
        return match_by_parameter(path, other) if isinstance(self.m, tuple) else super().match(path, other)

    def _points(self, problem: Problem) -> Iterator[Point]:
        forest = problem.forest
        for m in self.m if isinstance(self.m, tuple) else (self.m,):
            estimate = _estimate(problem, m)
            expected = problem.weight * _expected_error(forest, estimate)
            keep = cut_below(forest, kernels.cheapest_cut(forest.right, expected))
            value = estimate[keep] * forest.unit if self.values == "estimated" else None
            yield Point(np.nan if m is None else m, keep, value)


def _estimate(problem: Problem, m: float | None) -> NDArray[np.float64]:
    """Return the smoothed class frequencies at each node, (n_nodes, n_outputs)."""
    forest, stats = problem.forest, problem.stats
    blocks = []
    for first, stop in _targets(forest):
        counts = stats.counts[:, first:stop]
        k, root = stop - first, counts[forest.root[0]]
        # Niblett and Bratko is the m-estimate with a uniform prior 1/k and m = k.
        prior, weight = (np.full(k, 1 / k), float(k)) if m is None else (root / root.sum(), m)
        mean = counts / np.maximum(stats.weight, 1e-300)[:, None]
        blocks.append(m_estimate(stats.weight, mean, prior, weight))
    return np.hstack(blocks)


def _expected_error(forest: Forest, estimate: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the expected error rate of each node as a leaf, (n_nodes,), averaged over targets."""
    nodes = np.arange(forest.n_nodes)
    labels = [forest.value[:, first:stop].argmax(axis=1) + first for first, stop in _targets(forest)]
    return 1 - np.mean([estimate[nodes, label] for label in labels], axis=0)


def _targets(forest: Forest) -> Iterator[tuple[int, int]]:
    """Yield the range of columns of each target's classes."""
    return pairwise(np.cumsum((0, *forest.n_classes)).tolist())
