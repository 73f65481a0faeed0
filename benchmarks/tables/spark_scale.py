"""Measure pruning on Spark rows: rows per second and the driver's memory, from 10⁵ to 10⁷ rows."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.discovery import Table, data_sets
from benchmarks.load import Data, DataNotFoundError, load
from benchmarks.probe_spark import MODELS, measure
from benchmarks.results import Result, Row, Target

_COPIES = {"local[2]": (1, 3, 9, 18), "local-cluster[2,1,1024]": (1, 9)}
_TRAINING, _REPEATS = 30_000, 3
_NOTES = [
    "Spark's RandomForestClassifier, trained on 30 000 rows of covertype, pruned on all 581 012 rows of a Parquet file "
    "and on the union of 3, 9 and 18 copies. local[2] is one Spark process with two Python workers; local-cluster "
    "is a driver and two executors with one core and one gigabyte each. seconds: spark.prune_path with weakest_link "
    "from the file to the path; the median of three runs.",
    "driver_MB: the increase of the peak memory of the driver's Python process over its memory before the first "
    "run. result_MB: the size of the sums that a partition sends; partitions: the number of partitions.",
    "growth: seconds per row / seconds per row of the previous line. The first lines are dominated by the start of "
    "jobs, which does not depend on the number of rows.",
    "evaluate_seconds: evaluation of at most 16 points of the path in one pass over the same rows, where these are "
    "read once.",
]


def run(quick: bool) -> Result:
    try:
        data = load(data_sets()["breast_cancer" if quick else "covertype"])
    except DataNotFoundError as error:
        return Result([], 0, _NOTES, skipped=[str(error)])
    skipped: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        write(data, Path(folder) / "rows")
        write(data.sample(_TRAINING, 0), Path(folder) / "training")
        rows = measure("local[2]", folder, [1, 2], 1, n_trees=3) if quick else in_processes(folder, skipped)
    for before, row in zip([None, *rows], rows, strict=False):
        alike = before is not None and (before["master"], before["model"]) == (row["master"], row["model"])
        row["growth"] = _per_row(row) / _per_row(before) if alike else None
    return Result(rows, 1 if quick else _REPEATS, _NOTES, targets(rows, quick), skipped=skipped)


def in_processes(folder: str, skipped: list[str]) -> list[Row]:
    """Return the rows of every master, each measured in a separate process."""
    rows: list[Row] = []
    for master, copies in _COPIES.items():
        arguments = [master, folder, json.dumps(copies), str(_REPEATS)]
        command = [sys.executable, "-m", "benchmarks.probe_spark", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            skipped.append(f"{master}: {done.stderr.strip().splitlines()[-1]}")
        else:
            rows += json.loads(done.stdout.splitlines()[-1])
    return rows


def targets(rows: list[Row], quick: bool) -> list[Target]:
    """Return the targets: time proportional to rows, and driver memory independent of the number of rows."""
    growths, memory = [], []
    for model in MODELS:
        same = [row for row in rows if (row["master"], row["model"]) == ("local[2]", model)]
        if len(same) == len(_COPIES["local[2]"]):
            growths.append(_per_row(same[-1]) / _per_row(same[1]))
            memory.append(same[-1]["driver_MB"] - same[0]["driver_MB"])
    known = bool(growths) and not quick
    return [
        Target(
            "seconds per row at 10⁷ rows / seconds per row at 1.7 million, largest",
            max(growths) if known else None,
            at_most=1.2,
        ),
        Target(
            "increase of the driver's peak memory from 581 012 to 10⁷ rows, MB, largest",
            max(memory) if known else None,
            at_most=50,
        ),
    ]


def _per_row(row: Row) -> float:
    return float(row["seconds"] / row["rows"])


def write(data: Data, folder: Path) -> None:
    """Write rows as a Parquet file of arrays and labels, in several parts."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir()
    for part, rows in enumerate(np.array_split(np.arange(len(data.y)), 4)):
        flat = pa.array(data.X[rows].ravel())
        lists = pa.FixedSizeListArray.from_arrays(flat, data.X.shape[1]).cast(pa.list_(pa.float64()))
        pq.write_table(pa.table({"features": lists, "label": data.y[rows].astype(float)}), folder / f"{part}.parquet")


TABLE = Table("spark_scale", "Time and memory of pruning on 10⁵ to 10⁷ rows in Spark", run)
