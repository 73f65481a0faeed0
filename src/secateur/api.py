"""Provide the main functions: `prune`, `prune_path`, `as_forest` and `check_monotonic`."""

from os import PathLike
from typing import Any, Unpack

import numpy as np

from secateur._util.progress_line import progress_line
from secateur._util.user_functions import check_names, user_function
from secateur.costs import Cost, as_cost
from secateur.data.row_provider import row_provider
from secateur.forest import Forest
from secateur.forest.monotonicity import MonotonicityCheck, check_monotonicity
from secateur.libraries import adapt
from secateur.losses import Loss
from secateur.path import Limits, Path, Progress, Pruned
from secateur.selection.arguments import check_arguments
from secateur.selection.choice import choose_point
from secateur.selection.evaluated_path import evaluated_path, fit
from secateur.selection.fitting import FitSettings, solver_for
from secateur.selection.validation import Validation
from secateur.solvers import Solver


@user_function
def as_forest(model: Any, *, trust: bool = False) -> Forest:
    """Convert a supported model or model file to a Forest; a Forest is returned unchanged.

    Files that can execute code when loaded (.pkl, .joblib) are opened only with `trust=True`.
    """
    return adapt(_opened(model, trust)).forest


def _opened(model: Any, trust: bool = False) -> Any:
    """Return the model, read from its file if it is the name of one."""
    if isinstance(model, str | PathLike):
        from secateur.files.models import load_model

        return load_model(model, trust=trust)
    return model


def check_monotonic(model: Any, *, trust: bool = False) -> MonotonicityCheck:
    """Check exactly whether every tree of a model keeps the monotonic constraints the model was trained with.

    The constraints are those in `as_forest(model).monotone`; docs/libraries.md lists where each library stores them.
    For a model without constraints the check holds, and `features` is empty.

    Parameters
    ----------
    model : fitted model, Forest or model file
    trust : bool
        As in `as_forest`.

    Examples
    --------
    >>> import secateur as sc
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> tree = DecisionTreeRegressor(monotonic_cst=[0, 0, 1] + [0] * 7, random_state=0).fit(X, y)
    >>> check = sc.check_monotonic(tree)
    >>> check.features, check.holds
    ((2,), True)
    """
    return check_monotonicity(as_forest(model, trust=trust))


@user_function
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
    n_jobs: int | None = None,
    progress: Progress | bool | None = None,
    trust: bool = False,
) -> Path:
    """Compute the trade-off between loss and cost of a trained model, as a path of prunings.

    Parameters
    ----------
    model : fitted model, Forest or model file
    X, y : rows and targets on which the risk of the nodes is computed
        X is a dense or sparse matrix, a memory map, a pandas, polars or Arrow table, or `Batches`; equal values give
        the same path. `y` is not needed for unsupervised models (IsolationForest).
    solver : Solver, a name, or "auto"
    cost : Cost, a name or dict, default the number of nodes
        A dict has the prices of the features, as in `FeatureCost`.
    loss : Loss or a name, default the loss of the solver or of the model
    sample_weight : (n_rows,), optional
    regrow : bool
        With a feature cost: also train clones of the model on X with ever fewer features, prune them too, and put all
        prunings on one path. This trains up to ten clones.
    n_jobs : int, optional
        Number of threads for runs that do not depend on each other, such as those of several ridges. As in
        scikit-learn, None is 1 and −1 the number of cores. The result does not depend on it.
    progress : bool or callable, optional
        By default, a line on stderr says after two seconds what is being done and how much time is left, if stderr is a
        terminal or that of a notebook. False shows nothing, True shows the line elsewhere, too. A function is called
        as `progress(done, total, what)` instead.
    trust : bool
        As in `as_forest`.

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
    check_arguments(solver=solver, cost=cost, loss=loss, regrow=regrow, n_jobs=n_jobs, progress=progress)
    adapter, rows = adapt(_opened(model, trust)), row_provider(X, y, sample_weight)
    cost = as_cost(cost)
    chosen = solver_for(solver, adapter, cost)
    with progress_line(progress, "reading rows") as report:
        settings = FitSettings(chosen, cost, loss, report, n_jobs, rows if regrow else None)
        return fit(settings, adapter, rows.sample(adapter))


@user_function
def prune(
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
    progress: Progress | bool | None = None,
    return_pruned: bool = False,
    trust: bool = False,
    **limits: Unpack[Limits],
) -> Any:
    """Prune a trained model and return a smaller copy of the same type; the given model is not modified.

    The logger `secateur.prune` says at INFO what was chosen, and on which rows.

    Parameters
    ----------
    model : fitted model, Forest or model file
    X, y : rows and targets, preferably not those the model was trained on
    solver, cost, loss, sample_weight, regrow
        As in `prune_path`; with `regrow` the result may be a pruned clone of the model, trained on the given rows.
    scoring : str or callable, optional
        Choose by your own metric, of which larger is better: the name of a scorer of scikit-learn, a scorer made by
        `make_scorer`, or a function of (estimator, X, y) that returns a number. Then the highest score takes the place
        of the lowest loss, and the whole path is computed. The path itself still minimises the loss. See
        docs/scoring.md.
    tolerance : float
        For models of numbers: by how much a prediction must differ from the unpruned model's to count as changed.
    confidence : float, optional
        Such as 0.95: return a model that keeps `max_loss_increase`, `max_score_drop` and `max_changed` in truth, with
        this probability over the draw of the validation rows, instead of on the validation rows alone. It needs rows
        that neither the model nor the pruning was fitted on, and computes the whole path. If no pruning can be
        certified, a warning says how many rows would do, and the model is returned unpruned. See docs/confidence.md.
    groups : (n_rows,), optional
        The query, customer or other group of each row. Rows of a group are not independent: they stay together in held-
        out shares, folds and draws of rows, standard errors and `confidence` count groups, and scores of rankings such
        as `scoring="ndcg"` compare the rows of a query. Validation rows then need their own: `validation=(X_val, y_val,
        None, groups_val)`.
    validation : float, (n_rows,) bools, (X, y), (X, y, sample_weight[, groups]), "oob", "refit", "cv", "auto" or None
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
        Limits the result must satisfy; `max_bytes` limits the size of the saved model, a number or a text such as
        "5MB". Among the points within the limits, the one with the lowest loss is selected. If rows are held out, a
        solver with several ridges, such as the default for ensembles, exhausts a budget of nodes or bytes, because the
        optimal size on few rows is often too small for all rows. It averages the ridges, weighted by their held-out
        losses, and uses that mean.
    max_loss_increase : float, optional
        Select the cheapest point whose loss exceeds that of the unpruned model by at most this fraction of it. The best
        of many points was measured better than it is: 0.84 standard errors of the difference (1 if clones are
        evaluated) are added to the measured increase, and with 3 of them the limit may be exceeded by at most a tenth
        of the unpruned loss. If the rows are too few to tell, nothing is pruned, and a warning says how many would do.
        A model that has overfitted may be worse than a
        constant, and the result may then be a constant. Without any limit, the cheapest point within one per cent of
        the *lowest* loss is selected, which is never above that of the unpruned model.
    max_score_drop : float, optional
        With `scoring`: select the cheapest point whose score is at most this much, not a fraction, below that of the
        unpruned model. A multiple of the standard error is added to the measured drop, as for `max_loss_increase`.
    max_changed : float, optional
        Select the cheapest point at which at most this fraction of the validation rows changes its prediction.
    saved_as : str, optional
        Suffix of the files whose size `max_bytes` limits, such as ".onnx"; default a pickle, or the native file format
        of libraries that have one.
    random_state : int or numpy Generator
        Seed of the random split into rows for the path and validation rows.
    n_jobs : int, optional
        Number of threads, as in `prune_path`; clones are trained and pruned side by side, too.
    progress : bool or callable, optional
        As in `prune_path`.

    return_pruned : bool
        Return a `Pruned` instead of the model. It has the same `model`, the `path` it was chosen from, and `summary()`,
        `report(file)` and `plot()`. `path.select` with the same limits returns the same point.
    trust : bool
        As in `as_forest`.

    Returns
    -------
    model, or Pruned

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
    >>> small = sc.prune(tree, X[::2], y[::2], validation=(X[1::2], y[1::2]), max_leaves=3)
    >>> sc.as_forest(tree).n_leaves, sc.as_forest(small).n_leaves
    (7, 3)
    >>> small
    DecisionTreeClassifier(random_state=0)
    >>> rows = {"validation": (X[1::2], y[1::2]), "return_pruned": True}
    >>> pruned = sc.prune(tree, X[::2], y[::2], max_leaves=3, **rows)
    >>> pruned.path.table["n_leaves"].tolist(), pruned.summary()["loss"]["name"]
    ([7, 3, 2, 1], 'brier')
    """
    check_names(limits, prune, Limits.__annotations__)
    pruned = prune_point(
        _opened(model, trust),
        X,
        y,
        solver=solver,
        cost=cost,
        loss=loss,
        scoring=scoring,
        tolerance=tolerance,
        confidence=confidence,
        validation=validation,
        sample_weight=sample_weight,
        groups=groups,
        saved_as=saved_as,
        regrow=regrow,
        random_state=random_state,
        n_jobs=n_jobs,
        progress=progress,
        curve=return_pruned,
        **limits,
    )
    return pruned if return_pruned else pruned.to_model()


def prune_point(model: Any, X: Any, y: Any = None, **options: Any) -> Pruned:
    """Prune like `prune`, but return the selected `Pruned`, whose `summary()` reports sizes and losses."""
    limits = {name: limit for name, limit in options.items() if name in Limits.__annotations__}
    check_arguments(progress=options.get("progress"))
    with progress_line(options.pop("progress", None), "reading rows") as report:
        path = evaluated_path(_opened(model), X, y, search=True, progress=report, **options)
    return choose_point(path, confidence=options.get("confidence"), **limits)
