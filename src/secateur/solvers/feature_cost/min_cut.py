"""Compute the exact pruning path under feature cost, (IP3) of Nan, Wang and Saligrama (2016), by minimum cuts."""

from dataclasses import dataclass, replace
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

from secateur.costs import paid
from secateur.forest.masks import cut_at
from secateur.path import Path
from secateur.path.build import trace_path
from secateur.path.combine import join_paths
from secateur.path.rules import evenly_spaced
from secateur.problem import Problem
from secateur.solvers.base import check_choices
from secateur.solvers.feature_cost._base import FeatureSolver, class_weights, node_labels
from secateur.solvers.feature_cost._partition_integers import NeedCount, pose_per_tree
from secateur.solvers.feature_cost.closure import Closure, Counts, count, critical_penalties, pose
from secateur.solvers.feature_cost.partition_cut import PartitionCut

Floats = NDArray[np.float64]
_MAX_POINTS_PER_SCOPE = 500
"""Maximum number of points taken from each scope when `scope="both"`."""
_MAX_NEEDS = 50_000_000
"""Maximum number of needs (a feature of a row in a tree) of rows to collect, at 45 bytes each."""


@final
@dataclass(frozen=True, repr=False)
class MinCut(FeatureSolver):
    """Compute the optimal pruning at every penalty on the cost of the features a row needs.

    The solver minimises over all prunings of all trees, for all penalties at once,

        1/trees Σ_trees wrong labels of the tree + penalty · average price of the distinct features of a row

    which is BudgetPrune's problem (IP3). A feature is bought once per row and is then available to all trees.

    The problem is a maximum-weight closure and is solved by minimum cuts in integer arithmetic. The solution is
    **exact** for any model and any prices. The prunings are nested; among equally good prunings the smallest is
    returned. The column `bound` is a lower bound on the objective of every pruning. It equals `objective` unless
    prices or weights were rounded to integers; the path's `info.exact` tells whether they were. A path with B
    critical penalties takes 2 B − 1 cuts, each on a part of the problem.

    Two caveats. First, the solver minimises the mean error of the *trees*, not the error of their vote. Second, the
    cost often drops by a large amount at one penalty (column `jump`, as a fraction of the unpruned cost). No penalty
    reaches a budget inside such a jump; use `CostDescent` for those.

    Remote rows are collected only if they and their needs fit on this machine. Otherwise they stay in their partitions:
    `scope="individual"` needs only sums over rows, and for `scope="ensemble"` `PartitionCut` computes the path with its
    default penalties.

    Parameters
    ----------
    scope : "ensemble", "individual" or "both"
        Whether a feature is bought once for all trees, or each tree pays for its features during pruning. The reported
        cost is always that of the ensemble. "both" joins the points of the two paths, so that a validation set can
        choose between them.
    errors : "holdout" or "train"
        The label predicted at a node. "holdout" uses the model's label, so a split can increase the error on rows the
        model was not trained on. "train" uses the most frequent label of the rows at the node, as in the paper.
    class_weight : "balanced" or tuple of float, optional
        The weight of an error for rows of each class, in the order of the model's classes.

    References
    ----------
    Nan, Wang, Saligrama (2016): Optimally Pruning Decision Tree Ensembles With Feature Cost.

    Examples
    --------
    >>> import secateur as sc
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> forest = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X[::2], y[::2])
    >>> path = sc.prune_path(forest, X[1::2], y[1::2], solver=sc.solvers.MinCut())
    >>> path.table["n_nodes"].tolist()
    [49, 39, 37, 35, 31, 29, 23, 19, 15, 13, 5]
    >>> path.info.exact
    True
    """

    scope: Literal["ensemble", "individual", "both"] = "ensemble"
    errors: Literal["holdout", "train"] = "holdout"
    class_weight: Literal["balanced"] | tuple[float, ...] | None = None

    name = "min_cut"
    needs_rows = False
    many_passes = True

    def __post_init__(self) -> None:
        check_choices(self, scope=("ensemble", "individual", "both"), errors=("holdout", "train"))

    def unsupported(self, problem: Problem) -> str | None:
        """Return why the problem is unsupported: the cost is not shared, or the trees predict no labels."""
        return (
            self._partition_solver.unsupported(problem)
            if problem.row_source.is_remote
            else super().unsupported(problem)
        )

    def path(self, problem: Problem) -> Path:
        """Return the unpruned forest and every pruning that is optimal at some penalty."""
        scopes = ("ensemble", "individual") if self.scope == "both" else (self.scope,)
        if _exceeds_memory(problem):
            paths = [self._path_from_partitions(problem, per_tree=scope == "individual") for scope in scopes]
        else:
            labels, class_weight = node_labels(problem, self.errors), class_weights(problem, self.class_weight)
            counts = count(problem, labels, class_weight, per_tree="individual" in scopes)
            paths = [self._path_from_rows(problem, counts, per_tree=scope == "individual") for scope in scopes]
        return paths[0] if len(paths) == 1 else _joined(problem, paths, repr(self))

    @property
    def _partition_solver(self) -> PartitionCut:
        """The solver for rows that stay in their partitions."""
        return PartitionCut(errors=self.errors, class_weight=self.class_weight)

    def _path_from_rows(self, problem: Problem, counts: Counts, *, per_tree: bool) -> Path:
        """Return the path of one scope from local rows."""
        path = _nested_path(problem, counts, pose(problem, counts, per_tree=per_tree), repr(self))
        return _certified(path, np.full(len(path), np.nan) if per_tree else _bound(problem, counts, path))

    def _path_from_partitions(self, problem: Problem, *, per_tree: bool) -> Path:
        """Return the path of one scope from sums over the partitions of remote rows."""
        if not per_tree:
            path = self._partition_solver.path(problem)
            return _certified(path, path.table["bound"])
        counts, closure = pose_per_tree(problem, self.errors, self.class_weight)
        path = _nested_path(problem, counts, closure, repr(self))
        return _certified(path, np.full(len(path), np.nan))


def _exceeds_memory(problem: Problem) -> bool:
    """Return whether the rows are remote and they, or their needs, do not fit on one machine."""
    if not problem.row_source.is_remote or not problem.row_source.fits_in_memory:
        return problem.row_source.is_remote
    forest, cost = problem.forest, problem.cost
    split_index = np.where(forest.is_split, np.cumsum(forest.is_split) - 1, -1).astype(np.int32)
    needs = problem.row_source.total(forest, NeedCount(cost, split_index, int(forest.is_split.sum())))
    return int(needs.sum()) > _MAX_NEEDS


def _nested_path(problem: Problem, counts: Counts, closure: Closure, solver: str) -> Path:
    """Return the path with one point for every critical penalty of a closure problem."""
    forest = problem.forest
    numerator, denominator, _ = critical_penalties(closure)
    critical = np.full(forest.n_nodes, np.inf)
    with np.errstate(divide="ignore"):
        critical[forest.is_split] = numerator / denominator
    masks, penalty = cut_at(forest, critical)
    penalties = np.concatenate([[0.0], penalty]) * counts.error_unit / (forest.n_trees * counts.price_unit)
    scale = problem.total_weight * forest.n_trees
    risk = masks.totals(forest, counts.wrong, np.zeros(forest.n_nodes)) / scale
    path = trace_path(problem, masks, penalties, solver, risk=risk)
    return path.with_info(exact=counts.exact)


def _certified(path: Path, bound: Floats) -> Path:
    """Return the path with the columns `objective`, `bound` and `jump`."""
    cost = path.table["cost"]
    more = {
        "objective": path.table["risk"] + path.table["penalty"] * cost,
        "bound": bound,
        "jump": np.concatenate([[0.0], np.maximum(-np.diff(cost), 0.0)]) / max(cost[0], 1e-300),
    }
    return replace(path, table={**path.table, **more})


def _bound(problem: Problem, counts: Counts, path: Path) -> Floats:
    """Return a lower bound on the objective at the penalty of each point, (n_points,).

    The bound is the optimum of the integer problem. Rounding only lowers errors and prices, so the bound holds for the
    original problem.
    """
    forest, total = problem.forest, problem.total_weight
    penalty, least, prices = (path.table[name] for name in ("penalty", "risk", "cost"))
    objective = least + penalty * prices
    if not counts.exact:
        integer_errors = path.masks.totals(forest, counts.errors.astype(np.float64), np.zeros(forest.n_nodes))
        least = integer_errors * counts.error_unit / (total * forest.n_trees)
        unweighted = replace(problem.sample, weight=np.ones(len(problem.sample)))
        prices = paid(forest, unweighted, path.masks, counts.price_table) * counts.price_unit / total
    bound = np.minimum(least + penalty * prices, objective)
    # At penalty 0 the point without harmful splits, if there is one, has a lower error than the unpruned forest.
    bound[0] = least[penalty == 0].min()
    return bound


def _joined(problem: Problem, paths: list[Path], solver: str) -> Path:
    """Return one path with the points of several, largest first; the column `origin` names the scope of each."""
    thin = [path.take(evenly_spaced(-np.arange(len(path)), min(len(path), _MAX_POINTS_PER_SCOPE))) for path in paths]
    joined = join_paths(thin, ("ensemble", "individual"), size_order=True)
    more = {name: joined.table[name] for name in ("objective", "bound", "jump", "origin")}
    return joined.retrace(problem, solver, more=more, risk=joined.table["risk"])
