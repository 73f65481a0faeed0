"""Block descent: ForestPrune (Liu and Mazumder 2023) and its node-level, refitting generalisation."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, final

import numpy as np

from secateur.path import Path
from secateur.path.build import Point, trace_points
from secateur.problem import Problem
from secateur.solvers.base import Solver, check_choices
from secateur.solvers.ensemble._gram_descent import gram_points
from secateur.solvers.ensemble._remote_descent import DistantDescent
from secateur.solvers.ensemble._remote_sums import KnownSums
from secateur.solvers.ensemble._row_descent import Descent
from secateur.solvers.ensemble.additive_model import additive, decide, not_additive, risk_of, too_many_pairs
from secateur.solvers.ensemble.descent_path import DescentSettings, distinct
from secateur.solvers.ensemble.gram import columns, gram_of, no_gram
from secateur.solvers.penalty_grid import check_penalties
from secateur.solvers.whole_trees.reweight import polished

_COLUMNS = 4096
"""Of how many layers, at most, inner products are taken unasked: 128 MB."""


@final
@dataclass(frozen=True, repr=False)
class BlockDescent(Solver):
    """Prune all trees together: each in turn gets the best subtree given the others, at every penalty of a sequence.

    It minimises, over all subtrees of all trees, their leaf values and one intercept,

        loss(y, intercept + Σ_trees tree(x)) + penalty · cost(pruning) + ridge / n · Σ_leaves value²

    with squared error for numbers and for class probabilities (Brier), log loss for boosted classifiers. One update is
    exact (a dynamic program over the tree; for log loss by a parabola, taken only if the true objective falls); the
    whole is a local minimum with respect to single trees, from the one at the next larger penalty. O(rows + nodes) per
    update.

    Rows that are elsewhere are asked for sums alone, and the path is the same. A change of a tree costs a pass over
    them, where trees stay as they are one pass does for many; with squared error and up to 4096 leaves in all, a few
    passes do for the whole path. Only `polish` needs the rows on this machine.

    `granularity="layer", values="keep"` is ForestPrune's problem (1); `polish` its problem (2); `joint` its (5)–(7).

    Parameters
    ----------
    granularity : "node" or "layer"
        Whether any subtree may be cut, or all that is below a depth.
    values : "refit", "keep" or "both"
        Whether leaf values are fitted anew or stay (but for the intercept). Both make one path with all their points.
    weights : "nodes" or "depth"
        What a layer costs: the cost of its nodes, or 1.
    ridge : float or tuple of float
        How many rows the value 0 counts in a refitted leaf. Several make one path with all their points.
    penalties : int or tuple of float
        How many, from one too large for any split down to `smallest` times that; or which.
    smallest : float
    max_sweeps : int
        Rounds over all trees at each penalty.
    local_search : int
        After a descent, drop trees at random and descend again, until this many attempts in a row were in vain.
    polish : "ridge", "subset" or None
        Reweigh the trees of each point, with a penalty on the squared weights or on their number.
    polish_penalty : float
        Counted against the sum of squared errors over rows, as ForestPrune does.
    joint : bool
        Choose each tree's weight together with its depth, penalised as `polish` says.
    engine : "rows" or "gram"
        What an update looks at: the rows, or the inner products of what layers add, taken once. The same path either
        way. "gram" is for `granularity="layer", values="keep"` and squared error; it takes (Σ depths of trees)²
        numbers of memory, and an update does not depend on the number of rows. Where rows are elsewhere it is taken
        unasked for up to 4096 layers.
    max_nodes : int, optional
        Make sure that a point uses up this number of nodes, and stop there.
    max_trees : int, optional
        Once there are more trees, drop the weakest, and go on to smaller penalties with those that are left.
    seed : int
        For the local search.
    """

    granularity: Literal["node", "layer"] = "node"
    values: Literal["refit", "keep", "both"] = "refit"
    weights: Literal["nodes", "depth"] = "nodes"
    ridge: float | tuple[float, ...] = 25.0
    penalties: int | tuple[float, ...] = 50
    smallest: float = 1e-6
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

    @property
    def changes(self) -> tuple[str, ...]:
        """Values: also kept ones, as the intercept and the number of trees are in them."""
        return ("value",)

    @property
    def supports_symmetric(self) -> bool:
        """Whether layers are what is cut."""
        return self.granularity == "layer"

    @property
    def needs_rows(self) -> bool:
        """Only to reweigh trees."""
        return self.polish is not None

    @property
    def many_passes(self) -> bool:
        """Whether inner products, asked for once, will not do."""
        return self.granularity == "node" or self.values != "keep" or self.needs_rows

    @property
    def uses_ensemble_loss(self) -> bool:
        """Yes: that is the point."""
        return True

    def with_budget(
        self, *, max_nodes: int | None = None, max_trees: int | None = None, max_cost: float | None = None
    ) -> "BlockDescent":
        """Return the same with budgets, unless there are some."""
        return replace(self, max_nodes=self.max_nodes or max_nodes, max_trees=self.max_trees or max_trees)

    @property
    def several_ridges(self) -> bool:
        """Whether there are several ridges, between which there are others."""
        return isinstance(self.ridge, tuple) and len(self.ridge) > 1 and min(self.ridge) > 0 and self.values != "keep"

    def with_ridge(self, ridge: float | None) -> "BlockDescent":
        """Return the same with one ridge, or with kept values."""
        return replace(self, values="keep") if ridge is None else replace(self, values="refit", ridge=ridge)

    def unsupported(self, problem: Problem) -> str | None:
        """Return a reason for models that are no sums, and for settings that do not go together."""
        reason = not_additive(problem.forest)
        if reason:
            return f"{reason}Use weakest_link."
        if self.polish and not problem.forest.response.linear:
            return "trees are reweighed by squared error, and this model sums log-odds. Use polish=None."
        reason = too_many_pairs(problem.forest) if self.polish or self.engine == "gram" else None
        if reason:
            return f"{reason}Use polish=None and engine='rows'."
        if problem.why_no_node_prices:
            return problem.why_no_node_prices
        return no_gram(problem.forest) if self.engine == "gram" else None

    def path(self, problem: Problem) -> Path:
        """Return the unpruned forest and what was found at each penalty, by falling size."""
        if self._takes_gram(problem):
            gram = problem.row_source.total(problem.forest, gram_of)
            points = gram_points(problem.forest, problem.prices, gram, self.settings("keep", 0.0))
        else:
            points = self._points(problem)
        return trace_points(problem, points, repr(self), ensemble=True)

    def _takes_gram(self, problem: Problem) -> bool:
        """Return whether inner products are asked for, or are all it takes to prune by rows that are elsewhere."""
        if self.engine == "gram":
            return True
        layers = self.granularity == "layer" and self.values == "keep" and self.polish is None
        if not (layers and problem.row_source.is_remote) or no_gram(problem.forest):
            return False
        return bool(columns(problem.forest)[-1] <= _COLUMNS)

    def _points(self, problem: Problem) -> Iterator[Point]:
        """Yield what was found for every kind of values, ridge and penalty, without repeating a shape."""
        ridges = self.ridge if isinstance(self.ridge, tuple) else (self.ridge,)
        runs = [] if self.values == "keep" else [("refit", ridge) for ridge in ridges]
        runs += [] if self.values == "refit" else [("keep", 0.0)]
        if problem.row_source.is_remote and not self.needs_rows:
            yield from self._distant_points(problem, runs)
            return
        ensemble = additive(problem)
        for run, (values, ridge) in enumerate(runs):
            descent = Descent(ensemble, problem, self.settings(values, ridge))
            descent.on_sweep = problem.watch("pruning", run, len(runs))
            for penalty, state in distinct(descent.run()):
                if self.polish is not None and not self.joint:
                    state = polished(ensemble, state, self.polish, self.polish_penalty)
                more = {"ridge": ridge, "kept": float(values == "keep")}
                yield Point(penalty, *decide(ensemble, state), more, risk_of(ensemble, state, problem))

    def _distant_points(self, problem: Problem, runs: list[tuple[str, float]]) -> Iterator[Point]:
        """Yield the same, with nothing but sums over the rows; the loss of the points remains to be measured."""
        known = KnownSums(problem.forest, problem.row_source, problem.weight)
        for run, (values, ridge) in enumerate(runs):
            descent = DistantDescent(problem, self.settings(values, ridge), known)
            descent.on_sweep = problem.watch("pruning", run, len(runs))
            for penalty, state in distinct(descent.run()):
                more = {"ridge": ridge, "kept": float(values == "keep")}
                yield Point(penalty, *decide(descent.ensemble, state), more)

    def settings(self, values: str, ridge: float) -> DescentSettings:
        """Return how to descend with one kind of values."""
        kind = values if not self.joint else {"ridge": "scale", "subset": "scale_sparse"}[str(self.polish)]
        return DescentSettings(
            layered=self.granularity == "layer",
            values=kind,
            by_depth=self.weights == "depth",
            ridge=self.polish_penalty if self.joint else ridge,
            penalties=self.penalties,
            smallest=self.smallest,
            max_sweeps=self.max_sweeps,
            local_search=self.local_search,
            max_nodes=self.max_nodes,
            max_trees=self.max_trees,
            seed=self.seed,
        )


def _check(solver: BlockDescent) -> None:
    """Raise ValueError for settings that mean nothing, alone or together."""
    check_choices(
        solver,
        granularity=("node", "layer"),
        values=("refit", "keep", "both"),
        weights=("nodes", "depth"),
        engine=("rows", "gram"),
        polish=("ridge", "subset", None),
    )
    if solver.joint and (solver.granularity != "layer" or solver.values != "keep" or solver.polish is None):
        raise ValueError(
            f"joint=True with granularity={solver.granularity!r}, values={solver.values!r}, polish={solver.polish!r}; "
            "it chooses depth and weight of whole trees. Use granularity='layer', values='keep' and polish='ridge' or "
            "'subset'."
        )
    if solver.engine == "gram" and (
        solver.granularity != "layer" or solver.values != "keep" or solver.polish is not None
    ):
        raise ValueError(
            f"engine='gram' with granularity={solver.granularity!r}, values={solver.values!r}, "
            f"polish={solver.polish!r}; it knows of whole layers with the values they have. Use granularity='layer', "
            "values='keep' and polish=None, or engine='rows'."
        )
    if solver.weights == "depth" and solver.granularity != "layer":
        raise ValueError("weights='depth' prices layers, but granularity is 'node'. Use granularity='layer'.")
    ridges = solver.ridge if isinstance(solver.ridge, tuple) else (solver.ridge,)
    if not ridges or min(ridges) < 0 or not np.isfinite(ridges).all():
        raise ValueError(
            f"ridge={solver.ridge!r}; it must be a number of rows, at least 0, or a tuple of such. Try 25.0."
        )
    least_of = {"max_sweeps": 1, "local_search": 0, "polish_penalty": 0, "max_nodes": 1, "max_trees": 1}
    for name, least in least_of.items():
        if getattr(solver, name) is not None and not getattr(solver, name) >= least:
            raise ValueError(f"{name}={getattr(solver, name)!r}; it must be at least {least}. Correct it.")
    check_penalties(solver.penalties, solver.smallest)
