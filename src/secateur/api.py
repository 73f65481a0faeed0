"""Provide the main functions: `prune`, `prune_path` and `as_forest`."""

import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np

from secateur._util.blas import one_blas_thread
from secateur.costs import COSTS, Cost, NodeCost, SharedCost
from secateur.data.row_source import RowSource
from secateur.data.rows import LocalRows
from secateur.errors import TrainingRowsWarning
from secateur.forest import Forest
from secateur.libraries import adapt
from secateur.libraries.adapter import Adapter
from secateur.losses import Loss, default_loss, loss_named
from secateur.path import Path, Progress, Pruned
from secateur.path.rules import LIMITS
from secateur.problem import Problem
from secateur.selection.choice import choose_point
from secateur.selection.cross_validation import Fold
from secateur.selection.regrow import regrow as regrow_on
from secateur.selection.ridge_averaging import average_ridges
from secateur.selection.validation import Make, RowProvider, Rows, Validation, make_and_evaluate
from secateur.solvers import SOLVERS, BlockDescent, Solver
from secateur.solvers.auto import automatic

_EVALUATED_POINTS = 256


def as_forest(model: Any, *, trust: bool = False) -> Forest:
    """Convert a supported model or model file to a Forest; a Forest is returned unchanged.

    Files that can execute code when loaded (.pkl, .joblib) are opened only with `trust=True`.
    """
    if isinstance(model, str | PathLike):
        from secateur.files.models import load_model

        model = load_model(model, trust=trust)
    return adapt(model).forest


def prune_path(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    solver: Solver | str = "auto",
    cost: Cost | str | None = None,
    loss: Loss | str | None = None,
    sample_weight: Any = None,
    regrow: bool = False,
    progress: Progress | None = None,
) -> Path:
    """Compute the trade-off between loss and cost of a trained model, as a path of prunings.

    Parameters
    ----------
    model : fitted model or Forest
    X, y : rows and targets on which the risk of the nodes is computed
        X is a dense or sparse matrix, a memory map, a pandas, polars or Arrow table, or `Batches`; equal values give
        the same path. `y` is not needed for unsupervised models (IsolationForest).
    solver : Solver, a name, or "auto"
    cost : Cost or a name, default the number of nodes
    loss : Loss or a name, default the loss of the solver or of the model
    sample_weight : (n_rows,), optional
    regrow : bool
        With a feature cost: also train clones of the model on X with ever fewer features, prune them too, and put all
        prunings on one path. This trains up to ten clones.
    progress : callable, optional
        Called as `progress(done, total, what)`.

    Returns
    -------
    Path
        From the unpruned model to the most pruned one. Call `evaluate` on validation rows, then `select`. After Ctrl-C,
        solvers that iterate over penalties warn and return the points found so far.

    Examples
    --------
    >>> import secateur as sc
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> path = sc.prune_path(DecisionTreeClassifier(random_state=0).fit(X, y), X, y)
    >>> path.table["n_leaves"].tolist()
    [9, 7, 5, 4, 3, 2, 1]
    """
    adapter = adapt(model)
    rows = _source(X, y, sample_weight)
    question = _Question(_solver_for(solver, adapter, cost), cost, loss, progress, rows if regrow else None)
    return question.ask(adapter, rows.sample(adapter))


def prune(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    solver: Solver | str = "auto",
    cost: Cost | str | None = None,
    loss: Loss | str | None = None,
    validation: Validation = "auto",
    max_nodes: int | None = None,
    max_leaves: int | None = None,
    max_trees: int | None = None,
    max_depth: int | None = None,
    max_features: int | None = None,
    max_cost: float | None = None,
    max_bytes: int | None = None,
    max_loss_increase: float | None = None,
    saved_as: str | None = None,
    sample_weight: Any = None,
    regrow: bool = False,
    random_state: int | np.random.Generator = 0,
    progress: Progress | None = None,
) -> Any:
    """Prune a trained model and return a smaller copy of the same type; the given model is not modified.

    Parameters
    ----------
    model : fitted model or Forest
    X, y : rows and targets, preferably not those the model was trained on
    solver, cost, loss, sample_weight, regrow
        As in `prune_path`; with `regrow` the result may be a pruned clone of the model, trained on the given rows.
    validation : float, (n_rows,) bools, (X, y), (X, y, sample_weight), "oob", "refit", "cv", "auto" or None
        The rows on which a point of the path is selected.

        * float: a random share of the given rows;
        * mask: the marked rows;
        * tuple: separate validation rows;
        * "oob": out-of-bag rows (X must be the training rows of bagged trees);
        * "refit": a quarter of the rows, held out from a clone that is refitted on the rest;
        * "cv": five-fold cross-validation, which refits five clones;
        * None: the rows the path is computed on.

        "auto" is a share of 0.25. If X is the training set, "auto" is "cv" (from 5000 rows on "refit") for solvers that
        fit trees jointly, and "oob" for bagged trees otherwise. Solvers that fit trees jointly, such as the default for
        ensembles, use a share or a mask for selection only and then prune again on all rows.
    max_nodes, max_leaves, max_trees, max_depth, max_features, max_cost, max_bytes : optional
        Limits the result must satisfy; `max_bytes` limits the size of the saved model. Among the points within the
        limits, the one with the lowest loss is selected. If rows are held out, a solver with several ridges, such as
        the default for ensembles, exhausts a budget of nodes or bytes, because the optimal size on few rows is often
        too small for all rows. It averages the ridges, weighted by their held-out losses, and uses that mean.
    max_loss_increase : float, optional
        Select the cheapest point whose loss exceeds that of the unpruned model by at most this fraction of it. Half a
        standard error of the difference (a whole one if clones are evaluated) is added to the measured increase, to
        compensate for the selection bias of comparing many points. A model that has overfitted may be worse than a
        constant, and the result may then be a constant. Without any limit, the cheapest point within one per cent of
        the *lowest* loss is selected, which is never above that of the unpruned model.
    saved_as : str, optional
        Suffix of the files whose size `max_bytes` limits, such as ".onnx"; default a pickle, or the native file format
        of libraries that have one.
    random_state : int or numpy Generator
        Seed of the random split into rows for the path and validation rows.
    progress : callable, optional
        Called as `progress(done, total, what)`.

    Raises
    ------
    TypeError
        If the type of the model is not supported.
    ValueError
        If model and data do not match, or no pruning satisfies the limits.

    Examples
    --------
    >>> import secateur as sc
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> tree = DecisionTreeClassifier(random_state=0).fit(X[::2], y[::2])
    >>> small = sc.prune(tree, X[1::2], y[1::2], max_leaves=3)
    >>> sc.as_forest(tree).n_leaves, sc.as_forest(small).n_leaves
    (7, 3)
    >>> small
    DecisionTreeClassifier(random_state=0)
    """
    return prune_point(
        model,
        X,
        y,
        solver=solver,
        cost=cost,
        loss=loss,
        validation=validation,
        sample_weight=sample_weight,
        saved_as=saved_as,
        regrow=regrow,
        random_state=random_state,
        progress=progress,
        max_nodes=max_nodes,
        max_leaves=max_leaves,
        max_trees=max_trees,
        max_depth=max_depth,
        max_features=max_features,
        max_cost=max_cost,
        max_bytes=max_bytes,
        max_loss_increase=max_loss_increase,
    ).to_model()


def prune_point(model: Any, X: Any, y: Any = None, *, max_loss_increase: float | None = None, **options: Any) -> Pruned:
    """Prune like `prune`, but return the selected `Pruned`, whose `summary()` reports sizes and losses."""
    limits = {name: options.get(name) for name in LIMITS}
    return choose_point(evaluated_path(model, X, y, **options), max_loss_increase=max_loss_increase, **limits)


def evaluated_path(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    solver: Solver | str = "auto",
    cost: Cost | str | None = None,
    loss: Loss | str | None = None,
    validation: Validation = "auto",
    saved_as: str | None = None,
    sample_weight: Any = None,
    regrow: bool = False,
    random_state: int | np.random.Generator = 0,
    progress: Progress | None = None,
    max_trees: int | None = None,
    **limits: float | None,
) -> Path:
    """Return the path from which `prune` selects: at most 256 points within the limits, with their losses."""
    adapter = adapt(model)
    if isinstance(solver, str) and isinstance(validation, str) and (solver, validation) == ("auto", "oob"):
        # Out-of-bag evaluation needs predictions of single trees, which jointly fitted trees do not have.
        solver = "weakest_link"
    chosen = _solver_for(solver, adapter, cost)
    budget = _node_budget(adapter, limits.get("max_nodes"), limits.pop("max_bytes", None), saved_as)
    chosen = chosen.with_budget(max_nodes=budget, max_trees=max_trees, max_cost=limits.get("max_cost"))

    rows = _source(X, y, sample_weight)
    question = _Question(chosen, cost, loss, progress, rows if regrow else None)

    def shorten(path: Path) -> Path:
        return path.thin(_EVALUATED_POINTS, max_trees=max_trees, **limits)

    rng = np.random.default_rng(random_state)
    path = make_and_evaluate(
        adapter,
        rows,
        question.ask,
        shorten,
        validation,
        remake=_settling(question, budget),
        trees_interact=chosen.uses_ensemble_loss,
        match_by_size=budget is not None,
        rng=rng,
        progress=progress,
    )
    return path if saved_as is None else path.saved_as(saved_as)


def _settling(question: "_Question", budget: int | None) -> Callable[[list[Fold]], Make] | None:
    """Return the function that averages the ridges after validation; None without a budget or several ridges."""
    solver = question.solver
    if budget is None or not isinstance(solver, BlockDescent) or not solver.several_ridges:
        return None
    return lambda folds: replace(question, solver=solver.with_ridge(average_ridges(folds, budget))).ask


def _source(X: Any, y: Any, sample_weight: Any) -> RowProvider:
    """Return X if it is a RowProvider, otherwise wrap the arrays as rows in memory."""
    return X if isinstance(X, RowProvider) else Rows(X, y, sample_weight)


def _node_budget(
    adapter: Adapter, max_nodes: float | None, max_bytes: float | None, saved_as: str | None
) -> int | None:
    """Return the node budget implied by the limits on nodes and bytes, None without such a limit.

    Bytes are converted to nodes by the mean file size per node of the unpruned model.
    """
    budgets = [max_nodes] if max_nodes is not None else []
    if max_bytes is not None:
        from secateur.files.models import file_size

        whole = adapter.n_bytes(adapter.model) if saved_as is None else file_size(adapter.model, saved_as)
        budgets.append(max_bytes * adapter.forest.n_nodes / whole)
    return max(1, int(min(budgets))) if budgets else None


def _solver_for(choice: Solver | str, adapter: Adapter, cost: Cost | str | None) -> Solver:
    """Return the solver given as an object or by name, or the default solver of the model."""
    if isinstance(choice, str) and choice == "auto":
        return automatic(
            adapter.forest, _from_table(cost, COSTS, "cost"), new_values=adapter.why_immutable("value") is None
        )
    solver: Solver = _from_table(choice, SOLVERS, "solver")
    return solver


@dataclass(frozen=True, eq=False)
class _Question:
    """Hold the settings of a path computation, independent of model and rows.

    If `to_train_on` is given, clones are trained on these rows and pruned too.
    """

    solver: Solver
    cost: Cost | str | None
    loss: Loss | str | None
    progress: Progress | None
    to_train_on: RowProvider | None

    def ask(self, adapter: Adapter, row_source: RowSource) -> Path:
        """Return the path of a model on some rows; clones are trained on the subset of `to_train_on` in these rows."""
        rows = self.to_train_on
        if rows is None:
            return self._path(adapter, row_source)
        if not isinstance(rows, Rows) or not isinstance(row_source, LocalRows):
            raise ValueError(
                "regrow=True trains clones of the model here, but the rows are elsewhere. Leave regrow out, or pass a "
                "sample of the rows as arrays."
            )
        if row_source.row_index is not None:
            rows = rows.take(row_source.row_index)
        cost = _from_table(self.cost, COSTS, "cost") or self.solver.default_cost()
        if not isinstance(cost, SharedCost):
            raise ValueError(
                "regrow=True trains clones on fewer features, which only a cost of features asks for. Pass "
                "cost=FeatureCost(prices), or leave regrow out."
            )
        price_table = cost.price_table(adapter.forest, row_source)
        prices = np.append(price_table.prices.mean(axis=0), 0.0)[price_table.resources].sum(axis=1)
        return regrow_on(adapter, rows, row_source, self._path, prices)

    def _path(self, adapter: Adapter, row_source: RowSource) -> Path:
        with row_source.persisted() if self.solver.many_passes else nullcontext(row_source) as rows:
            return self._path_of(adapter, rows)

    def _path_of(self, adapter: Adapter, row_source: RowSource) -> Path:
        chosen, forest = self.solver, adapter.forest
        problem = Problem(
            forest,
            row_source,
            _loss_for(self.loss, chosen, adapter),
            _from_table(self.cost, COSTS, "cost") or chosen.default_cost() or NodeCost(),
            self.progress,
        )
        reasons = [chosen.unsupported(problem), *(adapter.why_immutable(what) for what in chosen.changes)]
        if forest.symmetric and not chosen.supports_symmetric:
            reasons.append(
                "all splits of a level ask the same question in these trees, so levels stay or go as a whole. "
                "Use weakest_link, BlockDescent(granularity='layer') or fewer_trees."
            )
        if chosen.needs_rows and problem.why_no_rows:
            reasons.append(f"it looks at rows one by one, and {problem.why_no_rows}")
        for reason in reasons:
            if reason:
                raise ValueError(f"{type(chosen).__name__} cannot prune this: {reason}")
        if chosen.needs_unseen_rows and isinstance(row_source, LocalRows) and adapter.grown_on(row_source.leaves):
            warnings.warn(
                f"{type(chosen).__name__} was given the rows the model was trained on, where it finds next to no "
                "errors and so prunes next to nothing. Pass rows the model has not seen.",
                TrainingRowsWarning,
                stacklevel=2,
            )
        with one_blas_thread:
            return replace(chosen.path(problem), source=adapter)


def _loss_for(choice: Loss | str | None, solver: Solver, adapter: Adapter) -> Loss:
    """Return the given loss, or the default of the solver, of the model's training objective or of the model type."""
    if choice is None:
        choice = solver.default_loss(adapter.forest) or adapter.objective or default_loss(adapter.forest)
    return loss_named(choice) if isinstance(choice, str) else choice


def _from_table(choice: Any, table: dict[str, Any], what: str) -> Any:
    """Return the object registered under a name; anything but a string is returned unchanged."""
    if not isinstance(choice, str):
        return choice
    if choice not in table:
        raise ValueError(f"{what}={choice!r} is unknown; known are {', '.join(table)}. Use one of these.")
    return table[choice]()
