"""Prune all trees of an ensemble jointly by block coordinate descent.

This is ForestPrune (Liu and Mazumder 2023), generalised from layers to arbitrary subtrees with refitted leaf values.
The class here holds the settings. `penalty_descent` sweeps over the trees at one penalty, `descent_path` runs the
warm-started path, the local search and the budgets, `secateur.kernels.ensemble.block_update` solves one block, and
`_gram_descent` works on inner products instead of rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from secateur._util.threads import has_threads, in_threads
from secateur._util.user_functions import warn
from secateur.errors import InterruptedWarning, InvalidInputError
from secateur.forest.promises import is_plain_mean, range_of
from secateur.path import Path
from secateur.path.build import Point, trace_points
from secateur.path.evaluation import match_runs
from secateur.problem import Problem
from secateur.solvers.base import Solver, check_at_least, check_choices, check_penalties
from secateur.solvers.ensemble._budget_search import BudgetSearch
from secateur.solvers.ensemble._descent import Descent
from secateur.solvers.ensemble._fold_search import AnyDescent, RunSettings
from secateur.solvers.ensemble._goal_search import GoalSearch
from secateur.solvers.ensemble._gram_descent import gram_points
from secateur.solvers.ensemble._loss_search import LossSearch
from secateur.solvers.ensemble._smaller_forest import SmallerForest, smaller_forest
from secateur.solvers.ensemble.additive_model import (
    Additive,
    additive,
    mean_loss,
    not_additive,
    not_quadratic,
    too_many_pairs,
)
from secateur.solvers.ensemble.descent_path import distinct
from secateur.solvers.ensemble.gram import columns, gram_of, no_gram
from secateur.solvers.ensemble.mean_of_trees import MeanDescent
from secateur.solvers.ensemble.penalty_descent import DescentSettings
from secateur.solvers.goal import FoldProblem, Goal
from secateur.solvers.whole_trees.reweight import polished

_COLUMNS = 4096
"""Largest number of layers for which remote rows are replaced by a Gram matrix by default: 128 MB."""


@final
@dataclass(frozen=True, repr=False)
class BlockDescent(Solver):
    """Prune all trees jointly by block coordinate descent, at every penalty of a decreasing sequence.

    The solver minimises, over the subtrees of all trees, their leaf values and one intercept per output,

        loss(y, intercept + Σ_trees tree(x)) + penalty · cost(pruning) + ridge / n · Σ_leaves value²

    The loss is the one the model was trained for: squared error for regression and for class probabilities (Brier
    score), log loss for boosted classifiers, the pinball loss for quantiles, deviances for counts and amounts; see
    `secateur.losses.objectives`. A block is one tree: each tree in turn gets the subtree that is optimal given all
    other trees. Monotonic constraints of the model are kept.

    The result is a local optimum with respect to single trees, warm-started from the result at the next larger penalty.
    For squared error a block update is exact (a dynamic program over the tree). Other losses are replaced by parabolas
    that are renewed after each sweep over the trees; a sweep is accepted only if the true objective decreases. An
    update takes O(rows + nodes).

    Remote rows are collected, except for `granularity="layer", values="keep"` and squared error with up to 4096 layers
    in all: the Gram matrix of the layers is a sum over rows, from which the whole path follows.

    `granularity="layer", values="keep"` is ForestPrune's Problem (1), `polish` its Problem (2) and `joint` its Problems
    (5)–(7).

    Parameters
    ----------
    granularity : "node" or "layer"
        Prune arbitrary subtrees, or cut each tree at a depth.
    values : "refit", "keep", "both", "free" or "bounded"
        "refit" fits the leaf values again; "keep" keeps the original ones; "both" merges the points of the two into one
        path. A classification forest that averages its trees stays a mean of trees whose leaves are class
        probabilities, so that every prediction is valid. A regression forest without negative leaves predicts no
        negative number. "free" gives this up: the pruned model is a sum of trees with an intercept, whose Brier score
        is lower at 500 to 5000 nodes, but whose `predict_proba` returns numbers below 0 and above 1. "bounded" keeps
        the predictions of a regression forest between the lowest and the highest target.
    weights : "nodes" or "depth"
        Price of a layer: the cost of its nodes, or 1.
    ridge : float or tuple of float
        Shrinkage of refitted leaf values: each leaf is fitted as if `ridge` extra rows had target 0, where a
        row of weight 2 counts as two rows. The points of several ridges are merged into one path.
    penalties : int or tuple of float
        Number of penalties, or the penalties themselves. A number gives a sequence that starts at a penalty too large
        for any split and ends at `smallest` times that.
    smallest : float
        Ratio of the smallest penalty to the largest.
    warm_up : tuple of (float, float)
        Penalties, each with its ridge, at which to descend only briefly before `penalties`. A mean of trees then takes
        `penalties` in increasing order only.
    max_sweeps : int
        Maximum number of sweeps over all trees at each penalty.
    local_search : int
        After each descent, drop a random tree and descend again; stop after this many consecutive attempts without
        improvement. 0 disables the search.
    polish : "ridge", "subset" or None
        Fit a weight per tree at each point, with a penalty on the squared weights or on the number of non-zero weights.
    polish_penalty : float
        Penalty of `polish`, relative to the sum of squared errors over rows.
    joint : bool
        Optimise the weight of each tree together with its depth, with the penalty of `polish`.
    engine : "rows" or "gram"
        Compute updates from the rows, or from the Gram matrix of the layers, which is computed once. Both give the same
        path. "gram" requires `granularity="layer", values="keep"` and squared error. It needs memory for (Σ depths of
        trees)² floats, and an update does not depend on the number of rows. For remote rows it is the default up to
        4096 layers.
    max_nodes : int, optional
        Node budget. The path ends with points that use nearly all of it.
    max_trees : int, optional
        Tree budget. Once a point has more trees, the weakest are dropped, and smaller penalties only use the rest.
    seed : int
        Seed of the local search.

    References
    ----------
    Liu and Mazumder (2023), ForestPrune: compact depth-pruned tree ensembles, AISTATS.

    Examples
    --------
    >>> import secateur as sc
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> forest = RandomForestRegressor(10, max_depth=4, random_state=0).fit(X, y)
    >>> path = sc.prune_path(forest, X, y, solver=sc.solvers.BlockDescent(penalties=10, max_nodes=50))
    >>> bool((path.table["n_nodes"] <= 50).any())
    True
    """

    granularity: Literal["node", "layer"] = "node"
    values: Literal["refit", "keep", "both", "free", "bounded"] = "refit"
    weights: Literal["nodes", "depth"] = "nodes"
    ridge: float | tuple[float, ...] = 25.0
    penalties: int | tuple[float, ...] = 50
    smallest: float = 1e-6
    warm_up: tuple[tuple[float, float], ...] = ()
    max_sweeps: int = 15
    local_search: int = 0
    polish: Literal["ridge", "subset"] | None = None
    polish_penalty: float = 1e-2
    joint: bool = False
    engine: Literal["rows", "gram"] = "rows"
    max_nodes: int | None = None
    max_trees: int | None = None
    seed: int = 0

    name = "block_descent"

    def __post_init__(self) -> None:
        _check(self)

    changes = ("value",)  # even values="keep" changes them: they absorb the intercept and the number of trees
    uses_ensemble_loss = True
    fills_budget = True

    @property
    def keeps_leaves(self) -> bool:
        """Whether `values="keep"`."""
        return self.values == "keep"

    @property
    def supports_symmetric(self) -> bool:
        """Whether trees are cut at a depth."""
        return self.granularity == "layer"

    @property
    def needs_rows(self) -> bool:
        """Whether the Gram matrix of the layers does not suffice; whether it fits depends on the forest."""
        return not (self.granularity == "layer" and self.values == "keep" and self.polish is None)

    def with_budget(
        self, *, max_nodes: int | None = None, max_trees: int | None = None, max_cost: float | None = None
    ) -> "BlockDescent":
        """Return a copy with these budgets; budgets already set take precedence."""
        return replace(self, max_nodes=self.max_nodes or max_nodes, max_trees=self.max_trees or max_trees)

    def why_no_search(self, goal: Goal) -> str | None:
        """Return why the settings require the whole path, None if they do not."""
        if self.local_search or self.polish or self.engine == "gram" or self.max_trees or self.warm_up:
            return "its settings change the prunings of the path after they are found"
        return None if isinstance(self.penalties, int) else "its penalties are given"

    def search(self, folds: Sequence[FoldProblem], goal: Goal) -> tuple[Solver | None, list[Path]]:
        """Walk along decreasing penalties until the goal is met; see `secateur.solvers.ensemble._goal_search`."""
        refitted = "refit" if self.values == "both" else self.values
        ridges = sorted(self.ridge) if isinstance(self.ridge, tuple) else [self.ridge]

        ensemble_of = cache(self._ensemble)

        def make(problem: Problem, run: RunSettings) -> AnyDescent:
            return self.descent(ensemble_of(problem), problem, "keep" if run.kept else refitted, run.ridge)

        budget = goal.max_nodes if goal.max_loss_increase is None else None
        given, smaller = folds, [self._smaller(fold.problem, budget) for fold in folds]
        folds = [
            fold if part is None else FoldProblem(part.problem, part.route(fold.validation_rows))
            for fold, part in zip(folds, smaller, strict=True)
        ]
        candidates = ridges if self.values != "keep" else []
        keep = self.values in ("keep", "both")
        kind = LossSearch if budget is None else BudgetSearch
        search = kind(folds, make, candidates, keep, goal, free=self.free_values)
        search.n_unpruned = float(np.mean([fold.problem.forest.n_nodes for fold in given]))
        interrupted = False
        try:
            search.run()
        except KeyboardInterrupt:
            interrupted = True
            message = "Interrupted: the search ends with the points found so far. Run again for the others."
            warn(message, InterruptedWarning)
        search.forget()
        paths = []
        # The path of all rows has a single run, and other points of the folds are not matched with it.
        run = search.best.run if goal.refit and search.best is not None and not interrupted else None
        for fold, one, part in zip(given, search.folds, smaller, strict=True):
            points = one.points(run) if part is None else map(part.restored, one.points(run))
            runs = tuple(dict.fromkeys([*self._run_columns(fold.problem), "brief"]))
            path = trace_points(fold.problem, points, repr(self), ensemble=True, runs=runs)
            if interrupted:
                path = replace(path, table={**path.table, "brief": np.zeros(len(path))})
            paths.append(path.with_info(interrupted=interrupted))
        return self._found(search, refitted), paths

    def _found(self, search: GoalSearch, refitted: Any) -> "BlockDescent | None":
        """Return the solver whose path on all rows has the pruning that was found."""
        best = search.best
        if best is None:
            return None
        found = replace(self, values="keep" if best.run.kept else refitted, ridge=best.run.ridge)
        if search.fills_budget:
            return found
        warm_up, penalties = search.penalties_found()
        return replace(found, penalties=penalties, warm_up=warm_up, max_nodes=None)

    def match(self, path: Path, other: Path, *, same_size: bool = False) -> NDArray[np.intp]:
        """Return for each point the point of the same ridge with the nearest penalty or size, (n_points,)."""
        return match_runs(path, other, same_size=same_size)

    def unsupported(self, problem: Problem) -> str | None:
        """Return why the model is not additive or does not fit the settings, or None if it can be pruned."""
        reason = not_additive(problem.forest)
        if reason:
            return f"{reason}Use weakest_link."
        reason = not_quadratic(problem.forest) if self.polish else None
        if reason:
            return f"{reason}Use polish=None."
        reason = too_many_pairs(problem.forest) if self.polish or self.engine == "gram" else None
        if reason:
            return f"{reason}Use polish=None and engine='rows'."
        if problem.why_no_node_prices:
            return problem.why_no_node_prices
        return no_gram(problem.forest) if self.engine == "gram" else None

    def path(self, problem: Problem) -> Path:
        """Return the unpruned forest and the pruning at each penalty, by decreasing size."""
        if self._takes_gram(problem):
            gram = problem.row_source.total(problem.forest, gram_of)
            points: Iterator[Point] = gram_points(problem.forest, problem.prices, gram, self.settings("keep", 0.0))
        else:
            problem = problem.local()
            part = self._smaller(problem, self.max_nodes)
            points = self._points(problem) if part is None else map(part.restored, self._points(part.problem))
        return trace_points(problem, points, repr(self), ensemble=True, runs=self._run_columns(problem))

    def _smaller(self, problem: Problem, budget: int | None) -> SmallerForest | None:
        """Return the part of a large forest that a small node budget could use, None to use the whole forest."""
        return smaller_forest(problem, budget) if self.granularity == "node" and self.max_trees is None else None

    def _run_columns(self, problem: Problem) -> tuple[str, ...]:
        """Return the columns that tell runs apart; a mean of trees is descended at falling and at rising penalties."""
        rising = ("rising",) if self._keeps_range(problem) else ()
        has_brief = bool(self.warm_up) or self.max_nodes is not None
        return ("ridge", "kept", *rising, *(("brief",) if has_brief else ()))

    def _takes_gram(self, problem: Problem) -> bool:
        """Return whether to work on the Gram matrix: by request, or for layers on remote rows."""
        if self.engine == "gram":
            return True
        if self.needs_rows or not problem.row_source.is_remote or no_gram(problem.forest):
            return False
        return bool(columns(problem.forest)[-1] <= _COLUMNS)

    def _points(self, problem: Problem) -> Iterator[Point]:
        """Yield a point for every value mode, ridge and penalty.

        Within a run, consecutive penalties with the same kept nodes give one point.
        """
        ridges = self.ridge if isinstance(self.ridge, tuple) else (self.ridge,)
        refitted = "refit" if self.values == "both" else self.values
        runs = [] if self.values == "keep" else [(refitted, ridge) for ridge in ridges]
        runs += [("keep", 0.0)] if self.values in ("keep", "both") else []
        ensemble = self._ensemble(problem)

        def points(run: int) -> Iterator[Point]:
            values, ridge = runs[run]
            descent = self.descent(ensemble, problem, values, ridge)
            descent.on_sweep = problem.watch("pruning", run, len(runs))
            more = {"ridge": ridge, "kept": float(values == "keep")}
            # A point is matched with those of folds at the same penalty, even if its kept nodes are those of the last.
            states = descent.run() if self.warm_up else distinct(descent.run(), lambda: descent.brief)
            for penalty, state in states:
                yield self.point(descent, problem, penalty, state, {**more, **descent.brief_column})

        if has_threads(problem.n_jobs):
            yield from chain.from_iterable(in_threads(lambda run: list(points(run)), range(len(runs)), problem.n_jobs))
        else:
            # Points found before Ctrl-C are yielded.
            yield from chain.from_iterable(map(points, range(len(runs))))

    def _ensemble(self, problem: Problem) -> Additive:
        """Return the ensemble and its rows on the scale of the loss; a mean of trees needs no contributions."""
        return additive(problem, contributions=not self._keeps_range(problem))

    def descent(self, ensemble: Additive, problem: Problem, values: str, ridge: float) -> AnyDescent:
        """Return a descent of one run: over a mean of trees if it is to stay one, else over a sum with an intercept."""
        settings = self.settings(values, ridge)
        if self._keeps_range(problem):
            return MeanDescent(ensemble, problem, settings)
        if values in ("free", "bounded"):
            settings = replace(settings, values="refit")
        return Descent(ensemble, problem, settings)

    def point(self, descent: AnyDescent, problem: Problem, penalty: float, state: Any, more: dict[str, float]) -> Point:
        """Return a state of a descent as a point of the path."""
        if self.polish is not None and not self.joint:
            state = polished(descent.ensemble, state, self.polish, self.polish_penalty)
        if descent.turns_back:
            more = {**more, "rising": float(descent.rising)}
        return Point(penalty, *descent.decide(state), more, mean_loss(descent.ensemble, problem, descent.raw(state)))

    def _keeps_range(self, problem: Problem) -> bool:
        """Return whether the model is a mean of trees whose range of predictions is to be kept."""
        if self.values == "free" or self.granularity == "layer" or self.polish is not None:
            return False
        natural = range_of(problem.forest)
        return is_plain_mean(problem.forest) if self.values == "bounded" else natural is not None and natural.simplex

    def settings(self, values: str, ridge: float) -> DescentSettings:
        """Return the descent settings for one value mode and ridge."""
        kind = values if not self.joint else {"ridge": "scale", "subset": "scale_sparse"}[str(self.polish)]
        return DescentSettings(
            layered=self.granularity == "layer",
            values=kind,
            by_depth=self.weights == "depth",
            ridge=self.polish_penalty if self.joint else ridge,
            penalties=self.penalties,
            smallest=self.smallest,
            warm_up=self.warm_up,
            max_sweeps=self.max_sweeps,
            local_search=self.local_search,
            max_nodes=self.max_nodes,
            max_trees=self.max_trees,
            seed=self.seed,
        )


def _check(solver: BlockDescent) -> None:
    """Raise InvalidInputError for settings that are invalid, alone or in combination."""
    check_choices(
        solver,
        granularity=("node", "layer"),
        values=("refit", "keep", "both", "free", "bounded"),
        weights=("nodes", "depth"),
        engine=("rows", "gram"),
        polish=("ridge", "subset", None),
    )
    if solver.joint and (solver.granularity != "layer" or solver.values != "keep" or solver.polish is None):
        raise InvalidInputError(
            f"joint=True with granularity={solver.granularity!r}, values={solver.values!r}, polish={solver.polish!r} "
            "is not supported: joint optimises the depth and the weight of each tree. Use granularity='layer', "
            "values='keep' and polish='ridge' or 'subset'."
        )
    if solver.engine == "gram" and (
        solver.granularity != "layer" or solver.values != "keep" or solver.polish is not None
    ):
        raise InvalidInputError(
            f"engine='gram' with granularity={solver.granularity!r}, values={solver.values!r}, "
            f"polish={solver.polish!r} is not supported: the Gram matrix is that of whole layers with original values. "
            "Use granularity='layer', values='keep' and polish=None, or engine='rows'."
        )
    if solver.weights == "depth" and solver.granularity != "layer":
        raise InvalidInputError(
            f"weights='depth' with granularity={solver.granularity!r} is not supported: it sets the price of a layer. "
            "Use granularity='layer'."
        )
    ridges = solver.ridge if isinstance(solver.ridge, tuple) else (solver.ridge,)
    if not ridges or min(ridges) < 0 or not np.isfinite(ridges).all():
        raise InvalidInputError(
            f"ridge={solver.ridge!r}, but it must be a finite number of at least 0 or a tuple of such numbers. Use for "
            "example ridge=25.0."
        )
    check_at_least(solver, max_sweeps=1, local_search=0, polish_penalty=0, max_nodes=1, max_trees=1)
    check_penalties(solver.penalties, solver.smallest)
