"""Measure what the first call on a machine costs: compiling kernels, or loading them from the cache."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import joblib
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

import secateur as sc
from benchmarks.discovery import Table
from benchmarks.results import Result, Row, Target

_ROOT = Path(__file__).resolve().parents[2]
_COMPILE = {"booster": 5.0, "forest": 7.0, "prices": 10.0, "single_tree": 2.0}
"""The most seconds of compiling, by call."""
_LOAD = 1.5
_LONGEST = 20
"""Number of kernels in the findings."""
_NOTES = [
    "prune(model, X, y, validation=(X_val, y_val), ...) in new processes. X and y are the training rows, every second "
    "row of breast_cancer (569 rows, 30 features); the others are the validation rows. booster, forest: max_nodes=100 "
    "for models of 20 trees. prices: the same forest, cost=FeatureCost(prices), max_cost=5, where every feature has "
    "price 1. single_tree: max_nodes=9.",
    "cold: CPU seconds of the call if the cache of kernels (NUMBA_CACHE_DIR) is empty. cached: CPU seconds of the same "
    "call in another new process, with the cache that the first process has filled. warm: the least of three more "
    "calls in that process. compile: cold - warm. load: cached - warm. Medians over repeats, each with a new cache.",
    "Imports are not counted: the modules that a call imports are imported before it, except those of numba and "
    "llvmlite, which are a part of compiling and loading.",
    "kernels: number of compiled kernels. in_kernels: CPU seconds in which numba compiled them. The rest of compile is "
    "the start of numba and writing the cache.",
    "The last table has the kernels that take longest to compile: CPU seconds of all signatures in one process, "
    "without the kernels that they call and that are compiled on the way; median over repeats, and the maximum over "
    "calls. Numba puts the code of a called kernel into its callers, so a large kernel also adds to their seconds. "
    "Names with numba: are numba's own functions for arrays, which are compiled once for each type.",
]


@dataclass(frozen=True, eq=False)
class Call:
    """A call of `prune` on a fitted model; `kind` is a key of the targets."""

    kind: str
    model: Any
    X: Any
    y: Any
    options: dict[str, Any]


def run(quick: bool) -> Result:
    repeats = 1 if quick else 3
    chosen = calls(2 if quick else 20)
    if quick:
        chosen = chosen[-1:]
    rows: list[Row] = []
    kernels: list[Row] = []
    for call in chosen:
        outcomes = [measure(call) for _ in range(repeats)]
        rows.append({"call": call.kind, "model": type(call.model).__name__, **summarise(outcomes)})
        kernels += [{**row, "call": call.kind} for row in medians(outcomes)]
    skipped = [] if find_spec("lightgbm") else ["LGBMClassifier: lightgbm is not installed"]
    return Result(rows, repeats, _NOTES, list(targets(rows)), longest(kernels), skipped)


def calls(n_trees: int) -> list[Call]:
    """Return the calls to be measured, the fastest one last."""
    X, y = load_breast_cancer(return_X_y=True)
    (X, y), others = (X[::2], y[::2]), (X[1::2], y[1::2])
    within = {"validation": others, "max_nodes": 100}
    priced = {"validation": others, "cost": sc.costs.FeatureCost([1.0] * X.shape[1]), "max_cost": 5.0}
    boosters = [HistGradientBoostingClassifier(max_iter=n_trees, random_state=0)]
    if find_spec("lightgbm"):
        from lightgbm import LGBMClassifier

        boosters.append(LGBMClassifier(n_estimators=n_trees, n_jobs=1, verbose=-1))
    forest = RandomForestClassifier(n_trees, random_state=0).fit(X, y)
    tree = DecisionTreeClassifier(random_state=0).fit(X, y)
    return [
        *(Call("booster", booster.fit(X, y), X, y, within) for booster in boosters),
        Call("forest", forest, X, y, within),
        Call("prices", forest, X, y, priced),
        Call("single_tree", tree, X, y, {**within, "max_nodes": 9}),
    ]


def measure(call: Call) -> dict[str, Row]:
    """Return what processes with an empty and with a filled cache report."""
    with tempfile.TemporaryDirectory() as cache:
        # Any process tells which modules the call imports; this one uses the cache of the user.
        modules = probe(call, [], os.environ)["imported"]
        modules = [name for name in modules if name.partition(".")[0] not in ("numba", "llvmlite")]
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        cold = probe(call, modules, environment)
        return {"cold": cold, "cached": probe(call, modules, environment)}


def probe(call: Call, modules: list[str], environment: Any) -> Row:
    """Return what `benchmarks.probe_compile` prints about a call in a new process."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "call.joblib"
        joblib.dump((call.model, call.X, call.y, call.options, modules), file)
        command = [sys.executable, "-m", "benchmarks.probe_compile", str(file)]
        output = subprocess.run(command, cwd=_ROOT, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    found: Row = json.loads(output.stdout.splitlines()[-1])
    return found


def summarise(outcomes: list[dict[str, Row]]) -> Row:
    """Return the columns of a call, medians over repeats."""
    cold = [one["cold"]["first"] for one in outcomes]
    cached = [one["cached"]["first"] for one in outcomes]
    warm = [one["cached"]["later"] for one in outcomes]
    return {
        "cold": median(cold),
        "cached": median(cached),
        "warm": median(warm),
        "compile": median(a - b for a, b in zip(cold, warm, strict=True)),
        "load": median(a - b for a, b in zip(cached, warm, strict=True)),
        "kernels": len(outcomes[0]["cold"]["kernels"]),
        "in_kernels": median(sum(row["seconds"] for row in one["cold"]["kernels"]) for one in outcomes),
    }


def medians(outcomes: list[dict[str, Row]]) -> Iterator[Row]:
    """Yield the kernels that a call compiles, with medians over repeats."""
    for same in zip(*(sorted(one["cold"]["kernels"], key=lambda row: row["kernel"]) for one in outcomes), strict=True):
        yield {**same[0], "seconds": median(row["seconds"] for row in same)}


def longest(kernels: list[Row]) -> list[Row]:
    """Return the kernels that take longest to compile, each in the call where it takes longest."""
    by_name: dict[str, Row] = {}
    for row in sorted(kernels, key=lambda row: row["seconds"]):
        by_name[row["kernel"]] = row
    return sorted(by_name.values(), key=lambda row: -row["seconds"])[:_LONGEST]


def targets(rows: list[Row]) -> Iterator[Target]:
    """Yield the targets: seconds of compiling by call, and of loading."""
    for kind, limit in _COMPILE.items():
        seconds = [row["compile"] for row in rows if row["call"] == kind]
        yield Target(f"CPU seconds of compiling, {kind.replace('_', ' ')}", max(seconds, default=None), at_most=limit)
    whole = {row["call"] for row in rows} == set(_COMPILE)
    loads = max(row["load"] for row in rows) if whole else None
    yield Target("CPU seconds of loading from the cache, maximum over calls", loads, at_most=_LOAD)


TABLE = Table("compile_time", "Seconds of compiling kernels in the first call, and of loading them", run)
