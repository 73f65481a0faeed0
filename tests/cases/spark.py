"""Saved Spark models of every kind, with the predictions of one Spark session."""

import hashlib
import os
import pickle
import shutil
import sys
import tempfile
from dataclasses import replace
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import pytest
from tests.cases.case import Case
from tests.models.make_spark import answers, data, new_rows

MODELS = Path(__file__).parents[1] / "models"
VERSIONS = ("3.5.8", "4.3.0")
"""The versions of Spark that saved the folders."""


def _newest_readable():
    """Return the newest version whose folders the installed Spark can load: Spark 3 cannot load those of Spark 4."""
    try:
        return VERSIONS[0] if version("pyspark").startswith("3.") else VERSIONS[-1]
    except PackageNotFoundError:
        return VERSIONS[-1]


VERSION = _newest_readable()
TARGETS = {
    "forest_classes": "three",
    "forest_regression": "real",
    "boosted_classes": "two",
    "boosted_regression": "real",
    "tree_classes": "three",
    "tree_regression": "real",
    "pipeline": "three",
}


def last_places(kind, version=VERSION):
    """Return by how many units in the last place predictions may differ: the BLAS of Spark 3 adds in another order."""
    return 2 if kind.startswith("boosted") and version == "3.5.8" else 0


@cache
def session():
    """Return the one small Spark session of a test run; without Spark or Java the test is skipped."""
    pytest.importorskip("pyspark", reason="Spark is not installed: pip install 'secateur[spark]'")
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        pytest.skip("Spark needs Java 17, which is neither on the PATH nor at JAVA_HOME")
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2,4]").appName("secateur")  # a task is tried four times
    for name, setting in {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.driver.memory": "1g",
        "spark.default.parallelism": "1",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "40",  # so that a partition has several batches
        "spark.sql.codegen.wholeStage": "false",  # compiling a plan takes longer than a hundred rows do
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        # Least work for a short life. The default code cache of one compiler fills up, and methods are compiled again.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m",
        "spark.python.daemon.module": "tests.spark_daemon",
        "spark.executorEnv.PYTHONPATH": str(Path(__file__).parents[2]),  # where Python workers find that module
        "spark.python.unix.domain.socket.enabled": "true",  # over TCP, a task waits 0.04 s for an acknowledgement
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": tempfile.gettempdir(),
    }.items():
        builder = builder.config(name, setting)
    started = builder.getOrCreate()
    started.sparkContext.setLogLevel("OFF")
    return started


@cache
def frame(column, shape, content):
    """Return a data frame of feature vectors."""
    from pyspark.ml.linalg import Vectors

    X = np.frombuffer(content).reshape(shape)
    return session().createDataFrame([(Vectors.dense(x),) for x in X.tolist()], [column]).cache()


def live(saved):
    """Return a saved model as Spark loads it."""
    from pyspark.ml import PipelineModel, classification, regression

    session()
    kind = getattr(classification, saved.kind_name, None) or getattr(regression, saved.kind_name)
    with tempfile.TemporaryDirectory() as temporary:
        folder = saved.save(Path(temporary) / "model")
        return (PipelineModel if saved.place else kind).load(folder.as_uri())


def live_predictions(model, X, column="features"):
    """Return the predictions of a live model by the names of the methods of `Pruned`."""
    X = np.ascontiguousarray(X, dtype=np.float64)
    found = answers(model, frame(column, X.shape, X.tobytes()))
    names = {"predict": "prediction", "predict_proba": "probability"}
    return {method: found[name] for method, name in names.items() if name in found}


_loaded, _predicted = {}, {}


def predictions(saved, X):
    """Return the predictions of Spark for a saved model; equal models are loaded once, equal rows predicted once."""
    files = b"".join(name.encode() + content for name, content in sorted(saved.files().items()))
    model = hashlib.sha256(files).digest()
    if model not in _loaded:
        _loaded[model] = live(saved)
    key = model, np.asarray(X).tobytes()
    if key not in _predicted:
        _predicted[key] = live_predictions(_loaded[model], X, "vector" if saved.place else "features")
    return dict(_predicted[key])


def _saved(kind, **params):
    from secateur.libraries.spark import SavedModel

    model = SavedModel.load(MODELS / f"spark-{VERSION}-{kind}")
    model.metadata["paramMap"].update(params)
    X, targets = data()
    X_new = new_rows()
    if kind == "pipeline":  # its first stage refuses unknown categories
        X_new = np.vstack([X, np.hstack([X_new[:, :3], X[: len(X_new), 3:]])])
    y, ulp = targets[TARGETS[kind]], last_places(kind)
    return Case(model, X, y, np.vstack([X, X_new]), predictions=predictions, serialise=_bytes, ulp=ulp)


def _bytes(saved):
    return pickle.dumps((saved.metadata, sorted(saved.files().items())))


def _on_thresholds(recipe):
    """Return a case whose rows hit thresholds exactly."""
    from secateur.libraries import adapt

    case = recipe()
    forest = adapt(case.model).forest
    numeric = np.flatnonzero(forest.is_split & (forest.categories.row == -1))
    X = np.repeat(case.X[:1], len(numeric), axis=0)
    X[np.arange(len(numeric)), forest.feature[numeric]] = forest.threshold[numeric]
    return replace(case, X_new=np.vstack([case.X_new, X]))


RECIPES = {f"spark_{kind}": partial(_saved, kind) for kind in TARGETS}
RECIPES["spark_forest_classes"] = partial(_on_thresholds, RECIPES["spark_forest_classes"])
RECIPES["spark_class_thresholds"] = partial(_saved, "tree_classes", thresholds=[0.7, 0.5, 0.0])
FOR_SOLVERS = ("spark_forest_classes", "spark_boosted_classes")
