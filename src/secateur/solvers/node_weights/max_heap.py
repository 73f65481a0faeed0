"""Prune trees by max-heap regularisation: sparse node weights that do not grow from parent to child.

This implements Nie et al. (2017), with stability selection (section 4). The proximal gradient descent (3.7), (3.8) is
`secateur.kernels.node_weights.max_heap.fit_max_heap`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.path import Path
from secateur.problem import Problem
from secateur.solvers.base import (
    Solver,
    check_at_least,
    check_choices,
    check_penalties,
    check_valid,
    decreasing_penalties,
)
from secateur.solvers.node_weights._log_loss import by_log_loss
from secateur.solvers.node_weights._weights import (
    Block,
    FitLoss,
    Prior,
    Weights,
    blocks,
    cannot_weigh,
    fit_path,
    freeze_prior,
    path_of,
)

Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, repr=False)
class MaxHeap(Solver):
    """Fit leaf values and tree structure together by max-heap regularisation, along decreasing penalties.

    Every node v has a weight w_v, and the score of a row is the intercept plus the weights on its path. It minimises

        1/2n Σ_rows (b + Σ_{v on path} w_v − y)² + penalty · Σ_v |w_v|   with |w_parent| ≥ |w_child|.

    The constraint implies that a node of weight 0 has only weights of 0 below it, so the non-zero weights form a pruned
    tree. y is the target, or ±1 for a class. With `loss="log_loss"` a score is the log odds of a class, and the first
    sum is the mean of log(1 + exp(−y · score)). With more than two classes each class has its own weights, and the tree
    structure is the union over classes.

    The problem is not convex. Each result is a critical point, warm-started from the result at the next larger penalty;
    the column `criticality` measures how well it satisfies the first-order condition. Without `joint` the rows enter
    only through their sums at the leaves, so an iteration takes O(nodes log nodes), whatever the number of rows.

    With `subsamples` the structure is chosen by stability selection. The support of a node is the fraction of
    subsamples in which it has a non-zero weight, maximised over penalties. The points of the path are the structures at
    several support thresholds, with weights refitted at every penalty. `Path.support` holds the support of each node.

    Parameters
    ----------
    penalties : int or tuple of float
        Number of penalties, or the penalties themselves. A number gives a sequence that starts at the penalty that
        empties every tree and ends at `smallest` times that.
    smallest : float
        Ratio of the smallest penalty to the largest.
    values : "learned", "mean" or "free"
        Leaf values of the pruned model: the fitted sums of weights, or with "mean" the original node values.
        Where the sum of jointly fitted trees could leave a forest's natural range of predictions, such as class
        probabilities, the values are fitted again within it, unless `values="free"`.
    joint : bool
        Fit all trees jointly to the target of the ensemble instead of each tree separately. An iteration then takes
        O(rows · trees).
    loss : "squared_error" or "log_loss"
        Loss by which weights are fitted; the log loss serves classifiers whose trees are fitted separately. It is
        minimised by least squares with weights and targets that are updated until the loss no longer decreases.
    prior : sequence of float, or callable, optional
        Prior knowledge of the nodes: factors of the penalty, one positive number per node, in the order of `as_forest`;
        or a function that returns them for a `Forest`, as is needed to cross-validate. A node of factor 2 has to gain
        twice as much to be kept.
    tolerance : float
        Stop when one more proximal step moves no weight by more than this times the standard deviation of y.
    growth, memory, max_iterations : float, int, int
        Factor of the line search, number of past objectives it compares with, and maximum number of iterations.
    subsamples : int
        Number of random subsamples for stability selection; 0 disables it.
    sample_fraction : float
        Size of a subsample as a fraction of the rows.
    stable_smallest : float, optional
        Smallest penalty that counts for the support, as a fraction of the largest. The default is the penalty with the
        smallest error on the rows left out of the subsamples. At tiny penalties every node has a non-zero weight in
        every subsample, and the support is uninformative.
    thresholds : int
        Number of support thresholds.
    seed : int
        Seed of the subsamples.

    References
    ----------
    Nie, Lin, Huang, Ramakrishnan, Fan and Ye (2017), Pruning decision trees via max-heap projection, SIAM International
    Conference on Data Mining.

    Examples
    --------
    >>> import secateur as sc
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> tree = DecisionTreeRegressor(max_depth=5, random_state=0).fit(X, y)
    >>> n_nodes = sc.prune_path(tree, X, y, solver=sc.solvers.MaxHeap(penalties=10)).table["n_nodes"].tolist()
    >>> n_nodes[-1], n_nodes == sorted(n_nodes, reverse=True)
    (1, True)
    """

    penalties: int | tuple[float, ...] = 40
    smallest: float = 1e-3
    values: Literal["learned", "mean", "free"] = "learned"
    joint: bool = False
    loss: FitLoss = "squared_error"
    prior: Prior | None = None
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
        object.__setattr__(self, "prior", freeze_prior(self.prior))
        _check(self)

    @property
    def changes(self) -> tuple[str, ...]:
        """Node values, unless the original ones are kept."""
        return () if self.values == "mean" else ("value",)

    @property
    def uses_ensemble_loss(self) -> bool:
        """Whether trees are fitted jointly."""
        return self.joint

    @property
    def needs_rows(self) -> bool:
        """Whether trees are fitted jointly or on subsamples; otherwise sums at the nodes suffice."""
        return self.joint or self.subsamples > 0

    def unsupported(self, problem: Problem) -> str | None:
        """Return why the model cannot be pruned by this method, or None if it can.

        Unsupported are several targets, boosted classifiers, and without `joint` all boosted models.
        """
        return cannot_weigh(problem, self.joint, self.loss)

    def path(self, problem: Problem) -> Path:
        """Return the unpruned forest and the fitted pruning at each penalty, by decreasing size."""
        tree_blocks = self._blocks(problem)
        penalties = self.decreasing_penalties(tree_blocks)
        support = None
        learned = self.learn(tree_blocks, penalties, problem)
        if self.subsamples:
            support = self._support(problem, penalties)
            learned = self._learn_again(tree_blocks, support, penalties, problem)
        keep_values = self.values == "mean"
        path = path_of(problem, learned, repr(self), joint=self.joint, keep_values=keep_values, loss=self.loss)
        return replace(path, support=support)

    def _blocks(self, problem: Problem) -> list[Block]:
        return blocks(problem, self.joint, self.loss, self.prior)

    def decreasing_penalties(self, tree_blocks: list[Block]) -> Floats:
        """Return the penalties in decreasing order."""
        largest = max(
            (_largest_penalty(block, k) for block in tree_blocks for k in range(len(block.targets))), default=0.0
        )
        return decreasing_penalties(self.penalties, largest, self.smallest)

    def learn(self, tree_blocks: list[Block], penalties: Floats, problem: Problem) -> Iterator[Weights]:
        """Return the weights at each penalty, with warm starts."""

        def fit(block: Block, k: int, penalty: float, start: Floats) -> tuple[Floats, float, float]:
            return descend(block, k, penalty, start, self.max_iterations)

        def descend(block: Block, k: int, penalty: float, start: Floats, steps: int) -> tuple[Floats, float, float]:
            control = (self.tolerance, self.growth, self.memory, steps)
            rows = (block.parent, block.leaves, block.weight, block.targets[k])
            w, b, criticality, _ = kernels.fit_max_heap(*rows, penalty, block.prior, start, *control)
            return w, b, criticality

        def residual_at(block: Block, penalty: float, w: Floats) -> float:
            return descend(block, 0, penalty, w, 0)[2]

        by_loss = by_log_loss(fit, residual_at, self.tolerance) if self.loss == "log_loss" else fit
        return fit_path(tree_blocks, penalties, problem.forest, by_loss)

    def _support(self, problem: Problem, penalties: Floats) -> Floats:
        """Return each node's selection frequency, maximised over penalties (section 4.2), (n_nodes,)."""
        counts, loss = self.count_support(problem, penalties)
        if self.stable_smallest is None:
            allowed = np.arange(len(penalties)) <= loss.argmin()
        else:
            allowed = penalties >= self.stable_smallest * penalties[0]
        return counts[allowed].max(axis=0) / self.subsamples

    def count_support(self, problem: Problem, penalties: Floats) -> tuple[NDArray[np.int32], Floats]:
        """Count the subsamples that select each node, and sum the errors on the rows left out.

        Returns
        -------
        counts : (n_penalties, n_nodes)
            Number of subsamples in which a node has a non-zero weight, s(λ) of (4.9).
        loss : (n_penalties,)
        """
        rng = np.random.default_rng(self.seed)
        row_weight = problem.sample.weight
        n_chosen = max(1, round(self.sample_fraction * len(row_weight)))
        counts = np.zeros((len(penalties), problem.forest.n_nodes), np.int32)
        loss = np.zeros(len(penalties))
        for _ in range(self.subsamples):
            in_subsample = np.zeros(len(row_weight))
            in_subsample[rng.permutation(len(row_weight))[:n_chosen]] = 1.0
            inside = self._blocks(problem.weighted(row_weight * in_subsample))
            outside = self._blocks(problem.weighted(row_weight * (1 - in_subsample)))
            for i, weights in enumerate(self.learn(inside, penalties, problem)):
                counts[i] += weights.support
                loss[i] += sum(_loss_of(block, weights) for block in outside)
        return counts, loss

    def _learn_again(
        self, tree_blocks: list[Block], support: Floats, penalties: Floats, problem: Problem
    ) -> Iterator[Weights]:
        """Yield refitted weights for each support threshold and penalty, restricted to nodes above the threshold."""
        supports = np.unique(support[support > 0])
        indices = np.unique(np.linspace(0, len(supports) - 1, min(self.thresholds, len(supports))).round().astype(int))
        for threshold in supports[indices]:
            yield from self.learn([block.within(support >= threshold) for block in tree_blocks], penalties, problem)


def _largest_penalty(block: Block, k: int) -> float:
    """Return the smallest penalty at which all weights are 0.

    It is the largest entry of the max-heap projection of the absolute gradient at 0, divided by the prior, in the
    metric of the prior.
    """
    gradient = np.abs(block.gradient(k))
    return float(kernels.project_max_heap(gradient / block.prior, block.parent, block.prior).max(initial=0.0))


def _loss_of(block: Block, weights: Weights) -> float:
    """Return the mean loss of weights, summed over targets."""
    return sum(
        block.mean_loss(k, weights.intercept[k, block.trees][0] + block.score(weights.node[k, block.nodes]))
        for k in range(len(block.targets))
    )


def _check(settings: MaxHeap) -> None:
    """Raise InvalidInputError for invalid settings."""
    check_penalties(settings.penalties, settings.smallest)
    check_choices(settings, values=("learned", "mean", "free"), loss=("squared_error", "log_loss"))
    for name in ("sample_fraction", "stable_smallest"):
        value = getattr(settings, name)
        check_valid(settings, name, value is None or 0 < value <= 1, "greater than 0 and at most 1", "0.5")
    check_valid(settings, "growth", settings.growth > 1, "greater than 1", "2.0")
    check_valid(settings, "tolerance", settings.tolerance > 0, "greater than 0", "1e-6")
    check_at_least(settings, memory=1, max_iterations=1, subsamples=0, thresholds=1)
