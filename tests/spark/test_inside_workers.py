"""Pruning inside Spark's Python workers gives what it gives here."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

import secateur as sc

pytest.importorskip("pyspark", reason="Spark is not installed: pip install 'secateur[spark]'")


def test_a_model_pruned_in_every_task_is_the_one_pruned_here(spark):
    """As for one model for each group of rows: forked workers prune at the same time, each its own."""
    X, y = load_iris(return_X_y=True)
    models = [RandomForestClassifier(8, random_state=seed).fit(X[::2], y[::2]) for seed in range(4)]

    def prune(frames):
        import pandas as pd

        for frame in frames:
            pruned = [sc.prune(models[seed], X[1::2], y[1::2], max_nodes=60) for seed in frame["seed"]]
            probabilities = [model.predict_proba(X).tobytes() for model in pruned]
            yield pd.DataFrame({"seed": frame["seed"], "probabilities": probabilities})

    frame = spark.createDataFrame([(seed,) for seed in range(4)], "seed int").repartition(4)
    rows = frame.mapInPandas(prune, "seed int, probabilities binary").collect()
    found = {row["seed"]: row["probabilities"] for row in rows}
    assert sorted(found) == [0, 1, 2, 3]
    for seed, model in enumerate(models):
        here = sc.prune(model, X[1::2], y[1::2], max_nodes=60).predict_proba(X)
        np.testing.assert_array_equal(np.frombuffer(found[seed]).reshape(here.shape), here)
