"""Select nodes as rules by the lasso, the selection step of RuleFit (Friedman and Popescu 2008).

The descent is `secateur.kernels.node_weights.rule_lasso.fit_rule_lasso`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
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
class RuleLasso(Solver):
    """Select nodes as rules and fit their weights by the lasso, at every penalty of a decreasing sequence.

    Every node v is a rule: the indicator that a row's path contains v, with weight w_v. The solver minimises

        1/2n Σ_rows (b + Σ_{v on the row's paths} w_v − y)² + penalty · Σ_v |w_v|

    with an unpenalised intercept b. Unlike in `MaxHeap`, weights of parents and children are not constrained. y is the
    target, or ±1 for a class; with more than two classes each class has its own weights. With `loss="log_loss"` a score
    is the log odds of a class, and the first sum is the mean of log(1 + exp(−y · score)). A point of the path keeps the
    nodes of non-zero weight, their ancestors and all siblings, so it has more nodes than rules.

    The problem is convex, and each point is its minimum up to `tolerance`. The column `criticality` is the largest
    violation of the optimality conditions by the gradient, relative to the penalty that empties every tree. The weights
    need not be unique, as the indicator of a node is the sum of those of its children; the predictions are. A single
    tree is solved without iterations, in O(nodes · depth) per penalty. Joint trees take sweeps of O(rows · trees), and
    small penalties need hundreds of them.

    Parameters
    ----------
    penalties : int or tuple of float
        Number of penalties, or the penalties themselves. A number gives a sequence that starts at the penalty that
        empties every tree and ends at `smallest` times that.
    smallest : float
        Ratio of the smallest penalty to the largest.
    joint : bool
        Fit all trees jointly, as RuleFit does, instead of each tree separately.
    loss : "squared_error" or "log_loss"
        Loss by which weights are fitted; the log loss serves classifiers whose trees are fitted separately.
    prior : sequence of float, or callable, optional
        Factors of the penalty, one positive number per node, in the order of `as_forest`; or a function that returns
        them for a `Forest`.
    tolerance : float
        Stop when the criticality is at most this.
    max_sweeps : int
        Maximum number of sweeps at each penalty.
    values : "learned" or "free"
        Leaf values of the pruned model: the fitted sums of weights. Where the sum of jointly fitted trees could leave a
        forest's natural range of predictions, such as class probabilities, the values are fitted again within it,
        unless `values="free"`.

    References
    ----------
    Friedman and Popescu (2008), Predictive learning via rule ensembles, Annals of Applied Statistics.

    Nie et al. (2017), Pruning decision trees via max-heap projection, SIAM International Conference on Data Mining.
    Equation (2.1).

    Examples
    --------
    >>> import secateur as sc
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> forest = RandomForestRegressor(5, max_depth=3, random_state=0).fit(X, y)
    >>> path = sc.prune_path(forest, X, y, solver=sc.solvers.RuleLasso(penalties=5))
    >>> path.table["n_nodes"][-1].item()  # the five roots: no rule is selected at the largest penalty
    5
    """

    penalties: int | tuple[float, ...] = 40
    smallest: float = 1e-3
    joint: bool = True
    loss: FitLoss = "squared_error"
    prior: Prior | None = None
    tolerance: float = 1e-6
    max_sweeps: int = 1000
    values: Literal["learned", "free"] = "learned"

    name = "rule_lasso"
    changes = ("value",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "prior", freeze_prior(self.prior))
        check_penalties(self.penalties, self.smallest)
        check_valid(self, "tolerance", self.tolerance > 0, "greater than 0", "1e-6")
        check_at_least(self, max_sweeps=1)
        check_choices(self, values=("learned", "free"), loss=("squared_error", "log_loss"))

    @property
    def uses_ensemble_loss(self) -> bool:
        """Whether trees are fitted jointly."""
        return self.joint

    def unsupported(self, problem: Problem) -> str | None:
        """Return why the model cannot be pruned by this method, or None if it can.

        Unsupported are several targets, boosted classifiers, and without `joint` all boosted models.
        """
        return cannot_weigh(problem, self.joint, self.loss)

    def path(self, problem: Problem) -> Path:
        """Return the unpruned forest and the fitted pruning at each penalty, by decreasing size."""
        learned = self.learn(blocks(problem, self.joint, self.loss, self.prior), problem)
        return path_of(problem, learned, repr(self), joint=self.joint, keep_values=False, loss=self.loss)

    def learn(self, tree_blocks: list[Block], problem: Problem) -> Iterator[Weights]:
        """Return the weights at each penalty, with warm starts."""
        n_targets = len(tree_blocks[0].targets) if tree_blocks else 1
        largest = (
            max((_largest_penalty(block, k) for block in tree_blocks for k in range(n_targets)), default=0.0) or 1.0
        )

        def fit(block: Block, k: int, penalty: float, start: Floats) -> tuple[Floats, float, float]:
            control = (self.tolerance * largest, self.max_sweeps)
            rows = (block.parent, block.leaves, block.weight, block.targets[k])
            w, b, violation, _ = kernels.fit_rule_lasso(*rows, penalty, block.prior, start, *control)
            return w, b, violation / largest

        def violation_at(block: Block, penalty: float, w: Floats) -> float:
            return _violation(block, penalty, w) / (4 * largest)

        penalties = decreasing_penalties(self.penalties, largest, self.smallest)
        by_loss = by_log_loss(fit, violation_at, self.tolerance) if self.loss == "log_loss" else fit
        return fit_path(tree_blocks, penalties, problem.forest, by_loss)


def _violation(block: Block, penalty: float, w: Floats) -> float:
    """Return the largest violation of the optimality conditions of a least-squares problem by node weights."""
    rest = block.targets[0] - block.score(w)
    gradient = kernels.node_gradient(block.parent, block.leaves, block.weight, rest)
    limit = penalty * block.prior
    excess = np.where(w == 0, np.abs(gradient) - limit, np.abs(gradient + np.sign(w) * limit))
    return float(excess.max(initial=0.0))


def _largest_penalty(block: Block, k: int) -> float:
    """Return the smallest penalty at which all weights are 0, with a margin for rounding errors."""
    largest = (1 + 1e-9) * float((np.abs(block.gradient(k)) / block.prior).max(initial=0.0))
    return largest if largest > 1e-12 * np.abs(block.targets[k]).max(initial=0.0) else 0.0
