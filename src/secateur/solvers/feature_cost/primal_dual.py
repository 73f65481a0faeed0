"""Feature cost tree by tree: the primal-dual decomposition of Nan et al. 2016 and of Dercksen 2017 (eq. 10–12)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

from secateur.forest.masks import NestedMasks
from secateur.kernels.feature_cost.primal_dual import Shares, best_apart, share_prices
from secateur.path import Path
from secateur.path.build import trace_path
from secateur.problem import Problem
from secateur.solvers.base import check_choices
from secateur.solvers.feature_cost._base import FeatureSolver, judged_by, weights_of_classes
from secateur.solvers.feature_cost.closure import Closure, count, pose
from secateur.solvers.penalty_grid import check_penalties, falling

Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, repr=False)
class PrimalDual(FeatureSolver):
    """Prune each tree by itself, at prices moved between trees until they agree on which features to buy.

    It minimises at every penalty of a falling sequence, over all prunings of all trees,

        1/trees Σ_trees wrong labels of the tree + penalty · average price of the distinct features of a row

    as MinCut does, but in parts. A feature bought for a row is paid for by the trees that may need it, each its share β
    of penalty · price. Given the shares, the best pruning of a tree is one pass over its nodes, and the trees' values
    add up to a lower bound. Projected sub-gradient steps of Polyak's length, from the shares of the penalty before,
    raise the bound; the trees' prunings, and the levels of their average, are answers. They end when the best answer is
    within `tolerance` of the best bound. O(edges) a step, one number an edge: (tree, feature, row).

    No pruning at all has an objective below the column `bound`; `gap` is by how much the objective is above. Points are
    made nested in the end, each split staying for as many of the smallest penalties as there are points with it: that
    raises no sum of objectives, but a gap can be above `tolerance` where others are below. MinCut finds all penalties
    at once and exactly; this is the decomposition, for comparison.

    Parameters
    ----------
    penalties : int or tuple of float
        How many, from one that is sure to leave no split that costs anything down to `smallest` times that; or which.
    smallest : float
    max_iterations : int
        Steps at each penalty.
    tolerance : float
        The gap to stop at, as a share of the objective.
    caching : "ensemble" or "tree"
        Whether a feature is bought once for all trees, or each tree pays for itself while pruning. The latter falls
        apart without any steps and answers another question: the cost shown is that of the ensemble, there is no bound.
    errors, class_weight
        As in MinCut.
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
        if not self.max_iterations >= 1:
            raise ValueError(f"max_iterations={self.max_iterations!r}; it must be at least 1. Correct it.")
        if not 0 <= self.tolerance < 1:
            raise ValueError(f"tolerance={self.tolerance!r}; it must be at least 0 and below 1. Try 1e-3.")

    def path(self, problem: Problem) -> Path:
        """Return the unpruned forest and the pruning found at each penalty."""
        labels, class_weight = judged_by(problem, self.errors), weights_of_classes(problem, self.class_weight)
        counts = count(problem, labels, class_weight, apart=self.caching == "tree")
        closure = pose(problem, counts, apart=self.caching == "tree")
        unit = counts.error_unit / (problem.forest.n_trees * counts.price_unit)
        penalty = falling(self.penalties, unit * _penalty_of_nothing(_equal_shares(closure)), self.smallest)
        root_errors = float(counts.errors[problem.forest.root].sum())
        found = list(self._solve(problem, closure, penalty / unit, root_errors))
        stays = np.sum([inside for inside, _, _ in found], axis=0)
        path = nested_path(problem, counts.wrong, closure.group, stays, penalty[::-1], repr(self))
        most = np.array([float(closure.profit.sum()), *(bound for _, bound, _ in found[::-1])])
        scale = counts.error_unit / (problem.total_weight * problem.forest.n_trees)
        objective = path.table["risk"] + path.table["penalty"] * path.table["cost"]
        bound = np.minimum((root_errors - most) * scale * (1 - 1e-15), objective)
        if self.caching == "tree":
            bound[:] = np.nan
        steps = np.array([0, *(steps for _, _, steps in found[::-1])])
        more = {"objective": objective, "bound": bound, "gap": objective - bound, "steps": steps}
        return replace(path, table={**path.table, **more}, facts={**path.facts, "exact": counts.exact})

    def _solve(
        self, problem: Problem, closure: Closure, penalties: Floats, root_errors: float
    ) -> Iterator[tuple[NDArray[np.bool_], float, int]]:
        """Yield what stays, the most that can be gained, and the steps it took; each starts from the shares before."""
        tell = problem.watch("pruning")
        shares = _equal_shares(closure)
        for k, penalty in enumerate(penalties.tolist()):
            if tell is not None:
                tell(k, len(penalties))
            shares = shares._replace(price=penalty * closure.price)
            yield share_prices(shares, root_errors, self.tolerance, self.max_iterations)


def _equal_shares(closure: Closure) -> Shares:
    """Return the problem at penalty 1, prices shared equally by the nodes that need the items."""
    order = np.argsort(closure.need, kind="stable")
    node = np.repeat(np.arange(len(closure.parent), dtype=np.int32), np.diff(closure.start))[order]
    n_payers = np.bincount(closure.need, minlength=len(closure.price))
    start = np.concatenate([[0], np.cumsum(n_payers)])
    profit, price = closure.profit.astype(np.float64), closure.price.astype(np.float64)
    return Shares(closure.parent, profit, price, start, node, np.repeat(price / n_payers, n_payers))


def _penalty_of_nothing(shares: Shares) -> float:
    """Return a penalty at which no split that costs anything is worth its shares of the prices."""
    paid = np.bincount(shares.node, shares.share, len(shares.parent)).astype(np.float64)
    return largest_penalty(shares.parent, shares.profit, paid)


def largest_penalty(parent: NDArray[np.int32], profit: Floats, paid: Floats) -> float:
    """Return a penalty from which on no split that costs anything is worth it, if nodes pay `paid` at penalty 1.

    By Newton's steps: what can be gained is convex in the penalty, so they never go too far, and they end.
    """
    inside = np.zeros(len(paid), np.bool_)
    free = best_apart(parent, np.where(paid > 0, -np.inf, profit), inside)
    penalty, above = 0.0, True
    while above:
        best_apart(parent, profit - penalty * paid, inside)
        cost = float(paid[inside].sum())
        last, penalty = penalty, (float(profit[inside].sum()) - free) / cost if cost > 0 else penalty
        above = penalty > last * (1 + 1e-12)
    return penalty


def nested_path(
    problem: Problem,
    wrong: Floats,
    group: NDArray[np.int32],
    stays: NDArray[np.integer],
    penalty: Floats,
    solver: str,
) -> Path:
    """Return the path on which groups of splits are there at as many of the smallest penalties as `stays` says.

    `wrong` (n_nodes,) is the weight of wrong labels at each node, `group` (n_splits,) as in Closure.
    """
    forest = problem.forest
    cut_at = np.zeros(forest.n_nodes, np.int32)
    cut_at[forest.is_split] = 1 + np.append(stays, 0)[group]  # group −1 finds the last: never there
    inner = forest.parent != -1
    removed_at = np.full(forest.n_nodes, len(penalty) + 1, np.int32)
    removed_at[inner] = cut_at[forest.parent[inner]]
    masks = NestedMasks(removed_at, len(penalty) + 1)
    risk = masks.totals(forest, wrong, np.zeros(forest.n_nodes)) / (problem.total_weight * forest.n_trees)
    return trace_path(problem, masks, np.concatenate([[0.0], penalty]), solver, risk=risk)
