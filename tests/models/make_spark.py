"""Write small saved Spark models and what Spark says of some rows: `python tests/models/make_spark.py`.

Run it with each version of pyspark to be covered; the folders are named by the version.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
N_ROWS = 150


def data() -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return rows, of which the last two columns are categories, and a target for each kind of model."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 5)).round(3)
    X[:, 3], X[:, 4] = rng.integers(0, 5, N_ROWS), rng.integers(0, 3, N_ROWS)
    two = (X[:, 0] + X[:, 3] % 2 + rng.normal(size=N_ROWS) > 0.5).astype(float)
    three = two + (X[:, 1] > 0.3)
    real = 2 * X[:, 0] + X[:, 3] % 3 + X[:, 4] % 2 + rng.normal(size=N_ROWS)
    return X, {"two": two, "three": three, "real": real, "weight": rng.random(N_ROWS) + 0.5}


def new_rows() -> np.ndarray:
    """Return rows with missing and infinite values, and with numbers that are no category."""
    X = data()[0][:60].copy()
    rng = np.random.default_rng(1)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[0, :3], X[1, :3] = np.inf, -np.inf
    X[2:10, 3] = [7, -1, 2.5, 1e10, -0.0, -0.5, np.inf, 0.999]
    X[10:16, 4] = [3, -2, 1.5, -1e300, -0.0, 0.5]
    return X


def estimators() -> dict[str, Any]:
    """Return an estimator of every kind."""
    from pyspark.ml import classification as c
    from pyspark.ml import regression as r

    forest = {"numTrees": 6, "maxDepth": 4, "seed": 1}
    boosted = {"maxIter": 6, "maxDepth": 3, "seed": 1}
    return {
        "forest_classes": c.RandomForestClassifier(labelCol="three", weightCol="weight", impurity="entropy", **forest),
        "forest_regression": r.RandomForestRegressor(labelCol="real", **forest),
        "boosted_classes": c.GBTClassifier(labelCol="two", **boosted),
        "boosted_regression": r.GBTRegressor(labelCol="real", lossType="absolute", **boosted),
        "tree_classes": c.DecisionTreeClassifier(labelCol="three", maxDepth=4, minInstancesPerNode=3),
        "tree_regression": r.DecisionTreeRegressor(labelCol="real", maxDepth=4),
    }


def answers(model: Any, frame: Any) -> dict[str, Any]:
    """Return Spark's answers by column."""
    table = model.transform(frame)
    columns = [name for name in ("rawPrediction", "probability", "prediction") if name in table.columns]
    rows = table.select(*columns).collect()
    return {
        name: np.array([row[name] if name == "prediction" else row[name].toArray() for row in rows]) for name in columns
    }


def save(model: Any, name: str) -> None:
    """Save a model without checksums and marks."""
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    model.write().save(folder.as_uri())
    for path in [path for path in folder.rglob("*") if path.name[0] in "._"]:
        path.unlink()


def main() -> None:
    """Fit, save and ask all models."""
    import pyspark
    from pyspark.ml import Pipeline
    from pyspark.ml.feature import VectorIndexer
    from pyspark.ml.linalg import Vectors
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    X, targets = data()
    rows = [(Vectors.dense(x), *map(float, y)) for x, *y in zip(X.tolist(), *targets.values(), strict=True)]
    frame = session.createDataFrame(rows, ["vector", *targets])
    indexer = VectorIndexer(inputCol="vector", outputCol="features", maxCategories=6).fit(frame)
    new = session.createDataFrame([(Vectors.dense(x),) for x in new_rows().tolist()], ["features"])
    expected = {}
    for kind, estimator in estimators().items():
        model = estimator.fit(indexer.transform(frame))
        save(model, f"spark-{pyspark.__version__}-{kind}")
        expected[kind] = {name: values.tolist() for name, values in answers(model, new).items()}
    pipeline = Pipeline(stages=[indexer, estimators()["forest_classes"]]).fit(frame)
    save(pipeline, f"spark-{pyspark.__version__}-pipeline")
    found = {"rows": [[repr(x) for x in row] for row in new_rows().tolist()], "answers": expected}
    (HERE / f"spark-{pyspark.__version__}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
