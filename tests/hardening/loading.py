"""Measure time and memory for many rows and many nodes, each in a separate process; Linux only."""

import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
from benchmarks.probe import resident, status
from sklearn.ensemble import RandomForestRegressor

import secateur as sc
from secateur.files.models import load_model, save_model

Row = dict[str, Any]
TREES, N_FEATURES = 100, 10
_SOLVERS = {"weakest_link": sc.solvers.WeakestLink(), "block_descent": sc.solvers.BlockDescent(penalties=5)}
_GROUP = 100_000
"""Number of rows in a row group of a Parquet file."""


def measure(questions: list[list[Any]]) -> list[Row]:
    """Return the measurements of calls, run in sequence; a call is the name of a function and its arguments."""
    known = {"prune_rows": prune_rows, "prune_nodes": prune_nodes}
    return [known[name](*arguments) for name, *arguments in questions]


def prune_rows(solver: str, n_rows: int) -> Row:
    """Return seconds and bytes (beyond the model's) of a path on the rows of a Parquet file."""
    with tempfile.TemporaryDirectory() as folder:
        many, few = Path(folder) / "many.parquet", Path(folder) / "few.parquet"
        write_rows(many, n_rows)
        write_rows(few, 1000)
        model = RandomForestRegressor(TREES, max_depth=6, random_state=0).fit(*draw_rows(2000, seed=-1))

        def work(file: Path) -> sc.Path:
            X, y = sc.read_batches(file, target="y")
            return sc.prune_path(model, X, y, solver=_SOLVERS[solver])

        work(few)  # compiles
        took, path = measured(lambda: work(many))
        X, y = draw_rows(min(n_rows, _GROUP), seed=0)
        wrong = [] if n_rows > _GROUP else _differences(path, sc.prune_path(model, X, y, solver=_SOLVERS[solver]))
    return {**took, "wrong": wrong}


def _differences(path: sc.Path, other: sc.Path) -> list[str]:
    """Return a message if the path on rows of a file differs from that on the same rows in memory."""
    same = len(path) == len(other) and np.array_equal(path.table["n_nodes"], other.table["n_nodes"])
    return [] if same else ["another path than by the same rows in memory"]


def write_rows(file: Path, n_rows: int) -> None:
    """Write rows and target one row group at a time, to limit memory."""
    names = [*(f"x{k}" for k in range(N_FEATURES)), "y"]
    schema = pyarrow.schema([(name, pyarrow.float64()) for name in names])
    with pyarrow.parquet.ParquetWriter(file, schema) as writer:
        for group, first in enumerate(range(0, n_rows, _GROUP)):
            X, y = draw_rows(min(_GROUP, n_rows - first), seed=group)
            writer.write_table(pyarrow.table([*X.T, y], schema=schema))


def draw_rows(n_rows: int, seed: int) -> tuple[Any, Any]:
    """Return rows and regression targets."""
    rng = np.random.default_rng(seed + 1)
    X = rng.random((n_rows, N_FEATURES))
    return X, 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 10 * X[:, 2] + rng.normal(size=n_rows)


def prune_nodes(kind: str, n_nodes: int) -> Row:
    """Return seconds and bytes to read a model of about `n_nodes` nodes, prune it to a tenth, and write it."""
    fit, suffix = MODELS[kind]
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few rows to prune on for such a model
        files = {name: Path(folder) / f"{name}{suffix}" for name in ("tiny", "large", "small")}
        for name, size in (("tiny", 10_000), ("large", n_nodes)):
            save_model(fit(size), files[name])

        def work(file: Path) -> sc.Pruned:
            path = sc.prune_path(load_model(file), *draw_rows(2000, seed=0), solver="weakest_link")
            small = path.select(max_nodes=path.forest.n_nodes // 10)
            small.save(files["small"], force=True)
            return small

        work(files["tiny"])  # compiles
        took, small = measured(lambda: work(files["large"]))
        read = sc.as_forest(load_model(files["small"]))
    same = _questions(read) == _questions(small.forest)
    wrong = [] if same else ["the pruned model, read again, is another"]
    return {"size": small.original.forest.n_nodes, **took, "wrong": wrong}


def _questions(forest: sc.Forest) -> list[bytes]:
    """Return splits and leaf values; the split fields of leaves are ignored."""
    split = forest.is_split
    arrays = [forest.tree_start, forest.right, forest.value[~split]]
    arrays += [getattr(forest, name)[split] for name in ("feature", "threshold", "default_left")]
    return [array.tobytes() for array in arrays]


def _sklearn(n_nodes: int) -> Any:
    """Return a forest of full trees; a bootstrap sample contains about 63 % of the rows, each in its own leaf."""
    rows = draw_rows(int(n_nodes / TREES / 1.264), seed=1)
    return RandomForestRegressor(TREES, max_features=1, random_state=0, n_jobs=2).fit(*rows)


def _xgboost(n_nodes: int) -> Any:
    import xgboost

    n_leaves = n_nodes // TREES // 2
    shape = {"grow_policy": "lossguide", "max_leaves": n_leaves, "max_depth": 0, "min_child_weight": 0}
    shape |= {"learning_rate": 0.01, "reg_lambda": 0.0, "max_bin": 16}  # few bins train faster
    return xgboost.XGBRegressor(n_estimators=TREES, n_jobs=2, **shape).fit(*draw_rows(2 * n_leaves, seed=1))


def _lightgbm(n_nodes: int) -> Any:
    import lightgbm

    n_leaves = min(n_nodes // TREES // 2, 2000)  # LightGBM scans all leaves for the next split
    shape = {"num_leaves": n_leaves, "min_child_samples": 1, "min_child_weight": 0.0, "learning_rate": 0.01}
    model = lightgbm.LGBMRegressor(n_estimators=n_nodes // 2 // n_leaves, n_jobs=2, verbose=-1, **shape)
    return model.fit(*draw_rows(2 * n_leaves, seed=1))


def _secateur(n_nodes: int) -> sc.Forest:
    return sc.as_forest(_sklearn(n_nodes))


MODELS: dict[str, tuple[Callable[[int], Any], str]] = {
    "scikit-learn .skops": (_sklearn, ".skops"),
    "XGBoost .ubj": (_xgboost, ".ubj"),
    "LightGBM .txt": (_lightgbm, ".txt"),
    ".secateur": (_secateur, ".secateur"),
}
"""How to train a model of about a given number of nodes, and the suffix of its file."""


def measured(work: Callable[[], Any]) -> tuple[Row, Any]:
    """Return seconds, peak bytes beyond those resident before, and the result of a call."""
    before = resident()
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    began = time.perf_counter()
    made = work()
    return {"seconds": time.perf_counter() - began, "bytes": status("VmHWM") - before}, made
