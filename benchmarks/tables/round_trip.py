"""Measure time and memory of reading, pruning and writing a large forest, against loading it."""

import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestRegressor

import secateur
from benchmarks.discovery import Table, data_sets
from benchmarks.load import load
from benchmarks.measure import Job, take_turns
from benchmarks.results import Result, Row, Target
from benchmarks.tasks import count_nodes
from secateur.forest.subforest import Decision, subforest
from secateur.libraries import adapt

_ROOT = Path(__file__).resolve().parents[2]
_NOTES = [
    "A full-depth random forest on fried. load: joblib.load from disk, file in the page cache. read: as_forest. "
    "cut: subforest, the neutral pruned forest. write: the pruned native model, as Pruned.to_model makes it.",
    "Every round loads a new model, so nothing is cached from the previous round.",
    "middle: the middle point of the WeakestLink path. all kept: nothing is pruned, the largest model to write.",
    "time_ratio: (read + cut + write) / load, from the medians. The seconds of prune_path are given for information.",
    "loaded_mb: resident memory after joblib.load minus before. memory_ratio: (peak of read + cut + write, minus "
    "resident memory after load) / loaded memory; all objects are kept: the neutral forest, the neutral pruned "
    "forest, the written model. memory_ratio_model: without the neutral pruned forest, which to_model does not "
    "create. Each is measured in a new process; free memory is returned to the system before each reading, and the "
    "peak is reset after loading.",
]


def run(quick: bool) -> Result:
    repeats = 1 if quick else 7
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.joblib"
        facts, keeps = make_model(file, *((5, 60) if quick else (500, 3_300)))
        rows = [
            {
                "cut": cut,
                **facts,
                "nodes_kept": int(keep.sum()),
                **measure_times(file, keep, repeats),
                **measure_memory(file, keep, min(repeats, 3)),
            }
            for cut, keep in list(keeps.items())[: 1 if quick else None]  # each cut starts several processes
        ]
    time = max(row["time_ratio"] for row in rows)
    memory = max((row["memory_ratio"] for row in rows if "memory_ratio" in row), default=None)
    targets = [
        Target("(read + cut + write) / load, the larger of the two cuts", time, at_most=3),
        Target("extra memory / memory of the loaded model, the larger of the two cuts", memory, at_most=2),
    ]
    return Result(rows, repeats, _NOTES, targets)


def make_model(file: Path, n_trees: int, n_rows: int) -> tuple[Row, dict[str, NDArray[np.bool_]]]:
    """Write a forest to `file`; return facts about it and the keep masks of two prunings."""
    data = load(data_sets()["fried"]).sample(n_rows, seed=0)
    model = RandomForestRegressor(n_trees, n_jobs=-1, random_state=0).fit(data.X, data.y)
    joblib.dump(model, file)
    path = secateur.prune_path(model, data.X, data.y)
    time = take_turns({"path": Job(lambda: secateur.prune_path(model, data.X, data.y))}, repeats=3)["path"]
    facts = {"nodes": count_nodes(model), "file_mb": file.stat().st_size / 1e6, "prune_path_seconds": time}
    return facts, {"middle": path.masks.keep(len(path) // 2), "all kept": path.masks.keep(0)}


def measure_times(file: Path, keep: NDArray[np.bool_], repeats: int) -> Row:
    """Return the median seconds of each step, taken one after the other on a newly loaded model."""
    held: dict[str, Any] = {}
    decision = Decision(keep)
    steps = {
        "load": lambda: held.update(model=joblib.load(file)),
        "read": lambda: (held.update(adapter=adapt(held["model"])), held["adapter"].forest),
        "cut": lambda: held.update(cut=subforest(held["adapter"].forest, decision)),
        "write": lambda: held.update(written=held["adapter"].write(decision)),
    }
    times = take_turns({name: Job(step) for name, step in steps.items()}, repeats)
    ratio = (times["read"] + times["cut"] + times["write"]) / times["load"]
    return {**{f"{name}_seconds": time for name, time in times.items()}, "time_ratio": ratio}


def measure_memory(file: Path, keep: NDArray[np.bool_], repeats: int) -> Row:
    """Return the memory of the loaded model, and the additional memory of pruning as a fraction of it."""
    if sys.platform != "linux":
        return {}
    np.save(file.with_name("keep.npy"), keep)
    loaded, ratio_model = probe("model", file, repeats)
    _, ratio_all = probe("all", file, repeats)
    return {"loaded_mb": loaded / 1e6, "memory_ratio_model": ratio_model, "memory_ratio": ratio_all}


def probe(steps: str, file: Path, repeats: int) -> tuple[float, float]:
    """Return the median memory of the loaded model, and of the extra memory of `steps` as a fraction of it."""
    command = [sys.executable, "-m", "benchmarks.probe", steps, str(file), str(file.with_name("keep.npy"))]
    loads, ratios = [], []
    for _ in range(repeats):
        output = subprocess.run(command, cwd=_ROOT, check=True, capture_output=True, text=True).stdout
        before, after, peak = map(int, output.split())
        loads.append(max(after - before, 1))  # a tiny model may fit into memory that was there already
        ratios.append((peak - after) / loads[-1])
    return median(loads), median(ratios)


TABLE = Table("round_trip", "Time and memory to read, prune and write a forest of two million nodes", run)
