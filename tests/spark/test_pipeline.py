"""Pruning as a stage of Spark ML pipelines: fitted, copied, saved, loaded, cross-validated."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

import secateur as sc
from secateur.errors import TrainingRowsWarning

NAMES = ["a", "b", "c", "d"]


@pytest.fixture(scope="module")
def frame(spark):
    X, y = (rows[::2] for rows in load_iris(return_X_y=True))
    kind = np.where(np.random.default_rng(0).random(len(y)) < 0.1, (y + 1) % 3, y)  # noise, so that pruning helps
    rows = [(*x, ("left", "middle", "right")[label]) for x, label in zip(X.tolist(), kind.tolist(), strict=True)]
    return spark.createDataFrame(rows, [*NAMES, "kind"]).repartition(2).cache()


@pytest.fixture(scope="module")
def stages(spark):
    from pyspark.ml.classification import RandomForestClassifier
    from pyspark.ml.feature import StringIndexer, VectorAssembler

    indexer = StringIndexer(inputCol="kind", outputCol="label")
    assembler = VectorAssembler(inputCols=NAMES, outputCol="features")
    return indexer, assembler, RandomForestClassifier(numTrees=2, maxDepth=3, seed=1)


@pytest.fixture(scope="module")
def prepared(frame, stages):
    """Return rows with the label and the features that the first two stages add."""
    from pyspark.ml import Pipeline

    return Pipeline(stages=stages[:2]).fit(frame).transform(frame).cache()


def predictions(model, frame):
    return [row.probability.toArray().tolist() for row in model.transform(frame).select("probability").collect()]


def n_functions(frame):
    """Return how many functions are called for a row, as Spark has planned it."""
    return frame._jdf.queryExecution().optimizedPlan().toString().count("UDF(")


def test_an_estimator_inside_is_trained_on_some_rows_and_pruned_by_others(frame, stages, prepared, tmp_path):
    from pyspark.ml import Pipeline, PipelineModel

    from secateur.spark import PruneEstimator, PruneModel

    *before, forest = stages
    pipeline = Pipeline(stages=[*before, PruneEstimator(estimator=forest, maxNodes=8, seed=3)])
    fitted = pipeline.fit(frame)
    stage = fitted.stages[-1]
    assert isinstance(stage, PruneModel)
    assert type(stage.model).__name__ == "RandomForestClassificationModel"
    assert stage.summary["after"]["nodes"] == sc.as_forest(stage.model).n_nodes <= 8
    assert stage.summary["rows"]["chosen_on"] == "the validation rows"
    assert stage.summary["rows"]["made_on"] + stage.summary["rows"]["chosen_on_rows"] == frame.count()

    fitted.write().save((tmp_path / "fitted").as_uri())
    again = PipelineModel.load((tmp_path / "fitted").as_uri())
    assert again.stages[-1].summary == stage.summary
    assert again.stages[-1].uid == stage.uid
    expected = predictions(fitted, frame)
    assert predictions(again, frame) == expected

    pipeline.write().save((tmp_path / "pipeline").as_uri())
    loaded = Pipeline.load((tmp_path / "pipeline").as_uri()).getStages()[-1]
    assert loaded.uid == pipeline.getStages()[-1].uid
    assert loaded.getOrDefault("maxNodes") == 8
    assert loaded.getOrDefault("estimator").getNumTrees() == 2
    assert predictions(loaded.fit(prepared), prepared) == expected


def test_the_model_of_the_stage_before_is_pruned(frame, stages):
    from pyspark.ml import Pipeline, PipelineModel

    from secateur.spark import PruneEstimator

    pipeline = Pipeline(stages=[*stages, PruneEstimator(maxNodes=8)])
    with pytest.warns(TrainingRowsWarning, match="estimator"):
        fitted = pipeline.fit(frame)
    unpruned, pruned = fitted.stages[-2:]
    assert sc.as_forest(pruned.model).n_nodes <= 8 < sc.as_forest(unpruned).n_nodes
    prepared = fitted.transform(frame)
    assert prepared.columns.count("prediction") == 1
    plain = pruned.model.transform(PipelineModel(fitted.stages[:-2]).transform(frame))
    assert [row.prediction for row in prepared.collect()] == [row.prediction for row in plain.collect()]
    assert n_functions(prepared) == n_functions(plain)  # the unpruned model is not asked


@pytest.mark.parametrize(
    "kind",
    [
        "DecisionTreeRegressor",
        *[pytest.param(kind, marks=pytest.mark.nightly) for kind in ("RandomForestRegressor", "GBTRegressor")],
        pytest.param("GBTClassifier", marks=pytest.mark.nightly),
    ],
)
def test_every_kind_of_tree_model_is_found_behind_its_predictions(prepared, kind):
    from pyspark.ml import classification, regression

    from secateur.spark.lineage import fitted_before

    estimator = getattr(regression, kind, None) or getattr(classification, kind)
    rows = prepared.filter("label < 2")
    fitted = estimator(maxDepth=2).fit(rows)
    found = fitted_before(fitted.transform(rows))
    assert found.uid == fitted.uid
    assert found.toDebugString == fitted.toDebugString


def test_rows_without_predictions_have_no_model_behind_them(frame):
    from secateur.spark import PruneEstimator

    with pytest.raises(ValueError, match="No tree model"):
        PruneEstimator().fit(frame)


def test_a_copy_has_an_estimator_of_its_own(stages):
    from secateur.spark import PruneEstimator

    stage = PruneEstimator(estimator=stages[-1], maxNodes=8)
    copied = stage.copy({stage.maxNodes: 30, stages[-1].maxDepth: 2})
    assert copied.getOrDefault("maxNodes") == 30
    assert copied.getOrDefault("estimator").getMaxDepth() == 2
    assert stage.getOrDefault("maxNodes") == 8
    assert stages[-1].getMaxDepth() == 3


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::secateur.errors.EverythingPrunedWarning")
def test_cross_validation_chooses_how_much_to_prune(frame, stages):
    from pyspark.ml import Pipeline
    from pyspark.ml.evaluation import MulticlassClassificationEvaluator
    from pyspark.ml.tuning import CrossValidator, ParamGridBuilder

    from secateur.spark import PruneEstimator

    stage = PruneEstimator(estimator=stages[-1].copy({stages[-1].maxDepth: 2}))
    grid = ParamGridBuilder().addGrid(stage.maxNodes, [2, 8]).build()
    search = CrossValidator(
        estimator=Pipeline(stages=[*stages[:2], stage]),
        estimatorParamMaps=grid,
        evaluator=MulticlassClassificationEvaluator(),
        numFolds=2,
        seed=0,
    )
    fitted = search.fit(frame)
    assert fitted.avgMetrics[1] > fitted.avgMetrics[0]  # two nodes are two roots, which know nothing
    assert 2 < fitted.bestModel.stages[-1].summary["after"]["nodes"] <= 8


def test_prices_and_a_budget_prune_by_features(prepared, stages):
    from secateur.spark import PruneEstimator

    stage = PruneEstimator(estimator=stages[-1], prices=[1.0, 1.0, 1.0, 5.0], maxCost=2.5)
    fitted = stage.fit(prepared)
    assert fitted.summary["cost"]["after"] <= 2.5 < fitted.summary["cost"]["before"]
