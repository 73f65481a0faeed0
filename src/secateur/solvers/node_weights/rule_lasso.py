"""The rule lasso, RuleFit's selection step (Friedman and Popescu 2008): a sparse sum of nodes, each a rule."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.path import Path
from secateur.problem import Problem
from secateur.solvers.base import Solver
from secateur.solvers.node_weights._weights import Block, Weights, blocks, cannot_weigh, learn_falling, path_of
from secateur.solvers.penalty_grid import check_penalties, falling

Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, repr=False)
class RuleLasso(Solver):
    """Choose nodes as rules and learn their weights, at every penalty of a falling sequence.

    Every node v is a rule, that a row passes it, with a weight w; the intercept b has no penalty. It minimises

        1/2n Σ_rows (b + Σ_{v on the row's ways} w_v − y)² + penalty · Σ|w_v|,

    whatever the tree says of the weights above and below each other, which is what `MaxHeap` adds. y is the number, or
    ±1 for a class; with more than two classes each has its own weights. A point of the path keeps the nodes with a
    weight, all above them, and siblings, so it has more nodes than rules.

    The problem is convex, and every point its minimum up to a tolerance: the column `criticality` is by how much the
    gradient misses the conditions of a minimum, as a share of the largest penalty of use. Weights need not be unique,
    as a node is the sum of its children; predictions are. One tree is solved without iterations, in O(nodes · depth)
    per penalty; trees together in sweeps of O(rows · trees), of which small penalties need hundreds.

    Parameters
    ----------
    penalties : int or tuple of float
        How many, from the one that empties every tree down to `smallest` times that; or which.
    smallest : float
    joint : bool
        Learn all trees at once, as RuleFit does, instead of each tree by itself.
    tolerance : float
        Sweeps end when the criticality is at most this.
    max_sweeps : int
        When to give up, at each penalty.

    References
    ----------
    Friedman and Popescu (2008), Predictive learning via rule ensembles; equation (2.1) of Nie et al. (2017).
    """

    penalties: int | tuple[float, ...] = 40
    smallest: float = 1e-3
    joint: bool = True
    tolerance: float = 1e-6
    max_sweeps: int = 1000

    name = "rule_lasso"

    def __post_init__(self) -> None:
        check_penalties(self.penalties, self.smallest)
        if not self.tolerance > 0:
            raise ValueError(f"tolerance={self.tolerance!r}; it must be above 0. Correct it.")
        if not self.max_sweeps >= 1:
            raise ValueError(f"max_sweeps={self.max_sweeps!r}; it must be at least 1. Correct it.")

    @property
    def changes(self) -> tuple[str, ...]:
        """Values: a leaf predicts the sum of the weights on the way to it."""
        return ("value",)

    @property
    def uses_ensemble_loss(self) -> bool:
        """Whether trees are learned together."""
        return self.joint

    def unsupported(self, problem: Problem) -> str | None:
        """Return a reason for several targets, for boosted classifiers, and without `joint` for boosting."""
        return cannot_weigh(problem, self.joint)

    def path(self, problem: Problem) -> Path:
        """Return the unpruned forest and what was learned at each penalty, by falling size."""
        whole = blocks(problem, self.joint)
        return path_of(problem, self.learn(whole, problem), repr(self), joint=self.joint, keep_values=False)

    def learn(self, whole: list[Block], problem: Problem) -> Iterator[Weights]:
        """Return the weights at each penalty, each descent starting from the one before."""
        n_targets = len(whole[0].targets) if whole else 1
        largest = max((_largest_penalty(block, k) for block in whole for k in range(n_targets)), default=0.0) or 1.0

        def fit(block: Block, k: int, penalty: float, start: Floats) -> tuple[Floats, float, float]:
            control = (self.tolerance * largest, self.max_sweeps)
            rows = (block.parent, block.leaves, block.weight, block.targets[k])
            w, b, violation, _ = kernels.fit_rule_lasso(*rows, penalty, start, *control)
            return w, b, violation / largest

        return learn_falling(whole, falling(self.penalties, largest, self.smallest), problem.forest, fit)


def _largest_penalty(block: Block, k: int) -> float:
    """Return the smallest penalty at which no node has a weight, a little more so that rounding gives none either."""
    gradient = np.abs(kernels.node_gradient(block.parent, block.leaves, block.weight, block.targets[k]))
    largest = (1 + 1e-9) * float(gradient.max(initial=0.0))
    return largest if largest > 1e-12 * np.abs(block.targets[k]).max(initial=0.0) else 0.0
