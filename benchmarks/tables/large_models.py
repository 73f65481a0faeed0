"""Prune models of many classes and of millions of nodes: CPU time as a ratio to training, memory, use of the budget.

The environment variable BENCHMARK_MODELS limits the table to some models, separated by semicolons.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from benchmarks.discovery import Table
from benchmarks.probe_large import CASES
from benchmarks.results import Result, Row, Target

_ROOT = Path(__file__).parents[2]
_QUICK = ("forest, 100 classes", "5 million nodes, numbers, nodes")
_NOTES = [
    "Every model is trained and pruned once in a process of its own, in one thread: prune(model, X, y, "
    "validation=(X_val, y_val), limit). The rows are those of make_classification with 30 features, 20 of them "
    "informative, or of make_friedman1 with noise; for two classes, whether the number with more noise is above the "
    "median. Kernels are compiled before. 5000 more rows are validation rows.",
    "training: CPU seconds. ratio: CPU seconds of pruning divided by training. mb: the peak of resident memory during "
    "pruning above that before, which includes the pruned model. bytes_per_node: the same per node of the model.",
]


def run(quick: bool) -> Result:
    found: list[Row] = []
    skipped = []
    for name in _QUICK if quick else chosen():
        module = CASES[name].model.split(":")[0]
        if sys.platform != "linux" or not find_spec(module):
            skipped.append(f"{name}: needs Linux and {module}")
            continue
        command = [sys.executable, "-m", "benchmarks.probe_large", name, *(["quick"] if quick else [])]
        output = subprocess.run(command, cwd=_ROOT, check=True, capture_output=True, text=True).stdout
        limit = " ".join(f"{key}={value}" for key, value in CASES[name].limit.items())
        found.append({"model": name, "limit": limit, **json.loads(output.splitlines()[-1])})
    return Result(found, 1, _NOTES, list(targets(found)), [], skipped)


def chosen() -> list[str]:
    """Return the models of the environment variable BENCHMARK_MODELS, or all."""
    names = [name.strip() for name in os.environ.get("BENCHMARK_MODELS", "").split(";") if name.strip()]
    return names or list(CASES)


def targets(found: list[Row]) -> Iterator[Target]:
    """Yield the targets."""
    by_name = {row["model"]: row for row in found}
    for name, case in CASES.items():
        row = by_name.get(name, {})
        if case.classes == 1_000:
            yield Target(f"{name}: memory in MB", row.get("mb"), at_most=2_000)
        elif case.classes > 2:
            yield Target(f"{name}: ratio to training", row.get("ratio"), at_most=5)
        else:
            yield Target(f"{name}: ratio to training", row.get("ratio"), at_most=1)
            yield Target(f"{name}: bytes per node", row.get("bytes_per_node"), at_most=150)
        if "max_nodes" in case.limit and case.classes == 0:
            used = row["nodes_after"] / case.limit["max_nodes"] if row else None
            yield Target(f"{name}: fraction of the budget used", used, at_least=0.95)


TABLE = Table("large_models", "Models of many classes and of millions of nodes", run)
