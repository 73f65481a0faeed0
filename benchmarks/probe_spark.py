"""Prune on Spark rows in a new process and print time and memory as JSON; Linux only.

`python -m benchmarks.probe_spark MASTER FOLDER COPIES REPEATS`: FOLDER has the Parquet files `rows` and `training`,
COPIES is a list of how often the rows are read.
"""

import json
import sys
from functools import reduce
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.probe import status
from benchmarks.results import Row
from benchmarks.spark_session import session

MODELS = {"20 trees, depth 5": (20, 5), "100 trees, depth 10": (100, 10)}


def measure(master: str, folder: str, copies: list[int], repeats: int, n_trees: int | None = None) -> list[Row]:
    """Return a row for every model and number of rows."""
    from pyspark.ml.classification import RandomForestClassifier
    from pyspark.ml.functions import array_to_vector

    spark = session(master)
    training = spark.read.parquet(f"{folder}/training")
    training = training.withColumn("features", array_to_vector("features")).cache()
    rows = []
    for name, (usual, depth) in MODELS.items():
        forest = RandomForestClassifier(numTrees=n_trees or usual, maxDepth=depth, seed=0).fit(training)
        Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
        before = status("VmRSS")
        for count in copies:
            frame = reduce(lambda one, other: one.union(other), [spark.read.parquet(f"{folder}/rows")] * count)
            rows.append(
                {"master": master, "model": name, **pass_over(forest, frame, repeats, before, evaluated=count == 1)}
            )
    training.unpersist()
    return rows


def pass_over(forest: Any, frame: Any, repeats: int, before: int, *, evaluated: bool) -> Row:
    """Return times and memory of computing a path on a DataFrame, and of evaluating it."""
    from secateur.spark import evaluate, prune_path

    times = []
    for _ in range(repeats):
        start = perf_counter()
        path = prune_path(forest, frame, solver="weakest_link")
        times.append(perf_counter() - start)
    memory = status("VmHWM") - before
    start = perf_counter()
    if evaluated:
        evaluate(path.thin(16), frame)
    evaluate_seconds = perf_counter() - start
    n_rows, seconds = path.info.made_on_rows, float(np.median(times))
    return {
        "rows": n_rows,
        "nodes": path.forest.n_nodes,
        "seconds": seconds,
        "rows_per_second": n_rows / seconds,
        "driver_MB": max(memory, 0) / 2**20,
        "partitions": frame.rdd.getNumPartitions(),
        "result_MB": path.forest.n_nodes * (1 + path.forest.n_outputs) * 8 / 2**20,
        "evaluate_seconds": evaluate_seconds if evaluated else None,
    }


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), int(sys.argv[4]))))
