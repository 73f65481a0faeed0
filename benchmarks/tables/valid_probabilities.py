"""Compare pruned classification forests that stay means of valid leaves with free sums and with small forests."""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier

import secateur as sc
from benchmarks.discovery import Table, data_sets
from benchmarks.load import Data, DataNotFoundError, load
from benchmarks.results import Result, Row, Target
from benchmarks.tables.weakest_link_quality import split
from benchmarks.tasks import count_nodes
from secateur.solvers import BlockDescent

_DATA = (
    "breast_cancer",
    "spambase",
    "musk1",
    "mammographic_masses",
    "adult",
    "vehicle",
    "digits",
    "pendigits",
    "letter",
)
_BUDGETS = (50, 100, 500, 1000, 5000)
_METHODS = ("valid", "free", "kept", "small_forest")
_VALUES = {"valid": "refit", "free": "free", "kept": "keep"}
_MAX_ROWS = 4_000
Candidate = tuple[int, float, Any]
"""Number of nodes, validation loss and model."""
_NOTES = [
    "RandomForestClassifier(50). Half of the rows for training, a quarter for validation, a quarter for testing; at "
    "most 4000 rows. One split per seed, means over seeds on the test rows. Unfavourable results are included.",
    "valid: the default, a mean of trees whose leaves are probabilities. free: values='free', a sum of trees with an "
    "intercept. kept: values='keep', a mean of trees with their original leaves. Paths on the training rows, with "
    "ridges 5, 25, 100 and 400; the validation rows choose among the points within the node budget by Brier score. "
    "small_forest: forests of 1 to 50 trees and 2 to 5000 leaves trained directly, chosen in the same way.",
    "excess_%: test Brier score above that of the unpruned forest, in % of it. log_loss: of the same model on the test "
    "rows; free sums are clipped to [1e-15, 1] and normalised for it. invalid_%: test rows with a probability below 0 "
    "or above 1. seconds: CPU time of the path at one ridge (25), as a ratio to free sums in the same run.",
]


def run(quick: bool) -> Result:
    seeds = range(1 if quick else 2)
    names = _DATA[:1] if quick else _DATA
    rows, skipped = [], []
    for name in names:
        try:
            data = load(data_sets()[name])
        except (DataNotFoundError, KeyError) as error:
            skipped.append(f"{name}: {error}")
            continue
        outcomes = [row for seed in seeds for row in measure_seed(data, seed, quick)]
        rows += [{"data": name, "classes": len(np.unique(data.y)), **row} for row in summarise(outcomes)]
    findings = [{"method": method, **overall([row for row in rows if row["method"] == method])} for method in _METHODS]
    few = [row["time_ratio"] for row in rows if row["method"] == "valid" and row["classes"] <= 3]
    many = [row["time_ratio"] for row in rows if row["method"] == "valid" and row["classes"] > 3]
    invalid = [row["invalid_%"] for row in rows if row["method"] == "valid"]
    targets = [
        Target("rows with invalid probabilities, valid, %", max(invalid), at_most=0.0),
        Target("time of valid over free, up to 3 classes (median)", _median(few), at_most=1.4),
        Target("time of valid over free, more classes (median)", _median(many), at_most=2.0),
    ]
    return Result(rows, len(seeds), _NOTES, targets, findings, skipped)


def measure_seed(data: Data, seed: int, quick: bool) -> Iterator[Row]:
    """Yield one outcome for every method and budget."""
    train, validation, test = split(data.sample(200 if quick else _MAX_ROWS, seed), seed)
    forest = RandomForestClassifier(5 if quick else 50, random_state=seed).fit(train.X, train.y)
    unpruned = brier(forest.predict_proba(test.X), test.y)
    seconds = {method: path_seconds(forest, train, values) for method, values in _VALUES.items()}
    for method in _METHODS:
        if method == "small_forest":
            candidates = small_forests(train, validation, seed, quick)
        else:
            candidates = points_of(forest, train, validation, _VALUES[method], quick)
        for budget in _BUDGETS:
            within = [one for one in candidates if one[0] <= budget]
            if within:
                p = min(within, key=lambda one: one[1])[2].predict_proba(test.X)
                yield {
                    "method": method,
                    "nodes": budget,
                    "excess_%": 100 * (brier(p, test.y) / unpruned - 1),
                    "log_loss": log_loss(p, test.y),
                    "invalid_%": 100 * float(((p < 0) | (p > 1)).any(axis=1).mean()),
                    "time_ratio": seconds[method] / seconds["free"] if method in seconds else np.nan,
                }


def points_of(forest: Any, train: Data, validation: Data, values: str, quick: bool) -> list[Candidate]:
    """Return the points of a path on the training rows."""
    ridge = 25.0 if values == "keep" else (5.0, 25.0, 100.0, 400.0)
    solver = BlockDescent(values=values, ridge=ridge, penalties=8 if quick else 50)  # type: ignore[arg-type]
    path = sc.prune_path(forest, train.X, train.y, solver=solver).evaluate(validation.X, validation.y)
    return [(int(path.table["n_nodes"][i]), float(path.table["loss"][i]), path[i]) for i in range(1, len(path))]


def path_seconds(forest: Any, train: Data, values: str) -> float:
    """Return the least CPU time of three paths at one ridge, after a first that compiles."""
    taken = []
    for _ in range(4):
        began = time.process_time()
        sc.prune_path(forest, train.X, train.y, solver=BlockDescent(values=values))  # type: ignore[arg-type]
        taken.append(time.process_time() - began)
    return min(taken[1:])


def small_forests(train: Data, validation: Data, seed: int, quick: bool) -> list[Candidate]:
    """Return forests trained directly."""
    found = []
    for n_trees in (1, 2) if quick else (1, 2, 3, 5, 10, 20, 50):
        for n_leaves in (2, 8) if quick else (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2500):
            if n_trees * (2 * n_leaves - 1) <= 2 * _BUDGETS[-1]:
                model = RandomForestClassifier(n_trees, max_leaf_nodes=n_leaves, random_state=seed)
                p = model.fit(train.X, train.y).predict_proba(validation.X)
                found.append((count_nodes(model), brier(p, validation.y), model))
    return found


def brier(p: NDArray[np.float64], y: NDArray[np.int64]) -> float:
    """Return the Brier score, summed over classes."""
    return float(1 - 2 * p[np.arange(len(y)), y].mean() + (p**2).sum(axis=1).mean())


def log_loss(p: NDArray[np.float64], y: NDArray[np.int64]) -> float:
    """Return the log loss of clipped and normalised probabilities."""
    p = np.clip(p, 1e-15, 1.0)
    return float(-np.log((p / p.sum(axis=1, keepdims=True))[np.arange(len(y)), y]).mean())


def summarise(outcomes: list[Row]) -> Iterator[Row]:
    """Yield means over seeds for every method and budget."""
    for method, nodes in dict.fromkeys((row["method"], row["nodes"]) for row in outcomes):
        same = [row for row in outcomes if (row["method"], row["nodes"]) == (method, nodes)]
        numbers = ("excess_%", "log_loss", "invalid_%", "time_ratio")
        means = {name: float(np.mean([row[name] for row in same])) for name in numbers}
        yield {"method": method, "nodes": nodes, **{name: None if np.isnan(m) else m for name, m in means.items()}}


def overall(rows: list[Row]) -> Row:
    """Return the mean excess over data sets by budget, and the mean log loss."""
    by_budget = {n: [row["excess_%"] for row in rows if row["nodes"] == n] for n in _BUDGETS}
    found: Row = {f"excess_%_{n}": float(np.mean(values)) if values else None for n, values in by_budget.items()}
    at_500 = [row["log_loss"] for row in rows if row["nodes"] == 500]
    return {**found, "log_loss_500": float(np.mean(at_500)) if at_500 else None}


def _median(values: list[float]) -> float | None:
    return float(np.median(values)) if values else None


TABLE = Table("valid_probabilities", "Pruned forests that keep valid probabilities", run)
