"""Many rows and many nodes, each in a process of its own, with the time and the memory they took; Linux only."""

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
"""Rows of a group of a parquet file."""


def measure(questions: list[list[Any]]) -> list[Row]:
    """Return what each of some calls takes, one after the other; a call is the name of a function and its arguments."""
    known = {"prune_rows": prune_rows, "prune_nodes": prune_nodes}
    return [known[name](*arguments) for name, *arguments in questions]


def prune_rows(solver: str, n_rows: int) -> Row:
    """Return what a path by the rows of a parquet file takes: seconds, and bytes beyond the model's."""
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
    """Return a sentence if a path from a file is not the one of the same rows in memory."""
    same = len(path) == len(other) and np.array_equal(path.table["n_nodes"], other.table["n_nodes"])
    return [] if same else ["another path than by the same rows in memory"]


def write_rows(file: Path, n_rows: int) -> None:
    """Write rows and target, a group at a time, as no more need fit into memory."""
    names = [*(f"x{k}" for k in range(N_FEATURES)), "y"]
    schema = pyarrow.schema([(name, pyarrow.float64()) for name in names])
    with pyarrow.parquet.ParquetWriter(file, schema) as writer:
        for group, first in enumerate(range(0, n_rows, _GROUP)):
            X, y = draw_rows(min(_GROUP, n_rows - first), seed=group)
            writer.write_table(pyarrow.table([*X.T, y], schema=schema))


def draw_rows(n_rows: int, seed: int) -> tuple[Any, Any]:
    """Return rows and numbers to predict."""
    rng = np.random.default_rng(seed + 1)
    X = rng.random((n_rows, N_FEATURES))
    return X, 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 10 * X[:, 2] + rng.normal(size=n_rows)


def prune_nodes(kind: str, n_nodes: int) -> Row:
    """Return what it takes to read a model of about so many nodes, prune it to a tenth, and write it."""
    fit, suffix = MODELS[kind]
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rows to prune by are few for such a model
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
    """Return what the trees ask and answer; what stands at a leaf that was a split is of no matter."""
    split = forest.is_split
    arrays = [forest.tree_start, forest.right, forest.value[~split]]
    arrays += [getattr(forest, name)[split] for name in ("feature", "threshold", "default_left")]
    return [array.tobytes() for array in arrays]


def _sklearn(n_nodes: int) -> Any:
    """Return a forest of full trees: in a bootstrap sample some five of eight rows are there, each a leaf."""
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

    n_leaves = min(n_nodes // TREES // 2, 2000)  # LightGBM looks at all leaves to split the next
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
"""How to train a model of about so many nodes, and the suffix of its file."""


def measured(work: Callable[[], Any]) -> tuple[Row, Any]:
    """Return seconds and bytes at the peak beyond those resident before, and what was made."""
    before = resident()
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    began = time.perf_counter()
    made = work()
    return {"seconds": time.perf_counter() - began, "bytes": status("VmHWM") - before}, made
