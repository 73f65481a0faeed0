"""Train a large model in a new process, prune it, and print what it took as JSON; Linux only.

`python -m benchmarks.probe_large NAME [quick]`: NAME is a key of `CASES`.
"""

import json
import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from sklearn.datasets import make_classification, make_friedman1

import secateur as sc
from benchmarks.probe import resident, status

_N_VALIDATION = 5_000


@dataclass(frozen=True)
class Case:
    """A model to train and a limit for its pruning.

    Attributes
    ----------
    model : str
        Module and class.
    trees : int
        Number of trees, or of rounds.
    rows : int
    limit : dict
        The limit passed to `prune`.
    classes : int
        Number of classes; 0 for numbers, 2 for numbers with noise above their median.
    """

    model: str
    trees: int
    rows: int
    limit: dict[str, int] = field(default_factory=lambda: {"max_nodes": 2_000})
    classes: int = 0


_FOREST_OF_CLASSES, _FOREST = "sklearn.ensemble:RandomForestClassifier", "sklearn.ensemble:RandomForestRegressor"
_BYTES, _NODES = {"max_bytes": 5_000_000}, {"max_nodes": 50_000}
CASES = {
    "forest, 100 classes": Case(_FOREST_OF_CLASSES, 4, 10_000, classes=100),
    "LightGBM, 100 classes": Case("lightgbm:LGBMClassifier", 7, 10_000, classes=100),
    "forest, 1000 classes": Case(_FOREST_OF_CLASSES, 4, 10_000, classes=1_000),
    "5 million nodes, numbers, bytes": Case(_FOREST, 198, 20_000, _BYTES),
    "5 million nodes, numbers, nodes": Case(_FOREST, 198, 20_000, _NODES),
    "5 million nodes, two classes, bytes": Case(_FOREST_OF_CLASSES, 860, 30_000, _BYTES, 2),
    "10 million nodes, numbers, bytes": Case(_FOREST, 396, 20_000, _BYTES),
}


def main(name: str, quick: str = "") -> None:
    """Train, prune and print."""
    warnings.simplefilter("ignore")
    case = CASES[name]
    n_rows = 600 if quick else case.rows
    X, y = rows(case, n_rows + (200 if quick else _N_VALIDATION))
    small = make(case, 3).fit(X[:600], y[:600])
    # Compile the kernels first; they belong to the interpreter.
    few = {"max_nodes": sc.as_forest(small).n_nodes // 2}
    prune(small, X[:600], y[:600], X[:200], y[:200], few)
    model = make(case, 3 if quick else case.trees)
    training = seconds(lambda: model.fit(X[:n_rows], y[:n_rows]))
    n_nodes, before = sc.as_forest(model).n_nodes, resident()
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    found: list[Any] = []
    pruning = seconds(lambda: found.append(prune(model, X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:], case.limit)))
    peak = status("VmHWM") - before
    after = {"nodes_after": sc.as_forest(found[0]).n_nodes, "mb": peak / 1e6, "bytes_per_node": peak / n_nodes}
    print(json.dumps({"training": training, "ratio": pruning / training, "nodes_before": n_nodes, **after}))


def rows(case: Case, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return synthetic rows."""
    if case.classes > 2:
        n_classes = min(case.classes, n_rows // 10)
        return make_classification(
            n_rows, 30, n_informative=20, n_classes=n_classes, n_clusters_per_class=1, random_state=0
        )
    X, y = make_friedman1(n_rows, noise=1.0, random_state=0)
    if case.classes:
        y = (y + np.random.default_rng(0).normal(0.0, 2.0, n_rows) > np.median(y)).astype(int)
    return X, y


def make(case: Case, n_trees: int) -> Any:
    """Return an unfitted model in one thread."""
    module, name = case.model.split(":")
    silent = {"verbose": -1} if module == "lightgbm" else {}
    return getattr(import_module(module), name)(n_estimators=n_trees, n_jobs=1, random_state=0, **silent)


def prune(model: Any, X: Any, y: Any, X_val: Any, y_val: Any, limit: dict[str, int]) -> Any:
    """Return the pruned model."""
    return sc.prune(model, X, y, validation=(X_val, y_val), **limit)


def seconds(work: Callable[[], object]) -> float:
    """Return the CPU seconds of a call."""
    began = process_time()
    work()
    return process_time() - began


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main(*sys.argv[1:])
