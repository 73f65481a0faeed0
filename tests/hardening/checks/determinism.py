"""The same model, rows and settings give the same path, bit for bit: in any process, with any number of threads, for
any container of the rows and any batches in which they are read. With the rows in another order, the prunings are the
same.
"""

import json
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from tests.hardening.checks import Figures
from tests.hardening.fingerprints import fingerprints
from tests.hardening.page import ROOT
from tests.hardening.solving import all_solvers, difference, fingerprint, found_path, same_prunings, worse_by
from tests.solvers.by_need import solvers_of_node_sums

import secateur as sc
from secateur.data.row_provider import RowProvider
from secateur.data.rows import in_parts, read_sample

LONG = 5
"""Number of other processes and of row orders."""
N_ROWS = 120
EXACT_SUMS = {"min_cut", *(solver.name for solver in solvers_of_node_sums() if not solver.changes)}
"""Solvers that use only sums over rows; these sums are integers when rows of classes are counted."""
SEVERAL_OPTIMA = {"rule_lasso", "linear_program"}
"""Solvers of problems with several optima, among which the order of rows may decide."""
ROUNDING = 1e-5
"""Largest difference between numbers summed in another order, as a fraction of the largest number."""

Models = dict[str, tuple[Any, Any, Any]]


def run(scale: int) -> Figures:
    """Recompute every path in all these ways and compare; `scale` is the number of other processes and orders."""
    models, figures = _models(scale), Figures([])
    usual = fingerprints(models, all_solvers(scale))
    for name, found in _again(models, scale):
        _add_row(figures, name, usual, found)
    _add_threads(figures, scale)
    _add_row(figures, "a forest trained by 2 and 4 threads instead of 1", *_trained_by_threads())
    _add_row(figures, "prune with the same random_state", *_same_seed(models))
    for solver in all_solvers(scale):
        _add_order(figures, models, solver, scale)
    figures.notes += _NOTES
    return figures


_NOTES = [
    "If rows come in another order, or in parts whose sums are added up, the order of additions changes. Where "
    "classes are counted with equal weights the sums are integers, and the path is the same bit for bit; real numbers "
    "differ in the last digits.",
    "RuleLasso and LinearProgram have several optimal solutions where a node is the sum of its children or errors "
    "tie; the order of rows may select another of them, which is equally good at every penalty.",
    "MaxHeap(subsamples=…) and a random fraction of held-out rows (validation=0.25) draw rows by their position: in "
    "another order of rows they draw other rows.",
    "BLAS, which multiplies matrices, adds in an order that depends on the number of threads. While a path is "
    "computed or evaluated, BLAS uses one thread in the whole process; afterwards its number of threads is restored.",
    "BestSubset stops at its time limit (default ten seconds), so the result of a search that needs longer depends on "
    "the speed of the computer.",
]


def _models(scale: int) -> Models:
    """Return fitted models with new rows; float32 holds all numbers exactly."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2 * N_ROWS, 5)).astype(np.float32).astype(np.float64)
    y = 3 * X[:, 0] + X[:, 1] + rng.normal(size=len(X))
    label = np.digitize(y, [-1.0, 1.0])
    kinds: dict[str, tuple[Any, Any]] = {
        "random forest, classes": (RandomForestClassifier(5, max_depth=4, random_state=0), label),
        "gradient boosting, numbers": (GradientBoostingRegressor(n_estimators=6, random_state=0), y),
    }
    if scale > 1:
        from catboost import CatBoostRegressor
        from lightgbm import LGBMClassifier
        from xgboost import XGBRegressor

        kinds |= {
            "random forest, numbers": (RandomForestRegressor(5, max_depth=4, random_state=0), y),
            "hist boosting, classes": (HistGradientBoostingClassifier(max_iter=4, max_leaf_nodes=6), label),
            "xgboost": (XGBRegressor(n_estimators=5, max_depth=3, n_jobs=1), y),
            "lightgbm": (LGBMClassifier(n_estimators=4, num_leaves=6, n_jobs=1, verbose=-1), label),
            "catboost": (CatBoostRegressor(5, depth=3, silent=True, allow_writing_files=False, thread_count=1), y),
        }
    return {
        name: (model.fit(X[:N_ROWS], target[:N_ROWS]), X[N_ROWS:], target[N_ROWS:])
        for name, (model, target) in kinds.items()
    }


def _add_row(figures: Figures, way: str, expected: dict[str, str], found: dict[str, str]) -> None:
    """Add a row about paths that must be the same bit for bit; errors must be the same, too."""
    other = [name for name in found if found[name] != expected[name]]
    paths = [name for name in found if not found[name].endswith(".")]
    row = {"the same path": way, "tried": len(paths), "bit for bit": len(set(paths) - set(other))}
    figures.rows.append(row)
    figures.bad += [f"{way}: another path for {name}" for name in other]


def _again(models: Models, scale: int) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield ways to compute the same paths, and the fingerprints found."""
    yield "again in the same process", fingerprints(models, all_solvers(scale))
    yield from _other_processes(models, scale)
    side_by_side = [solver for solver in all_solvers(scale) if solver.name in ("primal_dual", "partition_cut")]
    for n in (1, 2, 5):
        cpus = patch("secateur.solvers.feature_cost._decomposition.cpu_count", lambda n=n: n)
        with cpus, patch("secateur.solvers.feature_cost._decomposition._MIN_NEEDS_FOR_THREADS", 0):
            yield f"trees pruned side by side by {n} of our own threads", fingerprints(models, side_by_side)
    some = [solver for solver in all_solvers(1) if scale > 1 or solver.name in _SOME]
    with (
        tempfile.TemporaryDirectory() as folder,
        patch("secateur.data.batches._VALUES_PER_BATCH", 5 * 7),
    ):  # seven rows of a file
        for name, hold in {**_containers(Path(folder)), **_chunks(Path(folder))}.items():
            yield name, fingerprints({kind: (model, hold(X), y) for kind, (model, X, y) in models.items()}, some)


_SOME = {"weakest_link", "block_descent", "cost_descent"}
"""Solvers tried with all containers of rows at scale 1: they use sums at nodes, rows, and prices."""


def _other_processes(models: Models, scale: int) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the fingerprints found in new processes with other hash seeds and numbers of threads."""
    for number in range(scale):
        seed, threads = number + 1, (2, 4, 1)[number % 3]
        found = _in_a_process(models, all_solvers(scale), threads, PYTHONHASHSEED=str(seed))
        yield f"another process, PYTHONHASHSEED={seed}, {threads} threads", found


def _in_a_process(models: Models, solvers: list[Any], threads: int, **variables: str) -> dict[str, str]:
    """Return the fingerprints found in a new process in which all libraries use the given number of threads."""
    names = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "models.pickle"
        file.write_bytes(pickle.dumps((models, solvers)))
        command = [sys.executable, "-W", "ignore", "-m", "tests.hardening.fingerprints", str(file)]
        env = os.environ | dict.fromkeys(names, str(threads)) | variables
        ended = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(ended.stdout)
    return found


def _add_threads(figures: Figures, scale: int) -> None:
    """Add rows about models large enough for BLAS to use several threads."""
    rng = np.random.default_rng(0)
    n_rows, n_trees = (12_000, 50) if scale == 1 else (30_000, 100)
    X = rng.normal(size=(n_rows, 6))
    y = 3 * X[:, 0] + X[:, 1] + rng.normal(size=n_rows)
    forest = RandomForestRegressor(n_trees, max_depth=4, max_samples=500, random_state=0).fit(X[:2000], y[:2000])
    name, solvers = f"{n_trees} trees, {n_rows:,} rows", _BY_MATRICES[: 3 if scale == 1 else None]
    usual = _in_a_process({name: (forest, X, y)}, solvers, 1)
    for threads in (2, 4)[:scale]:
        found = _in_a_process({name: (forest, X, y)}, solvers, threads)
        _add_row(figures, f"{name}, {threads} threads instead of 1", usual, found)


_BY_MATRICES = [
    sc.solvers.WeakestLink(),
    sc.solvers.TreeLasso(penalties=3),
    sc.solvers.BlockDescent(penalties=3),
    sc.solvers.BlockDescent(granularity="layer", values="keep", penalties=3, engine="gram"),
    sc.solvers.FewerTrees(),
]
"""Solvers that sum over rows by matrix products, and one that does so only when its path is evaluated."""


def _trained_by_threads() -> tuple[dict[str, str], dict[str, str]]:
    """Return the predictions of forests trained by one thread, and of those trained by several."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(N_ROWS, 4))
    y = (X[:, 0] + rng.normal(size=N_ROWS) > 0).astype(int)
    predicted = [
        sc.training.BudgetForestClassifier(n_estimators=6, n_jobs=n, random_state=0)
        .fit(X, y)
        .predict_proba(X)
        .tobytes()
        .hex()
        for n in (1, 2, 4)
    ]
    return {str(n): predicted[0] for n in (2, 4)}, {str(n): text for n, text in zip((2, 4), predicted[1:], strict=True)}


def _same_seed(models: Models) -> tuple[dict[str, str], dict[str, str]]:
    """Return the results of calling `prune` twice with the same seed."""

    def pruned() -> dict[str, str]:
        return {
            name: sc.as_forest(sc.prune(model, X, y, random_state=3, max_nodes=20)).value.tobytes().hex()
            for name, (model, X, y) in models.items()
            if name != "catboost"  # symmetric trees rarely have fewer than 20 nodes
        }

    return pruned(), pruned()


def _containers(folder: Path) -> dict[str, Callable[[Any], Any]]:
    """Return containers of the same numbers."""
    import pandas as pd
    import pyarrow as pa

    names = list("abcde")
    ways = {
        "rows as float32": lambda X: X.astype(np.float32),
        "rows in Fortran order": np.asfortranarray,
        "rows not contiguous": lambda X: np.repeat(X, 3, axis=1)[:, ::3],
        "rows as a list of lists": lambda X: X.tolist(),
        "rows as a pandas table": lambda X: pd.DataFrame(X, columns=names),
        "rows as a pandas table of Arrow columns": lambda X: pd.DataFrame(X, columns=names).convert_dtypes(
            dtype_backend="pyarrow"
        ),
        "rows as an Arrow table": lambda X: pa.table(dict(zip(names, X.T, strict=True))),
        "rows as a memory map, read seven at a time": lambda X: _mapped(folder, X),
    }
    if find_spec("polars"):
        import polars as pl

        ways["rows as a polars table"] = lambda X: pl.DataFrame(X, schema=names)
    return ways


def _mapped(folder: Path, X: Any) -> Any:
    np.save(folder / "rows.npy", X)
    return np.load(folder / "rows.npy", mmap_mode="r")


def _chunks(folder: Path) -> dict[str, Callable[[Any], Any]]:
    """Return ways to read the rows in batches."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def batches(size: int) -> Callable[[Any], Any]:
        return lambda X: sc.Batches(X.shape, lambda: (X[first : first + size] for first in range(0, len(X), size)))

    def parquet(X: Any) -> Any:
        pq.write_table(pa.table(dict(zip("abcde", X.T, strict=True))), folder / "rows.parquet", row_group_size=17)
        return sc.read_batches(folder / "rows.parquet", None)[0]

    return {
        **{f"rows in parts of {size}": batches(size) for size in (1, 7, 64, 1000)},
        "rows of a parquet file, in groups of 17": parquet,
    }


class _InParts(RowProvider):
    """Rows in several parts, as a cluster has them: sums over the parts are added up."""

    def __init__(self, X: Any, y: Any, n_parts: int) -> None:
        self.X, self.y, self.n_parts = X, y, n_parts

    def sample(self, adapter: Any) -> Any:
        return in_parts(read_sample(adapter, self.X, self.y), self.n_parts)

    def others(self, given: tuple[Any, ...]) -> "RowProvider":
        return _InParts(*given, self.n_parts)


def _add_order(figures: Figures, models: Models, solver: Any, scale: int) -> None:
    """Add a row about a solver's paths on rows in other orders, and in parts."""
    count = {"bit for bit": 0, "same prunings": 0, "others as good": 0}
    tried, apart, draws = 0, 0.0, getattr(solver, "subsamples", 0) > 0
    for name, (model, X, y) in models.items():
        usual = found_path(solver, model, X, y)
        if isinstance(usual, str):
            continue
        orders = [np.random.default_rng(seed).permutation(len(X)) for seed in range(0 if draws else scale)]
        ways = [(X[order], y[order]) for order in orders] + [(_InParts(X, y, n), None) for n in (2, 5)[:scale]]
        for rows, target in ways:
            path = found_path(solver, model, rows, target)
            if isinstance(path, str):
                continue  # raising needs all rows at once
            level, distance = _compared(usual, path)
            tried, apart = tried + 1, max(apart, distance)
            count[level] = count.get(level, 0) + 1
            exact = solver.name in EXACT_SUMS and "classes" in name
            several = level == "others as good" and solver.name in SEVERAL_OPTIMA
            if (
                distance > ROUNDING
                or level == "other"
                or (exact and level != "bit for bit")
                or (level == "others as good" and not several)
            ):
                figures.bad.append(
                    f"rows in another order or in parts: {level}, apart by {distance:g}, for {name}: {solver!r}"
                )
    row = {"the same path": f"rows in other orders and in parts: {solver!r}", "tried": tried, **count}
    figures.rows.append({**row, "largest difference": apart})


def _compared(usual: sc.Path, path: sc.Path) -> tuple[str, float]:
    """Return how closely two paths agree, and the largest difference of their numbers."""
    if fingerprint(usual) == fingerprint(path):
        return "bit for bit", 0.0
    if same_prunings(usual, path):
        return "same prunings", difference(usual, path)
    return ("others as good", worse_by(usual, path)) if worse_by(usual, path) <= ROUNDING else ("other", np.inf)
