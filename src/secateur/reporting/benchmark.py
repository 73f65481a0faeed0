"""Time the predictions of models side by side: calls with one row, and calls with a batch of rows."""

import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from os import PathLike
from typing import Any

import numpy as np

from secateur.data.batches import parts_of
from secateur.errors import InvalidInputError
from secateur.forest.subforest import Decision
from secateur.libraries import adapt
from secateur.libraries.adapter import Adapter
from secateur.path import PathInfo, Pruned
from secateur.reporting._timing import time_in_turns
from secateur.reporting.latency import Benchmark, ModelLatency, latencies

METHODS = ("predict", "predict_proba", "score_samples")
_SINGLE_ROWS = 100


def benchmark(
    models: Any,
    X: Any,
    *,
    method: str = "predict",
    batch_size: int = 1000,
    seconds: float = 1.0,
    trust: bool = False,
) -> Benchmark:
    """Measure how long models take to predict one row, and a row of a batch.

    The model's own method is called with rows of the type of X, and with as many threads as the model uses. The models
    take turns, so that a change in the other load on the machine affects all of them. Steady load still slows long
    calls more than short ones; `Benchmark.noisy` warns of both.

    Parameters
    ----------
    models : fitted model, Forest, Pruned or model file; or a dict of name: model
        The first model of a dict is the one that the others are compared with.
    X : rows
        As in `prune`. Single rows are taken from the first hundred in turn.
    method : "predict", "predict_proba" or "score_samples"
    batch_size : int
        The number of rows of the batch; all rows if X has fewer.
    seconds : float
        The time spent on each model, half of it on single rows. A call in progress is completed, and every model is
        called at least twice with one row and three times with the batch.
    trust : bool
        As in `as_forest`.

    Returns
    -------
    Benchmark
        Medians and quantiles, their noise, and whether differences exceed it; `summary()` is a dict.

    Raises
    ------
    UnsupportedModelError
        If a model is not supported, or has no such method.
    InvalidInputError
        If X has no rows or does not match a model, or an argument is out of range.

    Notes
    -----
    A `Booster` of XGBoost takes a DMatrix; its time includes making one from the rows. Models of Spark predict data
    frames, so their rows are predicted by secateur.

    Examples
    --------
    >>> import secateur as sc
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(20, random_state=0).fit(X[::2], y[::2])
    >>> small = sc.prune(forest, X[::2], y[::2], validation=(X[1::2], y[1::2]), max_trees=5)
    >>> result = sc.benchmark({"before": forest, "after": small}, X, seconds=0.1)
    >>> [(model.name, model.engine, model.batch.rows) for model in result.models]
    [('before', 'sklearn', 150), ('after', 'sklearn', 150)]
    """
    _check_arguments(method, batch_size, seconds)
    named = dict(models) if isinstance(models, Mapping) else {"model": models}
    if not named:
        raise InvalidInputError("The dict of models is empty. At least one model is needed. Pass {name: model}.")
    batch = _first_rows(X, batch_size)
    singles = [_slice(batch, row, row + 1) for row in range(min(_count(batch), _SINGLE_ROWS))]
    with warnings.catch_warnings():
        # Libraries may warn about the type of the rows at every call.
        warnings.simplefilter("ignore")
        predictors = [_predictor(model, method, batch, trust) for model in named.values()]
        calls, budget = [predict for predict, _ in predictors], seconds * len(named) / 2
        times = [time_in_turns(calls, rows, budget) for rows in (singles, [batch])]
    names, engines = list(named), [engine for _, engine in predictors]
    columns = (latencies(taken, n_rows, names[0]) for taken, n_rows in zip(times, (1, _count(batch)), strict=True))
    return Benchmark(method, tuple(map(ModelLatency, names, engines, *columns)))


def _check_arguments(method: str, batch_size: int, seconds: float) -> None:
    if method not in METHODS:
        raise InvalidInputError(
            f"method={method!r} is unknown. The methods are {', '.join(METHODS)}. Use one of these."
        )
    if batch_size < 1:
        raise InvalidInputError(f"batch_size is {batch_size}, but a batch needs a row. Pass at least 1.")
    if not 0 < seconds < np.inf:
        raise InvalidInputError(f"seconds is {seconds}, but a finite number above 0 is needed. Pass 1.0, for example.")


def _first_rows(X: Any, most: int) -> Any:
    """Return up to `most` rows in memory, in the container type of X, except that sparse matrices become CSR."""
    if isinstance(X, np.memmap):
        X = np.asarray(X[:most])
    part = next(parts_of(X), None)
    if part is None or not _count(part):
        raise InvalidInputError("X has no rows, but predictions of rows are timed. Pass at least one row.")
    return _slice(part.tocsr() if hasattr(part, "tocsr") else part, 0, most)


def _count(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _slice(X: Any, start: int, stop: int) -> Any:
    return X.iloc[start:stop] if hasattr(X, "iloc") else X[start:stop]


def _predictor(model: Any, method: str, batch: Any, trust: bool) -> tuple[Callable[[Any], Any], str]:
    """Return the function to time and the library that predicts, after a call with the batch.

    It is the model's own method. If there is none, or it does not accept the rows, it is that of `Pruned`.
    """
    pruned = model if isinstance(model, Pruned) else _unpruned(_adapter(model, trust))
    source = pruned.source
    source.rows(batch)
    if source.predicts_natively:
        native = source.predictor(pruned.to_model() if pruned is model else source.model, method)
        if native is not None:
            with suppress(TypeError, ValueError, AttributeError):
                native(batch)
                return native, source.library
    own: Callable[[Any], Any] = getattr(pruned, method)
    own(batch)
    return own, "secateur"


def _adapter(model: Any, trust: bool) -> Adapter:
    if isinstance(model, str | PathLike):
        from secateur.files.models import load_model

        model = load_model(model, trust=trust)
    return adapt(model)


def _unpruned(adapter: Adapter) -> Pruned:
    """Return the pruning that keeps all nodes."""
    everything = Decision(np.ones(adapter.forest.n_nodes, bool))
    return Pruned(adapter, everything, 0, {}, "", PathInfo(loss="", cost="", made_on_rows=0))
