"""Compute the path that `prune` selects from: split the rows, fit, refine and refit, shorten, score.

This module owns the sequence. `secateur.prune`, the estimators, the command line and Spark all call `evaluated_path`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from secateur._util.user_functions import warn
from secateur.costs import Cost, as_cost
from secateur.data.row_provider import row_provider
from secateur.data.row_source import RowSource
from secateur.errors import FewRowsWarning, InvalidInputError
from secateur.libraries import adapt
from secateur.libraries.adapter import Adapter
from secateur.losses import Loss
from secateur.path import Limits, Path, Progress
from secateur.path.evaluation import Fold, points_of_known_runs
from secateur.path.guard import guard_for
from secateur.path.limits import checked_limits, size_limits, warn_of_limits
from secateur.path.local_evaluation import rows_to_score
from secateur.path.score_columns import try_scoring
from secateur.path.scoring import check_measured, measures_of
from secateur.selection.arguments import check_arguments, checked_validation
from secateur.selection.cross_validation import cross_validate
from secateur.selection.fitting import FitSettings, fit_path, search_paths, solver_for, unpruned_path
from secateur.selection.regrow import regrow_path
from secateur.selection.validation import FoldRows, Split, Validation, independent, split_rows
from secateur.solvers import Solver
from secateur.solvers.goal import Goal

_EVALUATED_POINTS = 256
_FEW_ROWS = 50
"""The standard error computed from n rows has a relative standard error of 1 / sqrt(2 (n - 1)): 10 % at 50 rows."""
_BYTES_USED = 0.98
"""Fraction of `max_bytes` that the node budget is estimated for, so that the file of the largest pruning fits."""


def evaluated_path(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    solver: Solver | str = "auto",
    cost: Cost | str | None = None,
    loss: Loss | str | None = None,
    scoring: Any = None,
    tolerance: float = 0.0,
    confidence: float | None = None,
    validation: Validation = "auto",
    saved_as: str | None = None,
    sample_weight: Any = None,
    groups: Any = None,
    regrow: bool = False,
    random_state: int | np.random.Generator = 0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    search: bool = False,
    curve: bool = False,
    fewest_rows: int = 5,
    **limits: Unpack[Limits],
) -> Path:
    """Return a path to select from: at most 256 points within the limits, with their losses.

    With `search`, a solver that can ends as soon as the limits are met. The path then has the points near the goal,
    and with `curve` also those on the way. With `confidence`, the path is complete, and evaluated on rows from which
    `Path.select` can certify limits. Fewer than `fewest_rows` rows to choose by are refused: with four, not even a sign
    test in which all rows agree is significant at 5 %, because 1 / 2⁴ is 6 %.
    """
    limits = checked_limits(limits, evaluated_path)
    warn_of_limits(limits)
    check_arguments(
        solver=solver,
        cost=cost,
        loss=loss,
        confidence=confidence,
        saved_as=saved_as,
        regrow=regrow,
        random_state=random_state,
        n_jobs=n_jobs,
        progress=progress,
    )
    cost = as_cost(cost)
    adapter, rows = adapt(model), row_provider(X, y, sample_weight, groups)
    validation = checked_validation(validation, rows, supervised=adapter.supervised)
    measures = measures_of(scoring, tolerance, adapter.forest)
    check_measured(measures, limits)
    if isinstance(solver, str) and isinstance(validation, str) and (solver, validation) == ("auto", "oob"):
        # Out-of-bag evaluation needs predictions of single trees, which jointly fitted trees do not have.
        solver = "weakest_link"
    max_nodes = node_budget(adapter, limits, saved_as)
    chosen = _with_limits(solver, adapter, cost, max_nodes, limits)
    settings = FitSettings(chosen, cost, loss, progress, n_jobs, rows if regrow else None, measures=measures)

    sample = rows.sample(adapter)
    rng = np.random.default_rng(random_state)
    # A search needs all clones at once, the whole path one at a time.
    threads = {"n_jobs": n_jobs if search else 1}
    trees_interact = chosen.uses_ensemble_loss
    split = split_rows(adapter, rows, sample, validation, trees_interact=trees_interact, rng=rng, **threads)
    _check_number_of_rows(split, len(sample), fewest_rows)
    if split.clones and progress is not None:
        split = replace(split, folds=_announced(split.folds, split.clones, progress))
    if confidence is not None:
        # The limits are certified for the prunings that the validation rows evaluate, not for those of all rows.
        split = replace(independent(split, adapter, sample), refit=False)
    # Which prunings a search visits depends on the validation rows.
    search = search and confidence is None
    if measures.scoring is not None:
        # Clones are trained as the folds are iterated over, and the scorer is tried before that.
        to_try = sample if split.clones else next(iter(split.folds)).validation_rows
        try_scoring(adapter, rows_to_score(to_try), measures.scoring)
    goal = goal_of(settings, adapter, split, max_nodes, limits, curve=curve) if search else None
    if goal is not None:
        path = _searched(settings, adapter, sample, split, goal, limits)
    elif split.refit:
        path = _cross_validated(settings, adapter, sample, split, max_nodes, limits)
    else:
        (fold,) = fit_folds(settings, split.folds)
        path = _scored(settings, fold, split, limits)
    return path if saved_as is None else path.saved_as(saved_as)


def _with_limits(
    solver: Solver | str, adapter: Adapter, cost: Cost | None, max_nodes: int | None, limits: Limits
) -> Solver:
    """Return the solver, which computes points for the limits if it can."""
    max_trees, max_cost = limits.get("max_trees"), limits.get("max_cost")
    chosen = solver_for(solver, adapter, cost, max_trees)
    chosen = chosen.with_budget(max_nodes=max_nodes, max_trees=max_trees, max_cost=max_cost)
    if max_cost is not None and cost is None and chosen.default_cost() is None:
        raise InvalidInputError(
            f"max_cost={max_cost:g} limits a cost, but no cost was given. Pass cost= as well, such as "
            "cost=FeatureCost(prices) or cost='depth', or limit the number of nodes with max_nodes."
        )
    return chosen


def _announced(folds: Iterable[FoldRows], n_clones: int, progress: Progress) -> Iterator[FoldRows]:
    """Yield the folds, whose clones are trained as they are iterated over, and report that they are."""
    trained = iter(folds)
    for clone in range(n_clones):
        progress(clone, n_clones, "training clones")
        yield next(trained)


def _check_number_of_rows(split: Split, n_rows: int, fewest: int) -> None:
    """Raise InvalidInputError if too few rows for any choice choose the pruning; warn if they are few."""
    if not split.clones:
        n_rows = len(next(iter(split.folds)).validation_rows)
    elif split.clones == 1:
        n_rows //= 4
    if n_rows < fewest:
        raise InvalidInputError(
            f"A pruning would be chosen by {n_rows} row(s): {split.description}. Even if all of them agree, that may "
            f"be chance: with four rows in one of 16 cases. Pass at least {fewest} rows to choose by, better "
            f"{_FEW_ROWS} or more."
        )
    if n_rows < _FEW_ROWS:
        warn(
            f"The pruning is chosen by {n_rows} rows: {split.description}. Below {_FEW_ROWS} rows, even the standard "
            "error of a loss is uncertain by more than 10 %. Pass more rows, and compare the result on other rows.",
            FewRowsWarning,
        )


def goal_of(
    settings: FitSettings, adapter: Adapter, split: Split, max_nodes: int | None, limits: Limits, *, curve: bool
) -> Goal | None:
    """Return the goal to search for, None if the whole path is needed.

    It is needed for limits that the search does not know, for scorers, and for models that are compared with
    themselves.
    """
    if settings.measures.scoring is not None:
        return None
    given = {name for name, limit in limits.items() if limit is not None}
    if given - {"max_nodes", "max_bytes", "max_loss_increase"} or settings.regrow_rows or not adapter.supervised:
        return None
    # The size of files is only estimated: if the pruning found is too large, a smaller one on the way is selected.
    curve = curve or limits.get("max_bytes") is not None
    goal = Goal(max_nodes, limits.get("max_loss_increase"), guard_for(split.clones), split.refit, curve)
    return None if settings.solver.why_no_search(goal) else goal


def _searched(
    settings: FitSettings, adapter: Adapter, sample: RowSource, split: Split, goal: Goal, limits: Limits
) -> Path:
    """Return the path of the prunings that a search for a goal visits, scored on the validation rows."""
    fold_rows = list(split.folds)
    settings = replace(settings, brief=goal.curve, max_nodes=goal.max_nodes)
    solver, paths = search_paths(settings, fold_rows, goal)
    folds = [Fold(path, rows.validation_rows) for path, rows in zip(paths, fold_rows, strict=True)]
    if not split.refit:
        return _scored(settings, folds[0], split, limits)
    if folds[0].path.info.interrupted:
        return _incomplete(settings, folds[0], split, limits)
    if solver is None:
        whole = unpruned_path(settings, adapter, sample)
    else:
        settings = replace(settings, solver=solver)
        whole = fit(settings, adapter, sample)
        if whole.info.interrupted and not split.clones:
            return _scored(settings, folds[0], split, limits).with_info(interrupted=True)
        whole = whole.take(points_of_known_runs(whole, paths[0]))
    return _scored_by_folds(settings, whole, split, folds, goal.max_nodes, limits)


def _cross_validated(
    settings: FitSettings, adapter: Adapter, sample: RowSource, split: Split, max_nodes: int | None, limits: Limits
) -> Path:
    """Return the path of all rows, each point scored by the matching points of the folds' paths."""
    folds: Iterable[Fold] = fit_folds(settings, split.folds)
    if not split.clones:
        folds = list(folds)
        if folds[-1].path.info.interrupted:
            return _incomplete(settings, folds[-1], split, limits)
    return _scored_by_folds(settings, fit(settings, adapter, sample), split, folds, max_nodes, limits)


def _scored_by_folds(
    settings: FitSettings, whole: Path, split: Split, folds: Iterable[Fold], max_nodes: int | None, limits: Limits
) -> Path:
    """Return the path of all rows, shortened, with the losses of the matching points of the folds' paths."""
    path = _shortened(whole, limits).with_info(
        clones=split.clones, fills_budget=settings.solver.fills_budget and max_nodes is not None
    )
    return cross_validate(
        whole,
        path,
        folds,
        split.n_folds,
        solver=settings.solver,
        same_size=max_nodes is not None,
        rows=split.description if split.clones else f"{split.description}, held out from the pruning",
        measures=settings.measures,
        progress=settings.progress,
    )


def fit_folds(settings: FitSettings, fold_rows: Iterable[FoldRows]) -> Iterator[Fold]:
    """Yield the path of each fold with its validation rows; after Ctrl-C the last path is incomplete."""
    for rows in fold_rows:
        fold = Fold(fit(settings, rows.adapter, rows.fit_rows), rows.validation_rows)
        yield fold
        if fold.path.info.interrupted:
            return


def fit(settings: FitSettings, adapter: Adapter, sample: RowSource) -> Path:
    """Return the path of a model on routed rows, with `regrow` also those of clones trained on fewer features."""
    return regrow_path(settings, adapter, sample) if settings.regrow_rows else fit_path(settings, adapter, sample)


def _incomplete(settings: FitSettings, fold: Fold, split: Split, limits: Limits) -> Path:
    """Return the scored path of an interrupted fold, instead of starting another one on all rows.

    The path of a clone is of no use: raise KeyboardInterrupt.
    """
    if split.clones:
        raise KeyboardInterrupt
    return _scored(settings, fold, split, limits)


def _scored(settings: FitSettings, fold: Fold, split: Split, limits: Limits) -> Path:
    """Return the path of a fold, shortened and evaluated on its validation rows."""
    path = _shortened(fold.path, limits)
    return path.evaluate_sample(
        fold.validation_rows,
        measures=settings.measures,
        rows=split.description,
        progress=settings.progress,
        partial=True,
    )


def _shortened(path: Path, limits: Limits) -> Path:
    """Return at most 256 points within the limits; the number of bytes is checked when a point is selected."""
    known = {name: limit for name, limit in size_limits(limits).items() if name != "max_bytes"}
    return path.thin(_EVALUATED_POINTS, **known)


def node_budget(adapter: Adapter, limits: Limits, saved_as: str | None) -> int | None:
    """Return the node budget implied by the limits on nodes and bytes, None without such a limit.

    Bytes are converted to nodes by the mean file size per node of the unpruned model.
    """
    max_nodes, max_bytes = limits.get("max_nodes"), limits.get("max_bytes")
    budgets: list[float] = [max_nodes] if max_nodes is not None else []
    if max_bytes is not None:
        from secateur.files.models import file_size

        n_bytes = adapter.n_bytes(adapter.model) if saved_as is None else file_size(adapter.model, saved_as)
        budgets.append(_BYTES_USED * int(max_bytes) * adapter.forest.n_nodes / n_bytes)
    return max(1, int(min(budgets))) if budgets else None
