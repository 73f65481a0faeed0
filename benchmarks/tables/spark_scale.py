"""Pruning by rows in Spark: rows per second, the driver's memory, and how both change from 10⁵ to 10⁷ rows."""

import tempfile
from functools import reduce
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.discovery import Table, data_sets
from benchmarks.load import Data, DataNotFoundError, load
from benchmarks.probe import status
from benchmarks.results import Result, Row, Target
from benchmarks.spark_session import frame_of, session

_COPIES = (1, 3, 9, 18)
_MODELS = {"20 trees, depth 5": (20, 5), "100 trees, depth 10": (100, 10)}
_TRAINING, _REPEATS = 30_000, 3
_NOTES = [
    "Spark's RandomForestClassifier, trained on 30 000 rows of covertype, pruned by all 581 012 rows, and by them read "
    "3, 9 and 18 times over from a Parquet file: local[2], one process of Spark with two Python workers. seconds: "
    "spark.prune_path with weakest_link from the file to the path; the median of three runs.",
    "driver_MB: by how much the peak of the driver's Python process rose above what it used before. answer_MB: the "
    "sums that a partition sends; partitions: how many do.",
    "growth: seconds per row over those of the line before. The first lines carry the start of jobs, which rows do not "
    "pay for.",
    "evaluate_seconds: at most 64 points of the path judged on the same rows in one pass.",
]


def run(quick: bool) -> Result:
    try:
        data = load(data_sets()["breast_cancer" if quick else "covertype"])
    except DataNotFoundError as error:
        return Result([], 0, _NOTES, skipped=[str(error)])
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(data, Path(folder), quick)
    whole = not quick
    names = list(dict.fromkeys(row["model"] for row in rows))
    growths, memory = [], []
    for name in names:
        same = [row for row in rows if row["model"] == name]
        per_row = [row["seconds"] / row["rows"] for row in same]
        growths.append(per_row[-1] / per_row[1] if len(per_row) > 1 else 1.0)
        memory.append(max(row["driver_MB"] for row in same) - min(row["driver_MB"] for row in same))
    targets = [
        Target("seconds per row at 10⁷ rows over those at 1.7 million", max(growths) if whole else None, at_most=1.2),
        Target("rise of the driver's peak over all numbers of rows, MB", max(memory) if whole else None, at_most=50),
    ]
    return Result(rows, 1 if quick else _REPEATS, _NOTES, targets)


def measure(data: Data, folder: Path, quick: bool) -> list[Row]:
    """Return a row for every model and number of rows."""
    from pyspark.ml.classification import RandomForestClassifier

    file = (folder / "rows").as_uri()
    write(data, file)
    spark = session()
    few = data.sample(_TRAINING, 0)
    training = frame_of(few.X, few.y).cache()
    rows = []
    for name, (n_trees, depth) in _MODELS.items():
        forest = RandomForestClassifier(numTrees=3 if quick else n_trees, maxDepth=depth, seed=0).fit(training)
        for copies in (1, 2) if quick else _COPIES:
            frame = reduce(lambda one, other: one.union(other), [spark.read.parquet(file)] * copies)
            rows.append({"model": name, **pass_over(forest, frame, quick)})
            previous = rows[-2] if len(rows) > 1 and rows[-2]["model"] == name else None
            if previous:
                ratio = (rows[-1]["seconds"] / rows[-1]["rows"]) / (previous["seconds"] / previous["rows"])
                rows[-1]["growth"] = ratio
    training.unpersist()
    return rows


def write(data: Data, file: str) -> None:
    """Write rows as a Parquet file of arrays and labels, in several parts."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = Path(file.removeprefix("file://"))
    folder.mkdir()
    for part, rows in enumerate(np.array_split(np.arange(len(data.y)), 4)):
        flat = pa.array(data.X[rows].ravel())
        lists = pa.FixedSizeListArray.from_arrays(flat, data.X.shape[1]).cast(pa.list_(pa.float64()))
        pq.write_table(pa.table({"features": lists, "label": data.y[rows].astype(float)}), folder / f"{part}.parquet")


def pass_over(forest: Any, frame: Any, quick: bool) -> Row:
    """Return times and memory of a path made by the rows of a DataFrame, and of judging it."""
    from secateur.spark import evaluate, prune_path

    times = []
    for _ in range(1 if quick else _REPEATS):
        Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
        before = status("VmRSS")
        start = perf_counter()
        path = prune_path(forest, frame, solver="weakest_link")
        times.append(perf_counter() - start)
        memory = status("VmHWM") - before
    start = perf_counter()
    evaluate(path.thin(64), frame)
    judged = perf_counter() - start
    n_rows, seconds = path.facts["made_on_rows"], float(np.median(times))
    answer = path.forest.n_nodes * (1 + path.forest.n_outputs) * 8
    return {
        "rows": n_rows,
        "nodes": path.forest.n_nodes,
        "seconds": seconds,
        "rows_per_second": n_rows / seconds,
        "driver_MB": max(memory, 0) / 2**20,
        "partitions": frame.rdd.getNumPartitions(),
        "answer_MB": answer / 2**20,
        "evaluate_seconds": judged,
        "growth": None,
    }


TABLE = Table("spark_scale", "Pruning by rows in Spark: 10⁵ to 10⁷ rows", run)
