"""Compare the CPU time of pruning with that of training the same model, and with training small models instead.

One model can be measured alone: `measure(CASES["LightGBM houses"], seed=0, calls=["max_nodes"])` returns its rows, and
the environment variable BENCHMARK_MODELS limits the table to some models: `BENCHMARK_MODELS="LightGBM houses,CatBoost
spambase" python -m benchmarks prune_against_training --out FOLDER`.
"""

import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from time import process_time
from typing import Any

import numpy as np
from numba.core import event
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

import secateur as sc
from benchmarks.discovery import Table, data_sets
from benchmarks.load import Data, DataNotFoundError, load
from benchmarks.probe_compile import CompileClock
from benchmarks.results import Result, Row, Target

_MAX_NODES = 500
_LONG = 10.0
"""Seconds of a call above which it is not repeated."""
_CLIP = 1e-6


@dataclass(frozen=True)
class Kind:
    """A kind of model: where its classes are, and the names of its parameters.

    Attributes
    ----------
    module : str
    prefix : str
        Name of the class, without Classifier or Regressor.
    trees : str
        The parameter for the number of trees, or of rounds.
    size : str
        The parameter for the size of a tree: the number of leaves, or the depth.
    fixed : dict
        Parameters of all models of this kind.
    boosted : bool
    """

    module: str
    prefix: str
    trees: str
    size: str
    fixed: dict[str, Any]
    boosted: bool = True

    def make(self, task: str, n_trees: int, seed: int, depth: int | None = None, **others: Any) -> Any:
        """Return an unfitted model; `depth` limits a tree to 2^depth leaves."""
        name = f"{self.prefix}{'Classifier' if task == 'classification' else 'Regressor'}"
        if depth is not None:
            others[self.size] = depth if "depth" in self.size else 2**depth
        options = {self.trees: n_trees, **self.fixed, **others, "random_state": seed}
        return getattr(import_module(self.module), name)(**options)


@dataclass(frozen=True)
class Case:
    """A model to be trained and pruned; the rows are drawn from the data set, at most `n_rows`."""

    kind: str
    data: str
    n_trees: int
    n_rows: int = 20_000


@dataclass(frozen=True, eq=False)
class Parts:
    """Training, validation and test rows."""

    train: Data
    validation: Data
    test: Data


KINDS = {
    "LightGBM": Kind("lightgbm", "LGBM", "n_estimators", "num_leaves", {"n_jobs": 1, "verbose": -1}),
    "XGBoost": Kind("xgboost", "XGB", "n_estimators", "max_depth", {"n_jobs": 1}),
    "CatBoost": Kind(
        "catboost",
        "CatBoost",
        "iterations",
        "depth",
        {"thread_count": 1, "verbose": False, "allow_writing_files": False},
    ),
    "GradientBoosting": Kind("sklearn.ensemble", "GradientBoosting", "n_estimators", "max_depth", {}),
    "HistGradientBoosting": Kind(
        "sklearn.ensemble", "HistGradientBoosting", "max_iter", "max_leaf_nodes", {"early_stopping": False}
    ),
    "RandomForest": Kind("sklearn.ensemble", "RandomForest", "n_estimators", "max_leaf_nodes", {"n_jobs": 1}, False),
    "ExtraTrees": Kind("sklearn.ensemble", "ExtraTrees", "n_estimators", "max_leaf_nodes", {"n_jobs": 1}, False),
}
CASES = {
    f"{case.kind} {case.data}": case
    for case in (
        Case("LightGBM", "adult", 500),
        Case("LightGBM", "houses", 500),
        Case("LightGBM", "letter", 60),
        Case("LightGBM", "satimage", 100),
        Case("XGBoost", "houses", 300),
        Case("XGBoost", "spambase", 300),
        Case("GradientBoosting", "cpu_small", 300),
        Case("HistGradientBoosting", "spambase", 300),
        Case("RandomForest", "pendigits", 200),
        Case("RandomForest", "houses", 200),
        Case("RandomForest", "spambase", 300),
        Case("ExtraTrees", "cpu_small", 200),
        Case("CatBoost", "cpu_small", 300),
        Case("CatBoost", "spambase", 300),
    )
}
_QUICK = {
    "GradientBoosting diabetes": Case("GradientBoosting", "diabetes", 5, 200),
    "RandomForest breast_cancer": Case("RandomForest", "breast_cancer", 5, 200),
}
CALLS = ("max_nodes", "loss_limit", "training_rows", "training_rows_free")
_TARGETS = (
    ("max_nodes", "", "median", 0.5),
    ("max_nodes", "", "max", 2.0),
    ("max_nodes", "CatBoost", "max", 2.0),
    ("loss_limit", "", "median", 1.0),
    ("loss_limit", "", "max", 4.0),
    ("training_rows", "", "max", 5.0),
    ("training_rows_free", "", "max", 5.0),
)
"""Call, kind of model, statistic of the ratio and its limit."""
_NOTES = [
    "At most 20000 rows, 60 % for training, 20 % for validation, 20 % for testing. One split per seed. Models have the "
    "default settings of their library, apart from the number of trees (trees; per class for boosters), in one thread.",
    "max_nodes: prune(model, X_train, y_train, validation=(X_val, y_val), max_nodes=500). loss_limit: the same with "
    "max_loss_increase=0.01 instead of max_nodes. training_rows: prune(model, X_train, y_train, max_nodes=500), which "
    "trains clones to select a point. training_rows_free: prune(model, X_train, y_train).",
    "small_model: up to twelve models of the same kind with at most 500 nodes, trained directly and chosen on the "
    "validation rows. Trees of 2 to 64 leaves with two learning rates for boosters (0.1 and 0.3, or 0.3 and 0.8 below "
    "30 rounds); trees of 4 to 128 leaves, at each split the square root of the features or all of them, for forests. "
    "Each has as many trees as the nodes allow.",
    "training: CPU seconds of training the model, the least of three. ratio: CPU seconds of the call divided by "
    "training, median over seeds; ratio_max: the largest. A call is measured three times and the least is used, or "
    "once from 10 seconds on. For small_model: of training and evaluating all of them. Kernels are compiled before; a "
    "call in which one is compiled does not count.",
    "before, after: log loss (probabilities clipped to [1e-6, 1] and normalised) or mean squared error on the test "
    "rows, of the unpruned model and of the result, means over seeds. Unfavourable results are included.",
]


def run(quick: bool) -> Result:
    seeds = range(1 if quick else 3)
    cases = _QUICK if quick else chosen()
    found: list[Row] = []
    skipped = []
    for name, case in cases.items():
        module = KINDS[case.kind].module
        if not find_spec(module):
            skipped.append(f"{name}: {module} is not installed")
            continue
        try:
            outcomes = [row for seed in seeds for row in measure(case, seed, max_nodes=20 if quick else _MAX_NODES)]
        except DataNotFoundError as error:
            skipped.append(f"{name}: {error}")
            continue
        skipped += [f"{name}, {row['call']}: {row['error']}" for row in outcomes if "error" in row]
        found += summarise([row for row in outcomes if "error" not in row])
    return Result(found, len(seeds), _NOTES, list(targets(found)), list(findings(found)), skipped)


def chosen() -> dict[str, Case]:
    """Return the models of the environment variable BENCHMARK_MODELS, or all."""
    names = [name.strip() for name in os.environ.get("BENCHMARK_MODELS", "").split(",") if name.strip()]
    return {name: CASES[name] for name in names or CASES}


def measure(
    case: Case, seed: int, calls: Iterable[str] = (*CALLS, "small_model"), max_nodes: int = _MAX_NODES
) -> list[Row]:
    """Train a model and return one row for each call."""
    data = load(data_sets()[case.data]).sample(case.n_rows, seed)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(_measure(case, split(data, seed), seed, calls, max_nodes))


def _measure(case: Case, parts: Parts, seed: int, calls: Iterable[str], max_nodes: int) -> Iterator[Row]:
    kind, task = KINDS[case.kind], parts.train.task
    training, model = seconds_of(lambda: kind.make(task, case.n_trees, seed).fit(*rows(parts.train)))
    row = {"model": case.kind, "data": case.data, "rows": len(parts.train.y), "trees": case.n_trees}
    before = {"nodes_before": sc.as_forest(model).n_nodes, "before": loss_of(model, parts.test)}
    for name in calls:
        try:
            if name == "small_model":
                seconds, result = seconds_of(partial(best_small, kind, parts, seed, max_nodes))
            else:
                warm_up(name, kind, parts)
                seconds, result = seconds_of(partial(prune, name, model, parts, max_nodes))
        except ValueError as error:
            yield {**row, "call": name, "error": str(error)}
            continue
        after = {"nodes_after": sc.as_forest(result).n_nodes, "after": loss_of(result, parts.test)}
        yield {**row, "call": name, "training": training, "ratio": seconds / training, **before, **after}


def split(data: Data, seed: int) -> Parts:
    """Return a random split into 60, 20 and 20 % of the rows, stratified by class."""
    labels = data.y if data.task == "classification" else np.zeros(len(data.y))
    train, rest = train_test_split(np.arange(len(labels)), test_size=0.4, stratify=labels, random_state=seed)
    validation, test = train_test_split(rest, test_size=0.5, stratify=labels[rest], random_state=seed)
    return Parts(*(Data(data.name, data.task, data.X[p], data.y[p], data.source) for p in (train, validation, test)))


def rows(data: Data) -> tuple[NDArray[np.float64], NDArray[Any]]:
    return data.X, data.y


def prune(call: str, model: Any, parts: Parts, max_nodes: int) -> Any:
    """Return the pruned model of a call."""
    options: dict[str, Any] = {} if call.startswith("training_rows") else {"validation": rows(parts.validation)}
    if call == "loss_limit":
        options["max_loss_increase"] = 0.01
    elif call != "training_rows_free":
        options["max_nodes"] = max_nodes
    return sc.prune(model, *rows(parts.train), **options)


def warm_up(call: str, kind: Kind, parts: Parts) -> None:
    """Compile most kernels of a call on a small model of the same kind."""
    few = Parts(*(part.sample(1_000, seed=0) for part in (parts.train, parts.validation, parts.test)))
    model = kind.make(few.train.task, 3, seed=0, depth=3).fit(*rows(few.train))
    prune(call, model, few, sc.as_forest(model).n_nodes // 2)


def seconds_of(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the least CPU seconds of three calls, or of one if it is long, and the last result."""
    taken: list[float] = []
    while len(taken) < 3 and not (taken and taken[0] > _LONG):
        clock = CompileClock()
        event.register("numba:compile", clock)
        try:
            began = process_time()
            result = work()
            seconds = process_time() - began
        finally:
            event.unregister("numba:compile", clock)
        if not clock.seconds:
            taken.append(seconds)
    return min(taken), result


def best_small(kind: Kind, parts: Parts, seed: int, max_nodes: int) -> Any:
    """Return the best on the validation rows of up to twelve models with at most `max_nodes` nodes."""
    task = parts.train.task
    n_classes = len(np.unique(parts.train.y)) if task == "classification" and kind.boosted else 1
    per_round = n_classes if n_classes > 2 else 1
    models = []
    for depth, first in product(range(1, 7) if kind.boosted else range(2, 8), (True, False)):
        n_trees = max_nodes // (per_round * (2 ** (depth + 1) - 1))
        if n_trees:
            rates = (0.1, 0.3) if n_trees >= 30 else (0.3, 0.8)
            name, values = ("learning_rate", rates) if kind.boosted else ("max_features", ("sqrt", 1.0))
            model = kind.make(task, n_trees, seed, depth, **{name: values[0 if first else 1]})
            models.append(model.fit(*rows(parts.train)))
    if not models:
        raise ValueError(f"No model with {per_round} trees per round has at most {max_nodes} nodes.")
    return min(models, key=lambda model: loss_of(model, parts.validation))


def loss_of(model: Any, data: Data) -> float:
    """Return the log loss of clipped probabilities, or the mean squared error."""
    if data.task == "regression":
        return float(np.mean((np.ravel(model.predict(data.X)) - data.y) ** 2))
    p = np.clip(model.predict_proba(data.X), _CLIP, 1.0)
    return float(-np.log((p / p.sum(axis=1, keepdims=True))[np.arange(len(data.y)), data.y]).mean())


def summarise(outcomes: list[Row]) -> Iterator[Row]:
    """Yield one row per call over seeds."""
    for call in dict.fromkeys(row["call"] for row in outcomes):
        same = [row for row in outcomes if row["call"] == call]
        column = {name: np.array([row[name] for row in same]) for name in same[0] if name not in ("model", "data")}
        yield {
            **{name: same[0][name] for name in ("model", "data", "rows", "trees", "call")},
            "training": float(np.median(column["training"])),
            "ratio": float(np.median(column["ratio"])),
            "ratio_max": float(column["ratio"].max()),
            "nodes_before": round(column["nodes_before"].mean()),
            "nodes_after": round(column["nodes_after"].mean()),
            "before": float(column["before"].mean()),
            "after": float(column["after"].mean()),
        }


def findings(found: list[Row]) -> Iterator[Row]:
    """Yield the ratios over all models by call, and the loss in comparison with the small models."""
    small = {(row["model"], row["data"]): row["after"] for row in found if row["call"] == "small_model"}
    for call in (*CALLS, "small_model"):
        same = [row for row in found if row["call"] == call]
        if same:
            pairs = [(row["after"], small.get((row["model"], row["data"]))) for row in same]
            relative = [after / other for after, other in pairs if other is not None]
            yield {
                "call": call,
                "models": len(same),
                "median_ratio": float(np.median([row["ratio"] for row in same])),
                "max_ratio": max(row["ratio_max"] for row in same),
                "loss_to_unpruned": float(np.exp(np.mean([np.log(row["after"] / row["before"]) for row in same]))),
                "loss_to_small_model": float(np.exp(np.mean(np.log(relative)))) if relative else None,
            }


def targets(found: list[Row]) -> Iterator[Target]:
    """Yield the targets; one is not measured unless its call succeeded for every model."""
    for call, kind, statistic, limit in _TARGETS:
        same = [row for row in found if row["call"] == call and row["model"].startswith(kind)]
        ratios = [row["ratio" if statistic == "median" else "ratio_max"] for row in same]
        whole = len(same) == sum(case.kind.startswith(kind) for case in CASES.values())
        measured = float(np.median(ratios) if statistic == "median" else max(ratios)) if whole else None
        what = f"{call} of {kind}" if kind else call
        yield Target(f"{what}: {statistic} ratio to training", measured, at_most=limit)


TABLE = Table("prune_against_training", "CPU time of pruning as a ratio to training the same model", run)
