"""Compare prunings that keep a model's promises with prunings that do not, and with small models trained directly."""

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import lightgbm
import numpy as np
import xgboost
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor

import secateur as sc
from benchmarks.discovery import Table, data_sets
from benchmarks.load import Data, DataNotFoundError, load
from benchmarks.results import Result, Row, Target
from benchmarks.tables.weakest_link_quality import split
from secateur.losses import Loss, loss_named
from secateur.solvers import BlockDescent, WeakestLink

Floats = NDArray[np.float64]
_BUDGETS = (50, 100, 500, 1000)
_MAX_ROWS = 4_000
_RANGE = ("abalone", "boston", "auto_mpg", "houses", "cpu_small", "stock", "socmob", "wine_quality")
_ORDER = ("abalone", "boston", "houses", "cpu_small", "stock")
_LOSSES = {
    "quantile:0.1": ("abalone", "boston", "houses", "cpu_small", "wine_quality", "stock"),
    "quantile:0.5": ("abalone", "boston", "houses", "cpu_small", "wine_quality", "stock"),
    "quantile:0.9": ("abalone", "boston", "houses", "cpu_small", "wine_quality", "stock"),
    "huber:0.5": ("houses", "abalone"),
    "poisson": ("abalone", "wine_quality"),
    "gamma": ("houses", "boston"),
    "tweedie:1.5": ("abalone", "socmob"),
}
_OPTIONS: dict[str, Any] = {"verbose": -1, "n_jobs": 1}
_NOTES = [
    "Half of the rows train the model and compute the path, a quarter validates, a quarter tests; at most 4000 rows. "
    "One split per seed, means over seeds on the test rows. Losing rows stay in. The validation rows choose among "
    "the points within the nodes; ridges 5, 25, 100 and 400. Targets of losses are divided by their mean.",
    "range: RandomForestRegressor(50) on targets that are not negative. natural: the default, no prediction is below "
    "0. free: values='free', a sum of trees with an intercept. bounded: values='bounded'. small: forests trained "
    "directly. broken_%: test rows with a prediction below 0.",
    "order: models of 100 trees with monotonic constraints on the three features of the largest rank correlation with "
    "the target. separators: the default. free: the same model without the constraints. broken_%: chosen models that "
    "violate a constraint, by the exact check.",
    "loss: LightGBM of 100 trees, trained for its loss. own: the default. squares: the same model pruned as one of "
    "squared error, or for log links weakest_link. small: models trained directly, 2 to 31 leaves, learning rates "
    "0.1 and 0.3. broken_%: distance of the coverage of a quantile from its level, in points.",
    "excess_%: test loss above that of the unpruned model, in % of it. time_ratio: CPU time of a path at one ridge "
    "over the one that breaks the promise (for losses: by squared error on the same trees), the least of three.",
]


@dataclass(frozen=True, eq=False)
class Method:
    """One way to get small models: candidates as (nodes, validation loss, predict, whether the promise is broken)."""

    name: str
    candidates: list[tuple[int, float, Callable[[Any], Floats], bool]]
    seconds: float | None = None


def run(quick: bool) -> Result:
    seeds = range(1 if quick else 2)
    outcomes: list[Row] = []
    skipped = []
    for promise, names in _experiments(quick):
        for name in names:
            try:
                data = load(data_sets()[name])
            except (DataNotFoundError, KeyError) as error:
                skipped.append(f"{name}: {error}")
                continue
            for seed in seeds:
                rows = split(data.sample(200 if quick else _MAX_ROWS, seed), seed)
                outcomes += [{"data": name, **row} for row in measure(promise, *rows, seed, quick)]
    rows = list(summarise(outcomes, ("promise", "data", "method", "nodes")))
    findings = list(summarise(outcomes, ("promise", "method", "nodes")))
    targets = [
        Target("predictions below 0, natural, %", _largest(rows, "range", "natural"), at_most=0.0),
        Target("models that violate a constraint, separators, %", _largest(rows, "order", "separators"), at_most=0.0),
        Target("time of natural over free (median)", _median_ratio(rows, "range", "natural"), at_most=1.4),
        Target("time of separators over free (median)", _median_ratio(rows, "order", "separators"), at_most=1.3),
        Target("time of own losses over squares (median)", _median_ratio(rows, "loss", "own"), at_most=1.3),
    ]
    return Result(rows, len(seeds), _NOTES, targets, findings, sorted(set(skipped)))


def _experiments(quick: bool) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield "range", _RANGE[1:2] if quick else _RANGE
    yield "order", _ORDER[1:2] if quick else _ORDER
    for loss, names in _LOSSES.items():
        yield f"loss {loss}", names[1:2] if quick else names


def measure(promise: str, train: Data, validation: Data, test: Data, seed: int, quick: bool) -> Iterator[Row]:
    """Yield one outcome for every method and budget."""
    n_trees = 5 if quick else 100
    if promise == "range":
        forest = RandomForestRegressor(5 if quick else 50, random_state=seed).fit(train.X, train.y)
        values = {"natural": "refit", "free": "free", "bounded": "bounded"}
        methods = [_path(name, forest, train, validation, values=v) for name, v in values.items()]
        methods.append(_small(_forests(train, seed, quick), validation, loss_named("squared_error")))
        yield from _outcomes(
            "range", forest, methods, test, loss_named("squared_error"), lambda p: 100 * np.mean(p < 0)
        )
    elif promise == "order":
        for model in _constrained(train, n_trees, seed):
            unbound = replace(sc.as_forest(model), monotone=None)
            methods = [
                _path("separators", model, train, validation, signs=sc.as_forest(model).monotone),
                _path("free", unbound, train, validation, signs=sc.as_forest(model).monotone),
            ]
            yield from _outcomes("order", model, methods, test, loss_named("squared_error"), None)
    else:
        yield from _own_loss(promise.removeprefix("loss "), train, validation, test, n_trees, quick)


def _own_loss(text: str, train: Data, validation: Data, test: Data, n_trees: int, quick: bool) -> Iterator[Row]:
    """Yield the outcomes of a model trained for its own loss."""
    loss, level = loss_named(text), float(text.partition(":")[2] or 0)
    unit = float(train.y.mean())
    train, validation, test = (replace(part, y=np.maximum(part.y / unit, 1e-3)) for part in (train, validation, test))
    name = text.partition(":")[0]
    options = {**_OPTIONS, "objective": name}
    options |= {"tweedie_variance_power": level} if name == "tweedie" else {"alpha": level} if level else {}
    model = lightgbm.LGBMRegressor(n_estimators=n_trees, **options).fit(train.X, train.y)
    log_link = name in ("poisson", "gamma", "tweedie")
    as_squares = model if log_link else replace(sc.as_forest(model), objective=None)
    solver = WeakestLink() if log_link else None
    squares = replace(sc.as_forest(model), objective=None, link="identity")
    methods = [
        _path("own", model, train, validation, loss=loss),
        _path("squares", as_squares, train, validation, loss=loss, solver=solver),
        _small(_boosters(train, options, quick), validation, loss),
    ]

    def off(p: Floats) -> float:
        return 100 * abs(float(np.mean(p >= test.y)) - level)

    # A path by squared error on the same trees, with an identity link.
    seconds = _seconds(squares, train, BlockDescent())
    yield from _outcomes(f"loss {text}", model, methods, test, loss, off if name == "quantile" else None, seconds)


def _path(
    name: str,
    model: Any,
    train: Data,
    validation: Data,
    *,
    values: Any = "refit",
    loss: Loss | None = None,
    signs: NDArray[np.int8] | None = None,
    solver: Any = None,
) -> Method:
    """Return the points of a path on the training rows; with `signs`, whether they violate the constraints."""
    several = solver or BlockDescent(values=values, ridge=(5.0, 25.0, 100.0, 400.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = sc.prune_path(model, train.X, train.y, solver=several).evaluate(validation.X, validation.y, loss=loss)
        seconds = _seconds(model, train, solver or BlockDescent(values=values))
    found = []
    for i in range(1, len(path)):
        broken = signs is not None and not sc.check_monotonic(replace(path[i].forest, monotone=signs)).holds
        found.append((int(path.table["n_nodes"][i]), float(path.table["loss"][i]), path[i].predict, broken))
    return Method(name, found, seconds)


def _seconds(model: Any, train: Data, solver: Any) -> float:
    """Return the least CPU time of three paths, after a first that compiles."""
    taken = []
    for _ in range(4):
        began = time.process_time()
        sc.prune_path(model, train.X, train.y, solver=solver)
        taken.append(time.process_time() - began)
    return min(taken[1:])


def _small(models: Iterator[Any], validation: Data, loss: Loss) -> Method:
    """Return models trained directly."""
    found = []
    for model in models:
        found.append(
            (
                sc.as_forest(model).n_nodes,
                mean_loss(loss, model.predict(validation.X), validation.y),
                model.predict,
                False,
            )
        )
    return Method("small", found)


def _forests(train: Data, seed: int, quick: bool) -> Iterator[Any]:
    for n_trees in (1, 2) if quick else (1, 2, 5, 10, 20, 50):
        for n_leaves in (2, 8) if quick else (2, 4, 8, 16, 32, 64, 128, 256, 512):
            if n_trees * (2 * n_leaves - 1) <= 2 * _BUDGETS[-1]:
                yield RandomForestRegressor(n_trees, max_leaf_nodes=n_leaves, random_state=seed).fit(train.X, train.y)


def _boosters(train: Data, options: dict[str, Any], quick: bool) -> Iterator[Any]:
    for n_leaves in (2, 8) if quick else (2, 4, 8, 16, 31):
        for budget in _BUDGETS:
            n_trees = budget // (2 * n_leaves - 1)
            for rate in (0.1, 0.3) if n_trees else ():
                few = {"n_estimators": n_trees, "num_leaves": n_leaves, "learning_rate": rate}
                yield lightgbm.LGBMRegressor(**few, **options).fit(train.X, train.y)


def _constrained(train: Data, n_trees: int, seed: int) -> Iterator[Any]:
    """Yield models with constraints on the three features of the largest rank correlation with the target."""
    ranks = [np.argsort(np.argsort(column)) for column in (*train.X.T, train.y)]
    correlation = np.nan_to_num(np.corrcoef(ranks)[-1, :-1])
    signs = np.zeros(train.X.shape[1], int)
    strongest = np.argsort(-np.abs(correlation))[:3]
    signs[strongest] = np.sign(correlation[strongest]).astype(int)
    yield lightgbm.LGBMRegressor(n_estimators=n_trees, monotone_constraints=signs.tolist(), **_OPTIONS).fit(
        train.X, train.y
    )
    yield xgboost.XGBRegressor(n_estimators=n_trees, monotone_constraints=tuple(signs.tolist()), n_jobs=1).fit(
        train.X, train.y
    )
    yield HistGradientBoostingRegressor(max_iter=n_trees, monotonic_cst=signs).fit(train.X, train.y)
    yield RandomForestRegressor(n_trees // 2, monotonic_cst=signs, random_state=seed).fit(train.X, train.y)


def _outcomes(
    promise: str,
    model: Any,
    methods: list[Method],
    test: Data,
    loss: Loss,
    broken: Callable[[Floats], float] | None,
    seconds: float | None = None,
) -> Iterator[Row]:
    """Yield the test loss of each method's best model within each budget, and whether it breaks the promise."""
    unpruned = model.predict(test.X)
    reference = mean_loss(loss, unpruned, test.y)
    seconds = seconds or {method.name: method.seconds for method in methods}.get("free")
    for budget in _BUDGETS:
        yield {
            "promise": promise,
            "method": "unpruned",
            "nodes": budget,
            "excess_%": 0.0,
            "broken_%": broken(unpruned) if broken else 0.0,
            "time_ratio": np.nan,
        }
    for method in methods:
        for budget in _BUDGETS:
            within = [one for one in method.candidates if one[0] <= budget]
            if within:
                _, _, predict, violates = min(within, key=lambda one: one[1])
                p = predict(test.X)
                yield {
                    "promise": promise,
                    "method": method.name,
                    "nodes": budget,
                    "excess_%": 100 * (mean_loss(loss, p, test.y) / reference - 1),
                    "broken_%": broken(p) if broken else 100.0 * violates,
                    "time_ratio": method.seconds / seconds if method.seconds and seconds else np.nan,
                }


def mean_loss(loss: Loss, prediction: Floats, y: Floats) -> float:
    """Return the mean loss of predictions."""
    if loss.name == "squared_error":
        return float(np.mean((prediction - y) ** 2))
    return float(np.mean(loss.of(np.asarray(prediction, float)[:, None], y[:, None])))  # type: ignore[attr-defined]


def summarise(outcomes: list[Row], by: tuple[str, ...]) -> Iterator[Row]:
    """Yield means over all outcomes that agree in the given columns."""
    for key in dict.fromkeys(tuple(row[name] for name in by) for row in outcomes):
        same = [row for row in outcomes if tuple(row[name] for name in by) == key]
        numbers: dict[str, float | None] = {}
        for name in ("excess_%", "broken_%", "time_ratio"):
            found = [row[name] for row in same if not np.isnan(row[name])]
            numbers[name] = float(np.mean(found)) if found else None
        yield {**dict(zip(by, key, strict=True)), **numbers}


def _largest(rows: list[Row], promise: str, method: str) -> float | None:
    found = [row["broken_%"] for row in rows if (row["promise"], row["method"]) == (promise, method)]
    return max(found, default=None)


def _median_ratio(rows: list[Row], promise: str, method: str) -> float | None:
    found = [row["time_ratio"] for row in rows if (row["promise"].split(" ")[0], row["method"]) == (promise, method)]
    return float(np.median(found)) if found else None


TABLE = Table("promises", "Prunings that keep range, constraints and loss of a model", run)
