"""Time routing rows to leaves in one thread, against the compiled loops of scikit-learn and LightGBM."""

from statistics import median
from typing import Any

import numpy as np
from lightgbm import LGBMRegressor
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor

from benchmarks.discovery import Table, data_sets, jobs
from benchmarks.load import Data, load
from benchmarks.measure import take_turns
from benchmarks.results import Result, Row, Target
from benchmarks.tasks import RowsTask, count_nodes
from secateur import as_forest

_NOTES = [
    "All in one thread, models read beforehand, rows new to the model. Ratios above 1 mean secateur is faster.",
    "leaves: sklearn_apply is forest.apply(X), validation and thread pool included; sklearn_tree_apply is the bare "
    "Tree.apply on float32 rows; secateur_route is route(forest, X), conversion to float32 included.",
    "sums: sklearn_predict is HistGradientBoosting's predict, lightgbm_predict that of LightGBM's Booster with "
    "raw_score=True; secateur_sums is route and raw_scores.",
    "ratio_x: the time of x divided by the time of secateur in the same rounds. same: whether leaves are equal, or "
    "sums within a relative 1e-9.",
]


def run(quick: bool) -> Result:
    repeats = 1 if quick else 9
    counts = (10,) if quick else (100, 1_000, 10_000, 30_000)
    data = load(data_sets()["fried"])
    train = data.sample(200 if quick else 10_000, seed=0)
    n_trees = 3 if quick else 100
    rows = [
        measure_row(kind, name, model, data.sample(n_rows, seed=1), dtype, repeats)
        for kind, name, model, dtypes in fit_models(train, n_trees)
        for dtype in dtypes
        for n_rows in counts
    ]
    smallest = [min(row[name] for name in row if name.startswith("ratio_")) for row in rows]
    return Result(rows, repeats, _NOTES, [Target("smallest ratio", min(smallest), at_least=1)], medians(rows))


def medians(rows: list[Row]) -> list[Row]:
    """Return the median of each ratio over the rows with as many rows to route."""
    names = dict.fromkeys(name for row in rows for name in row if name.startswith("ratio_"))
    found = []
    for n_rows in dict.fromkeys(row["rows"] for row in rows):
        same = [row for row in rows if row["rows"] == n_rows]
        ratios = {name: median(row[name] for row in same if name in row) for name in names}
        found.append({"rows": n_rows, **{f"median_{name}": ratio for name, ratio in ratios.items()}})
    return found


def fit_models(train: Data, n_trees: int) -> list[tuple[str, str, Any, tuple[str, ...]]]:
    """Return kind of work, name, fitted model, and the types of rows to try."""
    both = ("float32", "float64")
    models: list[tuple[str, str, Any, tuple[str, ...]]] = [
        ("leaves", "forest of depth 6", RandomForestRegressor(n_trees, max_depth=6, random_state=0), both),
        ("leaves", "full-depth forest", RandomForestRegressor(n_trees, random_state=0), both),
        ("sums", "hist boosting, 31 leaves", HistGradientBoostingRegressor(max_iter=n_trees), ("float64",)),
        (
            "sums",
            "hist boosting, 255 leaves",
            HistGradientBoostingRegressor(max_iter=n_trees, max_leaf_nodes=255, min_samples_leaf=5),
            ("float64",),
        ),
        ("sums", "LightGBM, 31 leaves", LGBMRegressor(n_estimators=n_trees, n_jobs=1, verbose=-1), ("float64",)),
    ]
    for _, _, model, _ in models:
        model.fit(train.X, train.y)
    return models


def measure_row(kind: str, name: str, model: Any, data: Data, dtype: str, repeats: int) -> Row:
    """Return the times of every method of a kind on one model and some rows."""
    task = RowsTask(model, np.ascontiguousarray(data.X, dtype))
    ways = jobs(kind, task)
    own = "secateur_route" if kind == "leaves" else "secateur_sums"
    outcomes = {name: job.run() for name, job in ways.items()}  # also the warm-up
    times = take_turns(ways, repeats)
    return {
        "work": kind,
        "model": name,
        "nodes": _nodes(model),
        "dtype": dtype,
        "rows": len(task.X),
        "same": all(np.allclose(outcome, outcomes[own], rtol=1e-9, atol=0) for outcome in outcomes.values()),
        "milliseconds_secateur": 1e3 * times[own],
        **{f"ratio_{name}": times[name] / times[own] for name in times if name != own},
    }


def _nodes(model: Any) -> int:
    if hasattr(model, "_predictors"):
        return sum(len(tree.nodes) for iteration in model._predictors for tree in iteration)
    return count_nodes(model) if hasattr(model, "estimators_") else as_forest(model).n_nodes


TABLE = Table("routing_speed", "Speed of routing rows and summing leaf values in one thread", run)
