"""Test whether the loss limit holds on test rows when pruning sees only the training rows."""

import warnings
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.model_selection import train_test_split

from benchmarks.discovery import Table, data_sets
from benchmarks.load import Data, DataNotFoundError, load
from benchmarks.results import Result, Row, Target
from secateur.api import prune_point
from secateur.data.rows import read_sample
from secateur.libraries import adapt
from secateur.losses import default_loss

_PROMISE = 0.05
_DATA = {
    "breast_cancer": ("gradient", 380),
    "vehicle": ("gradient", 560),
    "mammographic_masses": ("hist", 640),
    "wine_quality": ("gradient", 1_000),
    "parkinsons_updrs_total": ("hist", 1_000),
    "cpu_small": ("hist", 1_000),
    "bank32nh": ("gradient", 1_000),
    "spambase": ("gradient", 1_000),
    "houses": ("hist", 5_000),
    "adult": ("hist", 5_000),
}
"""The booster, and the number of training rows."""
_MODELS: dict[tuple[str, str], Any] = {
    ("forest", "classification"): RandomForestClassifier,
    ("forest", "regression"): RandomForestRegressor,
    ("gradient", "classification"): GradientBoostingClassifier,
    ("gradient", "regression"): GradientBoostingRegressor,
    ("hist", "classification"): HistGradientBoostingClassifier,
    ("hist", "regression"): HistGradientBoostingRegressor,
}
_NOTES = [
    "prune(model, X_train, y_train, max_loss_increase=0.05) without other arguments: the default solver and the "
    "default selection, which uses five clones below 5000 training rows and one clone from there on (clones).",
    "Random splits into training rows, which are also used for pruning (two thirds of small data sets), and test "
    "rows. Models of 100 trees (100 per class for multiclass boosters) with default settings: a random forest (full "
    "depth) and a booster.",
    "loss: the model's default: squared error; Brier score for classification forests, log loss for boosted "
    "classifiers. rise_%: increase of the test loss over that of the unpruned model, mean over splits; ±: its "
    "standard deviation; worst: the largest; below 0 the pruned model is better. estimated_%: the increase measured "
    "by the clones at the selected point. above_10_%: the number of single splits in which the increase was more "
    "than 10 %. warnings: the number of warnings in all splits.",
    "The target is a mean increase of at most 10 %, twice the limit, on 8 of 10 data sets for either kind of model.",
]


def run(quick: bool) -> Result:
    splits = range(1 if quick else 3)
    chosen = {"breast_cancer": ("gradient", 40), "diabetes": ("hist", 40)} if quick else _DATA
    rows, skipped = [], []
    for name, (booster, n_rows) in chosen.items():
        try:
            data = load(data_sets()[name])
        except DataNotFoundError as error:
            skipped.append(str(error))
            continue
        for kind in ("forest", booster):
            outcomes = [measure(data, n_rows, kind, 3 if quick else 100, seed) for seed in splits]
            rows.append({"data": name, "model": type_name(kind, data.task), **summarise(outcomes)})
    kinds = {"random forests": [row for row in rows if row["model"].startswith("RandomForest")]}
    kinds["boosters"] = [row for row in rows if row not in kinds["random forests"]]
    targets = [
        Target(f"data sets of 10 on which the loss of {kind} rises by at most 10 %", kept(same, quick), at_least=8)
        for kind, same in kinds.items()
    ]
    return Result(rows, len(splits), _NOTES, targets, [total(kind, same) for kind, same in kinds.items()], skipped)


def type_name(kind: str, task: str) -> str:
    name: str = _MODELS[kind, task].__name__
    return name


def measure(data: Data, n_rows: int, kind: str, n_trees: int, seed: int) -> Row:
    """Train a model, prune it on its training rows, and evaluate both on test rows."""
    labels = data.y if data.task == "classification" else None
    X, X_test, y, y_test = train_test_split(data.X, data.y, train_size=n_rows, stratify=labels, random_state=seed)
    count = {"max_iter": n_trees} if kind == "hist" else {"n_estimators": n_trees}
    model = _MODELS[kind, data.task](**count, random_state=seed).fit(X, y)
    start = perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pruned = prune_point(model, X, y, max_loss_increase=_PROMISE, random_state=seed)
    seconds = perf_counter() - start
    before, after = (loss_on(some, X_test, y_test) for some in (model, pruned.to_model()))
    return {
        "rows": n_rows,
        "clones": pruned.info.clones,
        "loss": pruned.info.loss,
        "nodes": pruned.source.forest.n_nodes,
        "kept": 100 * pruned.row["n_nodes"] / pruned.source.forest.n_nodes,
        "estimated": 100 * (pruned.row["loss"] / pruned.info.unpruned_loss - 1),
        "before": before,
        "after": after,
        "rise": 100 * (after / before - 1),
        "seconds": seconds,
        "warnings": len(caught),
    }


def loss_on(model: Any, X: NDArray[np.float64], y: NDArray[Any]) -> float:
    """Return the mean of the model's default loss."""
    adapter = adapt(model)
    sample = read_sample(adapter, X, y)
    forest = adapter.forest
    return float(default_loss(forest).rows(forest, sample.scores(forest), sample.y).mean())


def summarise(outcomes: list[Row]) -> Row:
    """Return means and extremes over splits."""
    column = {name: np.array([row[name] for row in outcomes]) for name in outcomes[0] if name != "loss"}
    return {
        **{name: outcomes[0][name] for name in ("rows", "clones", "loss")},
        "nodes": round(column["nodes"].mean()),
        "nodes_kept_%": column["kept"].mean(),
        "unpruned": column["before"].mean(),
        "pruned": column["after"].mean(),
        "estimated_%": column["estimated"].mean(),
        "rise_%": column["rise"].mean(),
        "±": column["rise"].std(ddof=min(len(outcomes) - 1, 1)),
        "worst": column["rise"].max(),
        "above_10_%": int((column["rise"] > 200 * _PROMISE).sum()),
        "warnings": int(column["warnings"].sum()),
        "seconds": float(np.median(column["seconds"])),
    }


def kept(rows: list[Row], quick: bool) -> float | None:
    """Return the number of data sets whose mean rise is at most twice the limit; None unless all were measured."""
    if quick or len(rows) < len(_DATA):
        return None
    return int(np.sum([row["rise_%"] <= 200 * _PROMISE for row in rows]))


def total(kind: str, rows: list[Row]) -> Row:
    """Return the summary over data sets of one kind of model."""
    mean = {name: float(np.mean([row[name] for row in rows])) for name in ("nodes_kept_%", "estimated_%", "rise_%")}
    return {"models": kind, **mean, "above_10_%": sum(row["above_10_%"] for row in rows)}


TABLE = Table("training_rows", "Test loss of prune(max_loss_increase=0.05) with training rows only", run)
