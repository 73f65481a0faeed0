"""Time the whole path of MinCut against linear programs (IP3), and measure its growth."""

import json
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

import secateur as sc
from benchmarks.discovery import Table, data_sets
from benchmarks.load import DataNotFoundError, load
from benchmarks.measure import growth
from benchmarks.results import Result, Row, Target
from secateur.solvers import MinCut, Solver
from secateur.solvers.feature_cost.linear_program import LinearProgram

_ROOT = Path(__file__).resolve().parents[2]
_AGAINST = [("breast_cancer", 10), ("breast_cancer", 20), ("breast_cancer", 40), ("vehicle", 20), (1_000, 20)]
"""Data sets, or numbers of generated rows, and numbers of trees."""
_SCALE = (1_250, 5_000, 20_000)
_PENALTIES = 20
_NOTES = [
    "Random forests with default settings, every feature at price 1. edges: the number of distinct features on the "
    "path of each row in each tree, summed over rows and trees. Data 'made' are rows of make_classification: for "
    "the linear programs with 20 features, 8 of them informative; for the large forests with 50, 15 of them "
    "informative. The trees are fully grown on the rows that are used for pruning.",
    "seconds: MinCut().path(problem), every optimal pruning, after routing. seconds_lp: the path of "
    f"LinearProgram(penalties=...), (IP3) solved by the simplex method of HiGHS, for {_PENALTIES} penalties, each "
    "started from the previous basis; after routing, and including the construction of the program. The penalties lie "
    "between those of neighbouring points of MinCut's path, evenly spread over its points. ratio: seconds_lp / "
    "seconds. Both alternate in a separate process, runs of less than half a second are repeated five times per turn, "
    "and medians are reported; the large forests are measured once.",
    "difference: the largest difference between the objective values of both, over all of these penalties.",
    "mb, mb_lp: the peak memory beyond interpreter, model and rows, with compiled kernels; it includes the neutral "
    "forest, the leaves of the rows and the path. bytes_per_edge: peak memory / edges; in small problems it is "
    "dominated by constant terms.",
]


def run(quick: bool) -> Result:
    repeats = 1 if quick else 3
    against: list[tuple[Any, int]] = [("breast_cancer", 2)] if quick else _AGAINST
    skipped = [] if find_spec("highspy") else ["linear programs: highspy is not installed"]
    rows: list[Row] = []
    for name, n_trees in against:
        try:
            X, y = find_rows(name, quick)
        except DataNotFoundError as error:
            skipped.append(str(error))
            continue
        rows.append({"data": name if isinstance(name, str) else "made", **compare(X, y, n_trees, repeats)})
    scale = [
        {"data": "made", **measure_scale(n_rows, 2 if quick else 100)} for n_rows in ((80, 160) if quick else _SCALE)
    ]
    exponent = growth([row["edges"] for row in scale], [row["seconds"] for row in scale])
    notes = [*_NOTES, f"growth: seconds = c · edges^{exponent:.2f} over the {len(scale)} large forests."]
    return Result(rows + scale, repeats, notes, targets(rows, scale, quick), skipped=skipped)


def find_rows(name: str | int, quick: bool) -> tuple[Any, Any]:
    """Return the rows of a data set, or the given number of generated rows."""
    if isinstance(name, int):
        return make_classification(name, 20, n_informative=8, random_state=0)
    data = load(data_sets()[name])
    data = data.sample(100, seed=0) if quick else data
    return data.X, data.y


def compare(X: Any, y: Any, n_trees: int, repeats: int) -> Row:
    """Return time, memory and objectives of both solvers on one forest."""
    model = RandomForestClassifier(n_trees, random_state=0, n_jobs=-1).fit(X, y)
    solvers: list[Solver] = [MinCut()]
    if find_spec("highspy"):
        penalties = sc.prune_path(model, X, y, solver=MinCut()).table["penalty"]
        solvers.append(LinearProgram(penalties=between(penalties)))
    found = probe(model, X, y, solvers, repeats)
    cut, *others = found["solvers"]
    row = {**facts(model, X, found["edges"]), **sizes(cut, found["edges"])}
    for program in others:
        of_program = sizes(program, found["edges"])
        row |= {f"{name}_lp": of_program[name] for name in ("seconds", "mb", "bytes_per_edge")}
        row |= {"ratio": program["seconds"] / cut["seconds"], "difference": difference(cut, program)}
    return row


def between(penalties: Any) -> tuple[float, ...]:
    """Return penalties between neighbours, evenly spread over their indices."""
    known = np.unique(penalties[penalties > 0])
    middle = (known[:-1] + known[1:]) / 2
    some = np.unique(np.linspace(0, len(middle) - 1, _PENALTIES).round().astype(np.intp))
    return tuple(middle[some].tolist())


def difference(cut: Row, program: Row) -> float:
    """Return the largest difference between the objectives at the penalties of the linear programs."""
    risk, cost = np.array(cut["risk"]), np.array(cut["cost"])
    points = list(zip(program["penalty"], program["risk"], program["cost"], strict=True))[1:]  # the first is unpruned
    return max(abs(own_risk + one * own_cost - float((risk + one * cost).min())) for one, own_risk, own_cost in points)


def measure_scale(n_rows: int, n_trees: int) -> Row:
    """Return time and memory of the path of MinCut on many rows."""
    X, y = make_classification(n_rows, 50, n_informative=15, random_state=0)
    model = RandomForestClassifier(n_trees, random_state=0, n_jobs=-1).fit(X, y)
    found = probe(model, X, y, [MinCut()], repeats=1)
    return {**facts(model, X, found["edges"]), **sizes(found["solvers"][0], found["edges"])}


def facts(model: Any, X: Any, edges: int) -> Row:
    nodes = sum(tree.tree_.node_count for tree in model.estimators_)
    return {"rows": len(X), "features": X.shape[1], "trees": len(model.estimators_), "nodes": nodes, "edges": edges}


def sizes(found: Row, edges: int) -> Row:
    """Return the columns of the table for a path."""
    known = found["bytes"] is not None
    return {
        "points": len(found["penalty"]),
        "seconds_routing": found["seconds_routing"],
        "seconds": found["seconds"],
        "mb": found["bytes"] / 1e6 if known else None,
        "bytes_per_edge": found["bytes"] / edges if known else None,
    }


def probe(model: Any, X: Any, y: Any, solvers: list[Solver], repeats: int) -> Row:
    """Return time and memory of solvers in a separate process; HiGHS conflicts with libraries of other tables."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.joblib"
        joblib.dump((model, X, y, solvers, repeats), file)
        command = [sys.executable, "-m", "benchmarks.probe_feature_cost", str(file)]
        output = subprocess.run(command, cwd=_ROOT, check=True, capture_output=True, text=True).stdout
    found: Row = json.loads(output)
    return found


def targets(rows: list[Row], scale: list[Row], quick: bool) -> list[Target]:
    """Return the targets: against linear programs, and at the largest size."""
    ratios = [row["ratio"] for row in rows if "ratio" in row]
    whole = not quick and len(ratios) == len(_AGAINST)
    last = {} if quick else scale[-1]
    gigabytes = last["mb"] / 1e3 if last.get("mb") is not None else None
    size = f"{_SCALE[-1]} rows and 100 trees"
    return [
        Target(f"smallest ratio to {_PENALTIES} linear programs", min(ratios) if whole else None, at_least=300),
        Target(f"seconds of the whole path, {size}", last.get("seconds"), at_most=120),
        Target(f"bytes per edge, {size}", last.get("bytes_per_edge"), at_most=60),
        Target(f"peak memory in GB, {size}", gigabytes, at_most=2),
    ]


TABLE = Table("feature_cost_speed", "Time and memory of MinCut: against linear programs, and for large forests", run)
