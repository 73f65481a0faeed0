"""Prune partitioned rows under feature cost: one minimum cut per partition, coordinated by Lagrangian decomposition."""

from dataclasses import dataclass, replace
from typing import Literal, final

import numpy as np

from secateur.data.row_source import RowSource
from secateur.data.rows import in_parts
from secateur.path import Path
from secateur.problem import Problem
from secateur.solvers.base import check_at_least, check_choices, check_penalties, check_valid, decreasing_penalties
from secateur.solvers.feature_cost._base import FeatureSolver
from secateur.solvers.feature_cost._consensus import Search
from secateur.solvers.feature_cost._partition_closure import clear_cache
from secateur.solvers.feature_cost._partition_integers import count_in_parts
from secateur.solvers.feature_cost.primal_dual import nested_path


@final
@dataclass(frozen=True, repr=False)
class PartitionCut(FeatureSolver):
    """Prune under feature cost with rows in partitions, by a minimum cut per partition and dual decomposition.

    The solver minimises at every penalty of a decreasing sequence, over all prunings of all trees,

        1/trees Σ_trees wrong labels of the tree + penalty · average price of the distinct features of a row

    as `MinCut` does, but rows stay in their partitions: in files, in a cluster, in any number and size.

    Each partition holds a copy of the splits its rows reach. The profit of a split, the errors it saves, is the sum of
    its profits in the partitions, and each partition knows which items its rows buy. Each partition computes its best
    closure by an exact minimum cut in integer arithmetic. The sum of these optima is an upper bound on the gain of
    every pruning, and stays one when profit of a split is moved from one partition to another. Polyak subgradient
    steps with momentum move profits until the partitions agree. Feasible prunings come from thresholds on the fraction
    of partitions that keep each split; the next pass computes their cost. A pass evaluates all partitions once and
    exchanges one bit and one number per split and partition.

    The gap is **certified**: the column `bound` is a lower bound on the objective of every pruning, and `gap` is
    `objective` − `bound`. The points are made nested at the end, as in `PrimalDual`. The cost is at most `passes`
    evaluations of all partitions per penalty, each a minimum cut per partition.

    Parameters
    ----------
    penalties : int or tuple of float
        The number of penalties, from one that removes every split with a cost down to `smallest` times that, on a
        logarithmic scale; or the penalties themselves.
    smallest : float
        The smallest penalty, as a fraction of the largest.
    passes : int
        Maximum number of passes over all partitions at each penalty.
    tolerance : float
        The gap at which to stop, as a fraction of the objective.
    parts : int
        The number of partitions to make of local rows.
    errors, class_weight
        As in `MinCut`.

    References
    ----------
    Nan, Wang, Saligrama (2016): Optimally Pruning Decision Tree Ensembles With Feature Cost. The problem is its (IP3).

    Examples
    --------
    >>> import secateur as sc
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> forest = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X[::2], y[::2])
    >>> solver = sc.solvers.PartitionCut(penalties=3, parts=2)
    >>> path = sc.prune_path(forest, X[1::2], y[1::2], solver=solver)
    >>> path.table["n_nodes"].tolist()
    [49, 39, 37, 5]
    """

    penalties: int | tuple[float, ...] = 20
    smallest: float = 1e-2
    passes: int = 30
    tolerance: float = 1e-3
    parts: int = 4
    errors: Literal["holdout", "train"] = "holdout"
    class_weight: Literal["balanced"] | tuple[float, ...] | None = None

    name = "partition_cut"
    needs_rows = False
    many_passes = True

    def __post_init__(self) -> None:
        check_penalties(self.penalties, self.smallest)
        check_choices(self, errors=("holdout", "train"))
        check_at_least(self, passes=1, parts=1)
        check_valid(self, "tolerance", 0 <= self.tolerance < 1, "at least 0 and below 1", "1e-3")

    def unsupported(self, problem: Problem) -> str | None:
        """Return why the problem is unsupported.

        The conditions are those of `MinCut`. In addition, `row_prices` need row numbers, which remote rows do not have.
        """
        if problem.row_source.is_remote and problem.cost.row_prices is not None:
            return (
                "row_prices has one price per row, but remote rows have no row numbers. Use prices per feature, or "
                "collect the rows on this machine."
            )
        return super().unsupported(problem)

    def path(self, problem: Problem) -> Path:
        """Return the path: the unpruned forest and the pruning found at each penalty."""
        row_source = problem.row_source if problem.row_source.is_remote else in_parts(problem.sample, self.parts)
        try:
            return self._path(problem, row_source)
        finally:
            clear_cache()

    def _path(self, problem: Problem, row_source: RowSource) -> Path:
        """Return the path for rows in partitions."""
        counted = count_in_parts(problem, row_source, self.errors, self.class_weight)
        search = Search(problem, row_source, counted, self.tolerance)
        unit = counted.error_counter.quantizer.unit / problem.forest.n_trees
        penalty = decreasing_penalties(self.penalties, unit * search.largest_penalty(), self.smallest)
        most, passes = search.run(penalty / unit, self.passes)
        splits = counted.splits
        path = nested_path(problem, counted.wrong, splits.group, search.n_kept(), penalty[::-1], repr(self))
        objective = path.table["risk"] + path.table["penalty"] * path.table["cost"]
        most = [search.factor * int(splits.profit.sum()), *most[::-1]]
        least = np.array([search.least(gain) for gain in most]) * (unit / problem.total_weight)
        bound = np.minimum(least * (1 - 1e-15), objective)
        more = {
            "objective": objective,
            "bound": bound,
            "gap": objective - bound,
            "passes": np.array([0, *passes[::-1]]),
        }
        return replace(path, table={**path.table, **more}).with_info(exact=counted.exact)
