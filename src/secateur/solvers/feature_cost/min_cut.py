"""Feature cost exactly: (IP3) of Nan, Wang and Saligrama 2016 for every penalty, as one parametric minimum cut."""

from dataclasses import dataclass, replace
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from secateur.costs import SharedCost, paid
from secateur.forest.masks import PackedMasks, cut_at
from secateur.path import Path
from secateur.path.build import trace_path
from secateur.problem import Problem
from secateur.solvers.base import check_choices
from secateur.solvers.feature_cost._base import FeatureSolver, judged_by, weights_of_classes
from secateur.solvers.feature_cost._partition_integers import NeedCount, pose_apart
from secateur.solvers.feature_cost.closure import Closure, Counts, count, critical_penalties, pose
from secateur.solvers.feature_cost.partition_cut import PartitionCut

Floats = NDArray[np.float64]
_OF_EACH = 500
"""How many points of either scope a path of both has at most."""
_MOST_EDGES = 50_000_000
"""How many needs, a feature of a row in a tree, rows that are brought here may have: 45 bytes each."""


@final
@dataclass(frozen=True, repr=False)
class MinCut(FeatureSolver):
    """The best pruning at every penalty on the price of the features rows need, each bought once for all trees.

    It minimises over all prunings of all trees, for all penalties at once,

        1/trees Σ_trees wrong labels of the tree + penalty · average price of the distinct features of a row

    which is BudgetPrune's problem (IP3). It is a maximum-weight closure, solved as minimum cuts in whole numbers:
    exact, whatever the model and the prices. The prunings are nested, at each penalty the smallest of equally good
    ones. No pruning at all has an objective below the column `bound`, and `objective` is the same unless prices or
    weights had to be rounded (the path's facts say so in `exact`). 2 cuts per point, each on a part of the problem.

    It is the mean of the *trees'* errors that is minimised, not the error of their vote. As the penalty grows the cost
    often falls by much at once (column `jump`, as a share of the unpruned cost); what is between cannot be reached by
    any penalty.

    Rows in parts that are too many to bring together, or need too much, are left where they are: trees that pay for
    themselves need nothing but sums over rows, and for all trees together PartitionCut answers at its usual penalties.

    Parameters
    ----------
    scope : "ensemble", "individual" or "both"
        Whether a feature is bought for all trees, or each tree pays for itself while pruning (the cost shown is always
        that of the ensemble); both are one path with the points of either, for other rows to choose from.
    errors : "holdout" or "train"
        Which label a node is judged by: its own, so that splits can do harm on rows the model has not seen; or, as in
        the paper, the most frequent of the rows that come to it.
    class_weight : "balanced" or tuple of float, optional
        What an error counts for rows of each class, in the order of the model's classes.
    """

    scope: Literal["ensemble", "individual", "both"] = "ensemble"
    errors: Literal["holdout", "train"] = "holdout"
    class_weight: Literal["balanced"] | tuple[float, ...] | None = None

    name = "min_cut"

    def __post_init__(self) -> None:
        check_choices(self, scope=("ensemble", "individual", "both"), errors=("holdout", "train"))

    @property
    def needs_rows(self) -> bool:
        """No: rows that are too many to bring together are asked where they are."""
        return False

    @property
    def many_passes(self) -> bool:
        """Yes, if it asks them there."""
        return True

    def unsupported(self, problem: Problem) -> str | None:
        """Return a reason for anything but feature cost and trees that give labels."""
        return self._in_parts.unsupported(problem) if problem.row_source.is_remote else super().unsupported(problem)

    def path(self, problem: Problem) -> Path:
        """Return the unpruned forest and every pruning that is optimal at some penalty."""
        scopes = ("ensemble", "individual") if self.scope == "both" else (self.scope,)
        if _too_much_for_one(problem):
            paths = [self._from_afar(problem, apart=scope == "individual") for scope in scopes]
        else:
            labels, class_weight = judged_by(problem, self.errors), weights_of_classes(problem, self.class_weight)
            counts = count(problem, labels, class_weight, apart="individual" in scopes)
            paths = [self._of_scope(problem, counts, apart=scope == "individual") for scope in scopes]
        return paths[0] if len(paths) == 1 else _joined(problem, paths, repr(self))

    @property
    def _in_parts(self) -> PartitionCut:
        return PartitionCut(errors=self.errors, class_weight=self.class_weight)

    def _of_scope(self, problem: Problem, counts: Counts, *, apart: bool) -> Path:
        path = _nested_path(problem, counts, pose(problem, counts, apart=apart), repr(self))
        return _certified(path, np.full(len(path), np.nan) if apart else _bound(problem, counts, path))

    def _from_afar(self, problem: Problem, *, apart: bool) -> Path:
        """Return the path of one scope from sums over rows alone."""
        if not apart:
            path = self._in_parts.path(problem)
            return _certified(path, path.table["bound"])
        counts, closure = pose_apart(problem, self.errors, self.class_weight)
        path = _nested_path(problem, counts, closure, repr(self))
        return _certified(path, np.full(len(path), np.nan))


def _too_much_for_one(problem: Problem) -> bool:
    """Return whether rows are elsewhere, and they or what they need would not fit on one machine."""
    if problem.why_no_rows or not problem.row_source.is_remote:
        return problem.why_no_rows is not None
    forest, cost = problem.forest, problem.cost
    assert isinstance(cost, SharedCost)  # asked for in `unsupported`
    place = np.where(forest.is_split, np.cumsum(forest.is_split) - 1, -1).astype(np.int32)
    needs = problem.row_source.total(forest, NeedCount(cost, place, int(forest.is_split.sum())))
    return int(needs.sum()) > _MOST_EDGES


def _nested_path(problem: Problem, counts: Counts, closure: Closure, solver: str) -> Path:
    """Return a point for every critical penalty of a closure."""
    forest = problem.forest
    over, under, _ = critical_penalties(closure)
    critical = np.full(forest.n_nodes, np.inf)
    with np.errstate(divide="ignore"):
        critical[forest.is_split] = over / under
    masks, penalty = cut_at(forest, critical)
    real = np.concatenate([[0.0], penalty]) * counts.error_unit / (forest.n_trees * counts.price_unit)
    scale = problem.total_weight * forest.n_trees
    risk = masks.totals(forest, counts.wrong, np.zeros(forest.n_nodes)) / scale
    path = trace_path(problem, masks, real, solver, risk=risk)
    return replace(path, facts={**path.facts, "exact": counts.exact})


def _certified(path: Path, bound: Floats) -> Path:
    """Return the path with what is minimised, what it cannot be below, and by how much the cost falls at each point."""
    cost = path.table["cost"]
    more = {
        "objective": path.table["risk"] + path.table["penalty"] * cost,
        "bound": bound,
        "jump": np.concatenate([[0.0], np.maximum(-np.diff(cost), 0.0)]) / max(cost[0], 1e-300),
    }
    return replace(path, table={**path.table, **more})


def _bound(problem: Problem, counts: Counts, path: Path) -> Floats:
    """Return what no pruning can be below at the penalty of each point: the optimum in whole numbers."""
    forest, total = problem.forest, problem.total_weight
    penalty, least, prices = (path.table[name] for name in ("penalty", "risk", "cost"))
    objective = least + penalty * prices
    if not counts.exact:
        whole = path.masks.totals(forest, counts.errors.astype(np.float64), np.zeros(forest.n_nodes))
        least = whole * counts.error_unit / (total * forest.n_trees)
        alike = replace(problem.sample, weight=np.ones(len(problem.sample)))
        prices = paid(forest, alike, path.masks, counts.price_table) * counts.price_unit / total
    bound = np.minimum(least + penalty * prices, objective)
    bound[0] = least[penalty == 0].min()  # also of the point without splits that do harm, if there is one
    return bound


def _joined(problem: Problem, paths: list[Path], solver: str) -> Path:
    """Return one path with the points of several, the largest first; the column `origin` says which is which."""
    chosen = [(path, point) for path in paths for point in _some(len(path))]
    chosen = [chosen[0], *(one for one in chosen[1:] if one[1] > 0)]
    chosen[1:] = sorted(chosen[1:], key=lambda one: (-one[0].table["n_nodes"][one[1]], one[0].table["cost"][one[1]]))
    table = {
        name: np.array([path.table[name][point] for path, point in chosen])
        for name in ("penalty", "risk", "cost", "objective", "bound", "jump")
    }
    masks = PackedMasks(
        np.array([np.packbits(path.masks.keep(point)) for path, point in chosen]), problem.forest.n_nodes
    )
    more: dict[str, NDArray[Any]] = {name: table[name] for name in ("objective", "bound", "jump")}
    more["origin"] = np.array(["individual" if path is paths[1] else "ensemble" for path, _ in chosen])
    joined = trace_path(problem, masks, table["penalty"], solver, more=more, risk=table["risk"], cost=table["cost"])
    return replace(joined, facts={**joined.facts, "exact": paths[0].facts["exact"]})


def _some(n_points: int) -> NDArray[np.intp]:
    """Return at most so many points, the first and the last among them."""
    return np.unique(np.linspace(0, n_points - 1, min(n_points, _OF_EACH)).round().astype(np.intp))
