"""Max-heap pruning, Nie et al. 2017: node weights that shrink on the way down, learned with the tree's shape."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, final

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
class MaxHeap(Solver):
    """Learn what a tree predicts together with its shape, at every penalty of a falling sequence.

    Every node v gets a weight w; a row's score is the intercept plus the weights on its way down. It seeks a minimum of

        1/2n Σ_rows (b + Σ_{v on the way} w_v − y)² + penalty · Σ|w_v|   with |w_parent| ≥ |w_child|,

    so that a node without weight has nothing below it. y is the number, or ±1 for a class; with more than two classes
    each has its own weights and the shape is the union. The problem is not convex: every answer is a critical point
    (the column `criticality` says how nearly), found from the answer at the next larger penalty. Rows enter through
    their sums at the leaves alone, so an iteration is O(nodes log nodes) whatever the number of rows.

    With `subsamples` the shape is chosen by stability: a node's support is the largest share, over penalties, of
    half-samples in which it has a weight; the points of the path are the shapes of several least supports, their
    weights learned again at every penalty. `Path.support` is the support of each node.

    Parameters
    ----------
    penalties : int or tuple of float
        How many, from the one that empties every tree down to `smallest` times that; or which.
    smallest : float
    values : "learned" or "mean"
        Whether leaves predict what was learned or keep the values they have.
    joint : bool
        Learn all trees at once on what the ensemble still gets wrong, instead of each tree by itself. O(rows · trees)
        per iteration.
    tolerance : float
        A descent ends when one more proximal step moves no weight by more than this times the spread of y.
    growth, memory, max_iterations : float, int, int
        The factor of the line search, how many objectives it looks back, and when to give up.
    subsamples : int
        How many random parts of the rows stability is judged on; 0 for none.
    sample_fraction : float
    stable_smallest : float, optional
        The smallest penalty at which support counts, as a share of the largest; by default the one with which the
        parts predict the rows left out of them best. At tiny penalties every node has a weight in every part, and
        support means nothing.
    thresholds : int
        How many least supports are tried.
    seed : int
        Draws the parts.
    """

    penalties: int | tuple[float, ...] = 40
    smallest: float = 1e-3
    values: Literal["learned", "mean"] = "learned"
    joint: bool = False
    tolerance: float = 1e-6
    growth: float = 2.0
    memory: int = 5
    max_iterations: int = 10_000
    subsamples: int = 0
    sample_fraction: float = 0.5
    stable_smallest: float | None = None
    thresholds: int = 6
    seed: int = 0

    name = "max_heap"

    def __post_init__(self) -> None:
        _check(self)

    @property
    def changes(self) -> tuple[str, ...]:
        """Values, unless the means are put back."""
        return () if self.values == "mean" else ("value",)

    @property
    def uses_ensemble_loss(self) -> bool:
        """Whether trees are learned together."""
        return self.joint

    @property
    def needs_rows(self) -> bool:
        """Only to learn trees together or on parts of the rows; otherwise sums at the nodes will do."""
        return self.joint or self.subsamples > 0

    def unsupported(self, problem: Problem) -> str | None:
        """Return a reason for several targets, for boosted classifiers, and without `joint` for boosting."""
        return cannot_weigh(problem, self.joint)

    def path(self, problem: Problem) -> Path:
        """Return the unpruned forest and what was learned at each penalty, by falling size."""
        whole = blocks(problem, self.joint)
        penalties = self.falling(whole)
        support = None
        learned = self.learn(whole, penalties, problem)
        if self.subsamples:
            support = self._support(problem, penalties)
            learned = self._learn_again(whole, support, penalties, problem)
        path = path_of(problem, learned, repr(self), joint=self.joint, keep_values=self.values == "mean")
        return replace(path, support=support)

    def falling(self, whole: list[Block]) -> Floats:
        """Return the penalties, the largest first."""
        largest = max((_largest_penalty(block, k) for block in whole for k in range(len(block.targets))), default=0.0)
        return falling(self.penalties, largest, self.smallest)

    def learn(self, whole: list[Block], penalties: Floats, problem: Problem) -> Iterator[Weights]:
        """Return the weights at each penalty, each descent starting from the one before."""

        def fit(block: Block, k: int, penalty: float, start: Floats) -> tuple[Floats, float, float]:
            control = (self.tolerance, self.growth, self.memory, self.max_iterations)
            rows = (block.parent, block.leaves, block.weight, block.targets[k])
            w, b, criticality, _ = kernels.fit_max_heap(*rows, penalty, start, *control)
            return w, b, criticality

        return learn_falling(whole, penalties, problem.forest, fit)

    def _support(self, problem: Problem, penalties: Floats) -> Floats:
        """Return the share of subsamples in which a node has a weight, at the penalty where it is largest."""
        counts, loss = self.count_support(problem, penalties)
        if self.stable_smallest is None:
            allowed = np.arange(len(penalties)) <= loss.argmin()
        else:
            allowed = penalties >= self.stable_smallest * penalties[0]
        return counts[allowed].max(axis=0) / self.subsamples

    def count_support(self, problem: Problem, penalties: Floats) -> tuple[NDArray[np.int32], Floats]:
        """Return in how many subsamples a node has a weight (4.9), and the error on the rows left out, by penalty."""
        rng = np.random.default_rng(self.seed)
        row_weight = problem.sample.weight
        counts = np.zeros((len(penalties), problem.forest.n_nodes), np.int32)
        loss = np.zeros(len(penalties))
        for _ in range(self.subsamples):
            part = np.zeros(len(row_weight))
            part[rng.permutation(len(part))[: max(1, round(self.sample_fraction * len(part)))]] = 1.0
            inside = blocks(problem.weighted(row_weight * part), self.joint)
            outside = blocks(problem.weighted(row_weight * (1 - part)), self.joint)
            for i, weights in enumerate(self.learn(inside, penalties, problem)):
                counts[i] += weights.support
                loss[i] += sum(block.loss(weights) for block in outside)
        return counts, loss

    def _learn_again(
        self, whole: list[Block], support: Floats, penalties: Floats, problem: Problem
    ) -> Iterator[Weights]:
        """Yield weights of the nodes with at least some support, for several supports at each penalty."""
        found = np.unique(support[support > 0])
        few = np.unique(np.linspace(0, len(found) - 1, min(self.thresholds, len(found))).round().astype(int))
        for least in found[few]:
            yield from self.learn([block.within(support >= least) for block in whole], penalties, problem)


def _largest_penalty(block: Block, k: int) -> float:
    """Return the smallest penalty at which no node has a weight."""
    gradient = kernels.node_gradient(block.parent, block.leaves, block.weight, block.targets[k])
    return float(kernels.project_max_heap(np.abs(gradient), block.parent).max(initial=0.0))


def _check(settings: MaxHeap) -> None:
    """Raise ValueError for settings that mean nothing."""
    check_penalties(settings.penalties, settings.smallest)
    if settings.values not in ("learned", "mean"):
        raise ValueError(f"values={settings.values!r} is unknown; known are 'learned' and 'mean'. Use one of these.")
    for name in ("sample_fraction", "stable_smallest"):
        if getattr(settings, name) is not None and not 0 < getattr(settings, name) <= 1:
            raise ValueError(f"{name}={getattr(settings, name)!r}; it must be above 0 and at most 1. Correct it.")
    if not (settings.growth > 1 and settings.tolerance > 0):
        raise ValueError(
            f"growth={settings.growth!r} and tolerance={settings.tolerance!r}; the first must be above 1, the second "
            "above 0. Correct them."
        )
    for name, least in [("memory", 1), ("max_iterations", 1), ("subsamples", 0), ("thresholds", 1)]:
        if getattr(settings, name) < least:
            raise ValueError(f"{name}={getattr(settings, name)!r}; it must be at least {least}. Correct it.")
