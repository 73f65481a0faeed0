"""Prune a Spark pipeline with rows in the cluster: spark-submit examples/spark_submit_prune.py OUT [PARQUET].

Without a Parquet file (columns `features`, vectors or arrays, and `label`), it generates rows.
"""

import argparse
import os
import sys

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # on a cluster: the environment that was shipped with the job

from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.classification import RandomForestClassifier
from pyspark.ml.evaluation import MulticlassClassificationEvaluator
from pyspark.ml.feature import VectorAssembler
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from secateur.spark import evaluate, prune_path


def main() -> None:
    """Train, prune, compare and save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", help="folder for the pruned pipeline")
    parser.add_argument("rows", nargs="?", help="Parquet file with columns features and label")
    parser.add_argument("--rows-made", type=int, default=20_000)
    parser.add_argument("--max-nodes", type=int, default=300)
    options = parser.parse_args()

    spark = SparkSession.builder.appName("prune").config("spark.ui.showConsoleProgress", "false").getOrCreate()
    rows = spark.read.parquet(options.rows) if options.rows else make_rows(spark, options.rows_made)
    training, pruning, choosing, testing = rows.randomSplit([0.4, 0.2, 0.2, 0.2], seed=0)

    stages = [] if options.rows else [VectorAssembler(inputCols=["a", "b", "c", "d"], outputCol="features")]
    forest = RandomForestClassifier(numTrees=20, maxDepth=8, seed=0)
    model = Pipeline(stages=[*stages, forest]).fit(training)

    path = evaluate(prune_path(model, pruning, solver="weakest_link"), choosing)  # one pass over each
    small = path.select(max_nodes=options.max_nodes)
    small.to_model().write().overwrite().save(options.out)

    accuracy = MulticlassClassificationEvaluator(metricName="accuracy")
    print(f"{path}")
    for name, one in (("unpruned", model), ("pruned", PipelineModel.load(options.out))):
        nodes = path.forest.n_nodes if name == "unpruned" else small.forest.n_nodes
        print(f"{name:9} {nodes:6} nodes, accuracy on other rows {accuracy.evaluate(one.transform(testing)):.3f}")


def make_rows(spark: SparkSession, n_rows: int) -> DataFrame:
    """Return rows of four numbers and a noisy label."""
    rows = spark.range(n_rows)
    for seed, name in enumerate("abcd", start=1):  # far from each other: a partition adds its number to the seed
        rows = rows.withColumn(name, F.rand(1000 * seed))
    clear = (F.col("a") + F.col("b") * F.col("c") > 0.8).cast("double")
    return rows.withColumn("label", F.when(F.rand(9000) < 0.15, 1 - clear).otherwise(clear))


if __name__ == "__main__":
    main()
