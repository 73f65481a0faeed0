"""Fit a path: resolve the names of solver, loss and cost, check that they fit the model, and run the solver."""

import logging
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

import numpy as np

from secateur._util.blas import one_blas_thread
from secateur._util.registry import object_of
from secateur._util.user_functions import warn
from secateur.costs import Cost, NodeCost, as_cost
from secateur.data.row_provider import RowProvider
from secateur.data.row_source import RowSource
from secateur.data.rows import LocalRows
from secateur.errors import TrainingRowsWarning, UnknownObjectiveWarning, UnsupportedProblemError
from secateur.libraries.adapter import Adapter
from secateur.losses import Loss, as_loss, default_loss
from secateur.path import Path, Progress
from secateur.path.build import trace_points
from secateur.path.scoring import LOSS_ONLY, Measures
from secateur.problem import Problem
from secateur.selection.validation import FoldRows
from secateur.solvers import SOLVERS, Solver
from secateur.solvers.auto import automatic
from secateur.solvers.goal import FoldProblem, Goal
from secateur.solvers.keep_promises import keep_promises

logger = logging.getLogger("secateur")
_MAX_MEAN_RESIDUAL = 4.0
"""Mean residual, in standard errors, above which a model is not one of the mean."""


@dataclass(frozen=True, eq=False)
class FitSettings:
    """Hold the settings of a path computation, independent of model and rows.

    If `regrow_rows` is given, clones are trained on these rows with fewer features and pruned too. With `brief`, the
    path has the prunings found by brief descents, on the way to the one that was searched for; without, only if no
    other pruning has at most `max_nodes` nodes. `measures` says what is measured on the validation rows.
    """

    solver: Solver
    cost: Cost | str | None = None
    loss: Loss | str | None = None
    progress: Progress | None = None
    n_jobs: int | None = None
    regrow_rows: RowProvider | None = None
    brief: bool = True
    max_nodes: int | None = None
    measures: Measures = LOSS_ONLY

    def cost_for_solver(self) -> Cost:
        """Return the given cost, or the default of the solver, or the number of nodes."""
        cost: Cost | None = as_cost(self.cost)
        return cost or self.solver.default_cost() or NodeCost()

    def loss_for(self, adapter: Adapter) -> Loss:
        """Return the given loss, or the default of the solver, of the training objective or of the model type."""
        loss = self.loss
        if loss is None:
            loss = self.solver.default_loss(adapter.forest) or adapter.forest.objective or default_loss(adapter.forest)
        return as_loss(loss)


def fit_path(settings: FitSettings, adapter: Adapter, rows: RowSource) -> Path:
    """Return the path of a model on routed rows.

    Remote rows are collected for a solver that needs single rows: all of them, or a share drawn by content that fits.

    Raises
    ------
    UnsupportedProblemError
        If the solver cannot prune this model with these rows, this loss and this cost.
    """
    solver = settings.solver
    with rows.persisted() if solver.many_passes else nullcontext(rows) as rows, one_blas_thread:
        problem = problem_of(settings, adapter, rows)
        return _finished(settings, adapter, problem, solver.path(problem))


def search_paths(settings: FitSettings, folds: Sequence[FoldRows], goal: Goal) -> tuple[Solver | None, list[Path]]:
    """Search for the pruning that meets a goal; return the solver whose path has it, if any, and the folds' paths."""
    with one_blas_thread:
        problems = [
            FoldProblem(problem_of(settings, fold.adapter, fold.fit_rows), fold.validation_rows.collect())
            for fold in folds
        ]
        solver, paths = settings.solver.search(problems, goal)
        finished = [
            _finished(settings, fold.adapter, one.problem, path)
            for fold, one, path in zip(folds, problems, paths, strict=True)
        ]
    return solver, finished


def _without_brief(path: Path, max_nodes: int | None) -> Path:
    """Return the path without prunings found by brief descents, unless only these are within the node budget."""
    thorough = np.flatnonzero(path.table["brief"] == 0)
    within = max_nodes is None or (path.table["n_nodes"][thorough] <= max_nodes).any()
    return path.take(thorough) if within else path


def unpruned_path(settings: FitSettings, adapter: Adapter, rows: RowSource) -> Path:
    """Return the path of the unpruned model alone."""
    problem = problem_of(settings, adapter, rows)
    path = trace_points(problem, (), repr(settings.solver), ensemble=settings.solver.uses_ensemble_loss)
    return replace(path, source=adapter)


def problem_of(settings: FitSettings, adapter: Adapter, rows: RowSource) -> Problem:
    """Return the problem to solve, after checking that the solver supports it."""
    solver, cost, loss = settings.solver, settings.cost_for_solver(), settings.loss_for(adapter)
    problem = Problem(adapter.forest, rows, loss, cost, settings.progress, settings.n_jobs)
    check_supported(solver, problem, adapter)
    if solver.needs_rows and rows.is_remote:
        problem = problem.local()
        _log_share(solver, problem.row_source)
    _warn_of_training_rows(solver, adapter, problem.row_source)
    _warn_of_objective(adapter, problem.row_source)
    return problem


def _finished(settings: FitSettings, adapter: Adapter, problem: Problem, path: Path) -> Path:
    """Return the path of a solver with values that keep the promises of the model, and with the model itself."""
    if not settings.brief and "brief" in path.table and not path.info.interrupted:
        path = _without_brief(path, settings.max_nodes)
    return replace(keep_promises(settings.solver, problem, path), source=adapter)


def check_supported(solver: Solver, problem: Problem, adapter: Adapter) -> None:
    """Raise UnsupportedProblemError if the solver cannot handle the problem or the model cannot store its result."""
    reasons = [solver.unsupported(problem), *(adapter.why_immutable(what) for what in solver.changes)]
    if problem.forest.symmetric and not solver.supports_symmetric:
        reasons.append(
            "the trees of this model are symmetric: all splits of a level are equal, so that only whole levels can be "
            "cut. Use weakest_link, BlockDescent(granularity='layer') or fewer_trees."
        )
    for reason in reasons:
        if reason:
            raise UnsupportedProblemError(f"{type(solver).__name__} cannot prune this: {reason}")


def _log_share(solver: Solver, rows: RowSource) -> None:
    if rows.sampled_from is not None:
        message = "%s needs single rows; it uses %d of %d rows, drawn by their contents."
        logger.info(message, type(solver).__name__, len(rows), rows.sampled_from)


def _warn_of_training_rows(solver: Solver, adapter: Adapter, rows: RowSource) -> None:
    if solver.needs_unseen_rows and isinstance(rows, LocalRows) and adapter.grown_on(rows.leaves):
        warn(
            f"{type(solver).__name__} got the rows the model was trained on, on which trees make almost no errors, so "
            "almost nothing is pruned. Pass rows the model was not trained on.",
            TrainingRowsWarning,
        )


def _warn_of_objective(adapter: Adapter, rows: RowSource) -> None:
    """Warn of a training objective that the model does not store, or that its predictions contradict."""
    message = None
    if adapter.custom_objective:
        message = (
            "The model was trained with a custom objective, which secateur cannot evaluate. Prunings are compared with "
            "the scores of the unpruned model, and y is not used. Check the pruned model by your own metric."
        )
    elif adapter.forgets_offsets and adapter.supervised and isinstance(rows, LocalRows):
        distance = _mean_residual(adapter, rows)
        if distance > _MAX_MEAN_RESIDUAL and not adapter.hides_objective:
            message = (
                f"The predictions of this model are off by {distance:.0f} standard errors on average. It may have been "
                "trained with an offset per row (base_margin, init_score, baseline), which models do not store, or on "
                "other rows. If it was trained with offsets, subtract them from y, or train without them."
            )
        elif distance > _MAX_MEAN_RESIDUAL:
            message = (
                f"This booster states squared error as its objective, but its predictions are off by {distance:.0f} "
                "standard errors on average. A booster trained with a custom objective states this, too. If it was, "
                "prune the scikit-learn wrapper with that objective, or use BlockDescent(values='keep')."
            )
    if message is not None:
        warn(message, UnknownObjectiveWarning)


def _mean_residual(adapter: Adapter, rows: LocalRows) -> float:
    """Return the mean residual of a model of the mean in standard errors, 0 for other models."""
    forest = adapter.forest
    own_loss = forest.objective not in (None, "squared_error")
    if forest.n_classes or own_loss or forest.link != "identity" or len(rows) < 2:
        return 0.0
    residual = rows.y - rows.scores(forest)
    error = residual.std(axis=0) / np.sqrt(len(rows))
    return float(np.max(np.abs(residual.mean(axis=0)) / np.maximum(error, 1e-300), initial=0.0))


def solver_for(
    choice: Solver | str, adapter: Adapter, cost: Cost | str | None, max_trees: float | None = None
) -> Solver:
    """Return the solver given as an object or by name, or the default solver of the model within a limit of trees."""
    if isinstance(choice, str) and choice == "auto":
        new_values = adapter.why_immutable("value") is None
        return automatic(adapter.forest, as_cost(cost), new_values=new_values, max_trees=max_trees)
    solver: Solver = object_of(choice, SOLVERS, Solver, "solver")
    return solver
