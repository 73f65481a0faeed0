"""Prune under feature cost tree by tree: Lagrangian decomposition with projected subgradient steps.

`secateur.kernels.feature_cost.primal_dual` takes the steps on the dual prices.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

from secateur.forest.masks import NestedMasks
from secateur.kernels.feature_cost.primal_dual import Shares, best_subtrees, share_prices
from secateur.path import Path
from secateur.path.build import trace_path
from secateur.problem import Problem
from secateur.solvers.base import check_at_least, check_choices, check_penalties, check_valid, decreasing_penalties
from secateur.solvers.feature_cost._base import FeatureSolver, class_weights, node_labels
from secateur.solvers.feature_cost.closure import Closure, count, pose

Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, repr=False)
class PrimalDual(FeatureSolver):
    """Prune each tree separately, with feature prices split among the trees by a dual subgradient method.

    The solver minimises at every penalty of a decreasing sequence, over all prunings of all trees,

        1/trees Σ_trees wrong labels of the tree + penalty · average price of the distinct features of a row

    as `MinCut` does, but decomposed by tree. The trees that may need a feature for a row split its cost: tree t pays
    the share β of penalty · price (the dual variables of eq. (10) in Dercksen 2017). Given the shares, one pass over
    the nodes of a tree finds its best pruning, and the optimal values of the trees sum to a lower bound. Projected
    subgradient steps of Polyak's length, warm-started from the shares of the previous penalty, raise the bound. The
    trees' prunings, and thresholds on their running average, are feasible prunings. The solver stops when the best of
    them is within `tolerance` of the best bound. A step costs O(edges) time, and memory is one number per edge; an edge
    is a (tree, feature, row) triple.

    The gap is **certified**: the column `bound` is a lower bound on the objective of every pruning, and `gap` is
    `objective` − `bound`. The points are made nested at the end: a split that is present at k points is kept at the
    k smallest penalties. This does not increase the sum of the objectives, but a single gap can exceed `tolerance`.
    `MinCut` solves the same problem exactly for all penalties at once; this solver exists for comparison.

    Parameters
    ----------
    penalties : int or tuple of float
        The number of penalties, from one that removes every split with a cost down to `smallest` times that, on a
        logarithmic scale; or the penalties themselves.
    smallest : float
        The smallest penalty, as a fraction of the largest.
    max_iterations : int
        Maximum number of subgradient steps at each penalty.
    tolerance : float
        The gap at which to stop, as a fraction of the objective.
    caching : "ensemble" or "tree"
        Whether a feature is bought once for all trees, or each tree pays for its features during pruning. With "tree"
        the problem separates by tree and needs no subgradient steps, but it is a different problem: the reported cost
        is that of the ensemble, and there is no bound.
    errors, class_weight
        As in `MinCut`.

    References
    ----------
    Nan, Wang, Saligrama (2016): Pruning Random Forests for Prediction on a Budget. arXiv:1606.05060.
    Dercksen (2017): Exploring the Impact of BudgetPrune on Apache Spark Random Forest Performance. BSc thesis, Radboud
    University Nijmegen. The primal-dual problem is its eq. (10)–(12).

    Examples
    --------
    >>> import secateur as sc
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> forest = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X[::2], y[::2])
    >>> path = sc.prune_path(forest, X[1::2], y[1::2], solver=sc.solvers.PrimalDual(penalties=3))
    >>> path.table["n_nodes"].tolist()
    [49, 39, 37, 5]
    """

    penalties: int | tuple[float, ...] = 20
    smallest: float = 1e-2
    max_iterations: int = 2_000
    tolerance: float = 1e-3
    caching: Literal["ensemble", "tree"] = "ensemble"
    errors: Literal["holdout", "train"] = "holdout"
    class_weight: Literal["balanced"] | tuple[float, ...] | None = None

    name = "primal_dual"

    def __post_init__(self) -> None:
        check_penalties(self.penalties, self.smallest)
        check_choices(self, caching=("ensemble", "tree"), errors=("holdout", "train"))
        check_at_least(self, max_iterations=1)
        check_valid(self, "tolerance", 0 <= self.tolerance < 1, "at least 0 and below 1", "1e-3")

    def path(self, problem: Problem) -> Path:
        """Return the path: the unpruned forest and the pruning found at each penalty."""
        labels, class_weight = node_labels(problem, self.errors), class_weights(problem, self.class_weight)
        counts = count(problem, labels, class_weight, per_tree=self.caching == "tree")
        closure = pose(problem, counts, per_tree=self.caching == "tree")
        unit = counts.error_unit / (problem.forest.n_trees * counts.price_unit)
        penalty = decreasing_penalties(
            self.penalties, unit * _penalty_without_splits(_equal_shares(closure)), self.smallest
        )
        root_errors = float(counts.errors[problem.forest.root].sum())
        found = list(self._solve(problem, closure, penalty / unit, root_errors))
        n_kept = np.sum([inside for inside, _, _ in found], axis=0)
        path = nested_path(problem, counts.wrong, closure.group, n_kept, penalty[::-1], repr(self))
        most = np.array([float(closure.profit.sum()), *(bound for _, bound, _ in found[::-1])])
        scale = counts.error_unit / (problem.total_weight * problem.forest.n_trees)
        objective = path.table["risk"] + path.table["penalty"] * path.table["cost"]
        bound = np.minimum((root_errors - most) * scale * (1 - 1e-15), objective)
        if self.caching == "tree":
            bound[:] = np.nan
        steps = np.array([0, *(steps for _, _, steps in found[::-1])])
        more = {"objective": objective, "bound": bound, "gap": objective - bound, "steps": steps}
        return replace(path, table={**path.table, **more}).with_info(exact=counts.exact)

    def _solve(
        self, problem: Problem, closure: Closure, penalties: Floats, root_errors: float
    ) -> Iterator[tuple[NDArray[np.bool_], float, int]]:
        """Yield for each penalty the splits kept, an upper bound on the gain, and the number of steps.

        Each penalty is warm-started from the shares of the previous one.
        """
        report_progress = problem.watch("pruning")
        shares = _equal_shares(closure)
        for k, penalty in enumerate(penalties.tolist()):
            if report_progress is not None:
                report_progress(k, len(penalties))
            shares = shares._replace(price=penalty * closure.price)
            yield share_prices(shares, root_errors, self.tolerance, self.max_iterations)


def _equal_shares(closure: Closure) -> Shares:
    """Return the problem at penalty 1 with the price of each item split equally among the nodes that need it."""
    order = np.argsort(closure.need, kind="stable")
    node = np.repeat(np.arange(len(closure.parent), dtype=np.int32), np.diff(closure.start))[order]
    n_payers = np.bincount(closure.need, minlength=len(closure.price))
    start = np.concatenate([[0], np.cumsum(n_payers)])
    profit, price = closure.profit.astype(np.float64), closure.price.astype(np.float64)
    return Shares(closure.parent, profit, price, start, node, np.repeat(price / n_payers, n_payers))


def _penalty_without_splits(shares: Shares) -> float:
    """Return a penalty at which no split with a cost earns its equal share of the prices."""
    paid = np.bincount(shares.node, shares.share, len(shares.parent)).astype(np.float64)
    return largest_penalty(shares.parent, shares.profit, paid)


def largest_penalty(parent: NDArray[np.int32], profit: Floats, paid: Floats) -> float:
    """Return a penalty from which on no split with a cost is kept, if nodes pay `paid` (n,) at penalty 1.

    By Newton's method on the gain, which is convex in the penalty: the steps never overshoot and terminate.
    """
    inside = np.zeros(len(paid), np.bool_)
    free = best_subtrees(parent, np.where(paid > 0, -np.inf, profit), inside)
    penalty, above = 0.0, True
    while above:
        best_subtrees(parent, profit - penalty * paid, inside)
        cost = float(paid[inside].sum())
        last, penalty = penalty, (float(profit[inside].sum()) - free) / cost if cost > 0 else penalty
        above = penalty > last * (1 + 1e-12)
    return penalty


def nested_path(
    problem: Problem,
    wrong: Floats,
    group: NDArray[np.int32],
    n_kept: NDArray[np.integer],
    penalty: Floats,
    solver: str,
) -> Path:
    """Return the path that keeps each group of splits at as many of the smallest penalties as `n_kept` gives.

    Parameters
    ----------
    problem : Problem
    wrong : (n_nodes,)
        The weight of wrong labels at each node.
    group : (n_splits,)
        The closure node of each split, as in `Closure`.
    n_kept : (n,)
        The number of penalties at which each closure node is kept.
    penalty : (n_penalties,)
        The penalties in increasing order.
    solver : str
        The solver's representation, recorded in the path.
    """
    forest = problem.forest
    cut_at = np.zeros(forest.n_nodes, np.int32)
    # Group −1 indexes the appended 0: such splits are never kept.
    cut_at[forest.is_split] = 1 + np.append(n_kept, 0)[group]
    inner = forest.parent != -1
    removed_at = np.full(forest.n_nodes, len(penalty) + 1, np.int32)
    removed_at[inner] = cut_at[forest.parent[inner]]
    masks = NestedMasks(removed_at, len(penalty) + 1)
    risk = masks.totals(forest, wrong, np.zeros(forest.n_nodes)) / (problem.total_weight * forest.n_trees)
    return trace_path(problem, masks, np.concatenate([[0.0], penalty]), solver, risk=risk)
