"""Start the local Spark session of the benchmarks."""

import os
import sys
import tempfile
from typing import Any

import numpy as np
from numpy.typing import NDArray


def session(master: str = "local[2]") -> Any:
    """Return a local session; an existing one is reused unchanged."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName("secateur benchmarks")
    for name, setting in {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "4g",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": tempfile.gettempdir(),
        "spark.log.level": "ERROR",
    }.items():
        builder = builder.config(name, setting)
    return builder.getOrCreate()


def frame_of(X: NDArray[np.float64], y: NDArray[Any], partitions: int = 2) -> Any:
    """Return rows as a DataFrame with the columns Spark ML expects: vectors `features` and numbers `label`."""
    from pyspark.ml.linalg import Vectors

    rows = [(Vectors.dense(x), float(label)) for x, label in zip(X.tolist(), y.tolist(), strict=True)]
    return session().createDataFrame(rows, ["features", "label"]).repartition(partitions)
