"""prune and prune_path by rows in Spark: the path is that of the same rows in memory, and Spark loads the result."""

from functools import cache, reduce

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from tests.cases.spark import MODELS, VERSION, live
from tests.models.make_spark import data
from tests.solvers.by_need import solvers_of_node_sums

import secateur as sc
from secateur.costs import FeatureCost
from secateur.libraries import adapt
from secateur.libraries.spark import SavedModel
from secateur.solvers import BlockDescent, CostDescent, MaxHeap, MinCut, PartitionCut, WeakestLink

NIGHTLY = pytest.mark.nightly
PARTITIONS = {
    "uneven": (0.02, 0.0, 0.98),
    "one": (1.0,),
    "two": (0.5, 0.5),
    "seven": (1 / 7,) * 7,
}
partitions = pytest.mark.parametrize("how", ["uneven", *[pytest.param(how, marks=NIGHTLY) for how in PARTITIONS][1:]])
SUMS = solvers_of_node_sums(MaxHeap(penalties=5))


@cache
def saved(kind):
    return adapt(SavedModel.load(MODELS / f"spark-{VERSION}-{kind}"))


def frame_of(spark, X, y, shares=(0.5, 0.5)):
    """Return plain columns in partitions that have these shares of the rows."""
    ends = np.round(np.cumsum(shares) * len(y)).astype(int)
    order = np.random.default_rng(0).permutation(len(y))
    names = [f"x{k}" for k in range(X.shape[1])]
    schema = ", ".join(f"{name} double" for name in [*names, "label"])
    parts = [
        spark.createDataFrame([(*X[i].tolist(), float(y[i])) for i in rows], schema).coalesce(1)
        for rows in np.split(order, ends[:-1])
    ]
    return reduce(lambda one, other: one.union(other), parts), names


@pytest.fixture(scope="module")
def flowers():
    X, y = load_iris(return_X_y=True)
    return X, np.where(np.random.default_rng(1).random(len(y)) < 0.2, (y + 1) % 3, y)


@pytest.fixture(scope="module")
def classifier(flowers):
    X, y = flowers
    return RandomForestClassifier(4, max_depth=4, random_state=0).fit(X[::3], y[::3])


def assert_same_path(found, expected, rtol):
    assert found.solver == expected.solver
    assert len(found) == len(expected)
    for point in range(len(expected)):
        np.testing.assert_array_equal(found.masks.keep(point), expected.masks.keep(point))
    for name, column in expected.table.items():
        np.testing.assert_allclose(found.table[name], column, rtol=rtol, atol=1e-10, err_msg=name)
    for one, other in zip(found.values or [], expected.values or [], strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=1e-9)


@partitions
def test_solvers_that_need_sums_find_the_path_of_the_rows_in_memory_in_one_pass(
    spark, classifier, flowers, how, monkeypatch
):
    from secateur.spark import cluster_rows as cluster
    from secateur.spark import evaluate, prune_path

    passes = []
    add_up = cluster.added_up
    monkeypatch.setattr(cluster, "added_up", lambda frame: passes.append(1) or add_up(frame))
    frame, names = frame_of(spark, *flowers, PARTITIONS[how])
    for solver in SUMS:
        passes.clear()
        found = prune_path(classifier, frame.cache(), features=names, solver=solver)
        assert len(passes) == 1, solver
        assert_same_path(found, sc.prune_path(classifier, *flowers, solver=solver), rtol=1e-6)
        assert type(found.select(max_leaves=40).to_model()) is RandomForestClassifier
    evaluate(found, frame, features=names)
    assert len(passes) == 2
    frame.unpersist()


@partitions
def test_feature_cost_exactly_and_in_partitions(spark, classifier, flowers, how):
    from secateur.spark import prune_path

    frame, names = frame_of(spark, *flowers, PARTITIONS[how])
    cost = FeatureCost([1.0, 2.0, 3.0, 4.0])
    exact = sc.prune_path(classifier, *flowers, solver=MinCut(), cost=cost)
    assert_same_path(prune_path(classifier, frame, features=names, solver=MinCut(), cost=cost), exact, rtol=1e-12)

    middle = float(np.median(exact.table["penalty"]))
    solver = PartitionCut((2 * middle, middle) if how == "two" else (middle,))  # a job for every pass
    found = prune_path(classifier, frame, features=names, solver=solver, cost=cost, driver_bytes=0)
    penalty, bound, objective, gap = (found.table[name][1:] for name in ("penalty", "bound", "objective", "gap"))
    best = (exact.table["risk"] + penalty[:, None] * exact.table["cost"]).min(axis=1)
    assert (bound <= best + 1e-12).all()
    assert (objective >= best - 1e-12).all()
    assert (gap <= 0.005 * objective + 1e-12).all()


@partitions
def test_layers_are_pruned_by_sums_as_by_the_rows_in_memory(spark, how, monkeypatch):
    from secateur.spark import cluster_rows as cluster
    from secateur.spark import prune_path

    X, y = load_diabetes(return_X_y=True)
    model = RandomForestRegressor(4, max_depth=4, random_state=0).fit(X[::3], y[::3])
    frame, names = frame_of(spark, X, y, PARTITIONS[how])
    solver = BlockDescent(granularity="layer", values="keep", penalties=6)
    monkeypatch.setattr(cluster.ClusterSample, "collect", None)
    found = prune_path(model, frame, features=names, solver=solver)
    assert_same_path(found, sc.prune_path(model, X, y, solver=solver), rtol=1e-6)


def test_layers_of_log_odds_are_pruned_by_the_rows_on_the_driver(spark, flowers):
    from secateur.spark import prune_path

    X, y = flowers
    model = GradientBoostingClassifier(n_estimators=3, max_depth=2, random_state=0).fit(X[::3], y[::3] == 1)
    frame, names = frame_of(spark, X, y == 1)
    solver = BlockDescent(penalties=(0.02, 0.005), granularity="layer", values="keep")
    found = prune_path(model, frame, features=names, solver=solver)
    assert_same_path(found, sc.prune_path(model, X, y == 1, solver=solver), rtol=1e-6)


def test_other_solvers_get_the_leaves_of_the_rows_or_of_a_share_that_fits(spark, classifier, flowers, caplog):
    from secateur.spark import prune_path

    frame, names = frame_of(spark, *flowers)
    options = {"features": names, "solver": CostDescent(penalties=(0.05, 0.02)), "cost": "features"}
    found = prune_path(classifier, frame, **options)
    assert found.info.made_on_rows == len(flowers[1])
    assert found.info.sampled_from is None
    with caplog.at_level("INFO", "secateur"):
        found = prune_path(classifier, frame, **options, driver_bytes=3000)
    assert 20 < found.info.made_on_rows < len(flowers[1]) == found.info.sampled_from
    assert found[0].summary()["rows"]["sampled_from"] == len(flowers[1])
    assert "drawn by their contents" in caplog.text
    with pytest.raises(ValueError, match="driver_bytes"):
        prune_path(classifier, frame, **options, driver_bytes=10)


@pytest.mark.parametrize(
    ("driver_bytes", "numbers"), [(2**30, (1, 4)), *(pytest.param(n, (1, 4, 16), marks=NIGHTLY) for n in (2**30, 8000))]
)
def test_another_number_of_partitions_gives_the_same_model(spark, classifier, flowers, driver_bytes, numbers):
    from secateur.spark import prune_point

    chosen = []
    frame, names = frame_of(spark, *flowers)
    for n_partitions in numbers:
        rows = frame.repartition(n_partitions, *names[: n_partitions % 3])
        options = {"features": names, "driver_bytes": driver_bytes, "random_state": 3}
        chosen.append(prune_point(classifier, rows, max_nodes=40, **options))
    assert chosen[0].info.made_on_rows == (len(flowers[1]) if driver_bytes == 2**30 else chosen[1].info.made_on_rows)
    for other in chosen[1:]:
        for name in ("right", "feature", "threshold", "value", "base"):
            assert np.array_equal(getattr(chosen[0].forest, name), getattr(other.forest, name)), name


@pytest.mark.parametrize("validation", [0.25, *[pytest.param(how, marks=NIGHTLY) for how in ("frame", None)]])
def test_prune_gives_a_model_of_the_same_type(spark, classifier, flowers, validation):
    from secateur.spark import prune_point

    frame, names = frame_of(spark, *flowers)
    other = frame if validation == "frame" else validation
    for limit in (2**30, 3000):  # all leaf ids on the driver, and a share of them
        chosen = prune_point(
            classifier, frame, features=names, validation=other, max_leaves=20, driver_bytes=limit, random_state=2
        )
        assert chosen.row["n_leaves"] <= 20
        assert type(chosen.to_model()) is RandomForestClassifier
        rows = chosen.summary()["rows"]
        assert rows["chosen_on"].startswith(
            {0.25: "a random 25 %", "frame": "the validation", None: "the rows"}[validation]
        )
        if validation == 0.25:
            assert rows["chosen_on_rows"] < 0.5 * len(flowers[1])


def test_a_pruned_spark_model_is_judged_in_the_cluster_as_in_memory(spark):
    from secateur.spark import evaluate, prune_path

    X, targets = data()
    adapter = saved("forest_classes")
    frame = labelled(spark, X, targets["three"], targets["weight"])
    path = prune_path(live(adapter.saved), frame, label="label", weight="weight")
    judged = evaluate(path, frame, label="label", weight="weight")
    here = path.evaluate(X, targets["three"], sample_weight=targets["weight"])
    for name in ("loss", "loss_se", "changed", "increase_se"):
        np.testing.assert_allclose(judged.table[name], here.table[name], rtol=1e-8, atol=1e-10)


def labelled(spark, X, y, weight=None):
    """Return vectors, labels and weights."""
    from pyspark.ml.linalg import Vectors

    weight = np.ones(len(y)) if weight is None else weight
    rows = [(Vectors.dense(x), float(label), float(w)) for x, label, w in zip(X.tolist(), y, weight, strict=True)]
    return spark.createDataFrame(rows, ["features", "label", "weight"]).repartition(3).cache()


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        ("forest_classes", "three"),
        ("boosted_regression", "real"),
        pytest.param("forest_regression", "real", marks=NIGHTLY),
        pytest.param("boosted_classes", "two", marks=NIGHTLY),
        pytest.param("tree_classes", "three", marks=NIGHTLY),
        pytest.param("tree_regression", "real", marks=NIGHTLY),
    ],
)
@pytest.mark.filterwarnings("ignore::secateur.errors.TrainingRowsWarning")
def test_spark_saves_and_loads_what_was_pruned(spark, tmp_path, kind, target):
    from secateur.spark import prune_point

    X, targets = data()
    model = live(saved(kind).saved)
    n_nodes = saved(kind).forest.n_nodes
    frame = labelled(spark, X, targets[target]).withColumnRenamed("label", target)  # as the model knows it
    chosen = prune_point(model, frame, max_nodes=max(3, n_nodes // 3), validation=None)
    small = chosen.to_model()
    assert type(small) is type(model)
    folder = (tmp_path / "small").as_uri()
    small.write().save(folder)
    again = type(model).load(folder)
    found = np.array([row.prediction for row in again.transform(frame).collect()])
    features = np.array([row.features.toArray() for row in frame.collect()])
    np.testing.assert_allclose(found, chosen.predict(features), rtol=1e-12)
    assert chosen.forest.n_nodes < n_nodes
    frame.unpersist()


@NIGHTLY
def test_a_forest_of_500_trees_with_categories(spark, tmp_path):
    from pyspark.ml import Pipeline
    from pyspark.ml.classification import RandomForestClassifier as SparkForest
    from pyspark.ml.feature import StringIndexer, VectorAssembler

    from secateur.spark import prune

    rng = np.random.default_rng(0)
    kind, x = rng.integers(0, 5, 300), rng.random(300)
    y = ((kind % 2 == 0) ^ (x > 0.6) ^ (rng.random(300) < 0.1)).astype(float)
    rows = [("vwxyz"[k], float(a), float(label)) for k, a, label in zip(kind, x, y, strict=True)]
    frame = spark.createDataFrame(rows, ["kind", "x", "label"]).coalesce(2).cache()
    model = Pipeline(
        stages=[
            StringIndexer(inputCol="kind", outputCol="k"),
            VectorAssembler(inputCols=["k", "x"], outputCol="features"),
            SparkForest(numTrees=500, maxDepth=2, seed=0),
        ]
    ).fit(frame)
    adapter = adapt(model)
    assert adapter.forest.n_trees == 500
    assert len(adapter.forest.categories.row)
    small = prune(adapter, frame, max_nodes=1500)  # of raw rows: the pipeline makes the features
    assert type(small) is type(model)
    forest = adapt(small)
    assert forest.forest.n_nodes <= 1500 < adapter.forest.n_nodes
    small.write().save((tmp_path / "small").as_uri())
    again = type(model).load((tmp_path / "small").as_uri())
    probabilities = [row.probability.toArray().tolist() for row in again.transform(frame).collect()]
    made = model.stages[1].transform(model.stages[0].transform(frame))
    features = np.array([row.features.toArray() for row in made.collect()])
    whole = sc.prune_path(forest, features, y, solver=WeakestLink())[0]
    assert forest.forest.n_trees == 500
    np.testing.assert_array_equal(np.array(probabilities), whole.predict_proba(features))


@pytest.mark.parametrize("library", ["xgboost", pytest.param("lightgbm", marks=NIGHTLY)])
def test_boosters_are_pruned_by_rows_in_spark(spark, flowers, library):
    from secateur.spark import prune, prune_path

    X, y = flowers
    module = pytest.importorskip(library)
    kind = {"xgboost": "XGBRegressor", "lightgbm": "LGBMRegressor"}[library]
    quiet = {"verbose": -1} if library == "lightgbm" else {}
    model = getattr(module, kind)(n_estimators=4, max_depth=3, random_state=0, **quiet).fit(X[::2], y[::2])
    frame, names = frame_of(spark, X, y)
    solver = BlockDescent(penalties=5)
    assert_same_path(
        prune_path(model, frame, features=names, solver=solver), sc.prune_path(model, X, y, solver=solver), rtol=1e-5
    )
    assert type(prune(model, frame, features=names, max_nodes=12)) is type(model)


def test_prices_by_row_are_for_rows_in_memory(spark, classifier, flowers):
    from secateur.spark import prune_path

    frame, names = frame_of(spark, *flowers)
    with pytest.raises(ValueError, match="no numbers"):
        prune_path(classifier, frame, features=names, cost=FeatureCost(row_prices=np.ones(flowers[0].shape)))


def test_clones_and_masks_are_for_rows_in_memory(spark, classifier, flowers):
    from secateur.spark import prune

    frame, names = frame_of(spark, *flowers)
    for validation in ("cv", "oob", np.ones(3, bool)):
        with pytest.raises(ValueError, match="rows are remote"):
            prune(classifier, frame, features=names, validation=validation, solver="weakest_link")


def test_boosters_trained_on_spark_are_pruned_like_the_boosters_they_hold(spark, tmp_path):
    import lightgbm
    import xgboost
    from xgboost.spark import SparkXGBRegressorModel

    X, y = load_diabetes(return_X_y=True)
    frame, names = frame_of(spark, X[::3], y[::3])
    booster = xgboost.XGBRegressor(n_estimators=6, max_depth=3, n_jobs=1).fit(X[1::3], y[1::3])
    trained = SparkXGBRegressorModel(xgb_sklearn_model=booster)
    # SynapseML saves a LightGBM model as its text.
    text = tmp_path / "model.txt"
    light = lightgbm.LGBMRegressor(n_estimators=6, num_leaves=6, verbose=-1, n_jobs=1).fit(X[1::3], y[1::3])
    light.booster_.save_model(text)
    for model, native in ((trained, booster.get_booster()), (text, light.booster_)):
        found = sc.spark.prune_path(model, frame, features=names, label="label", solver=WeakestLink())
        expected = sc.spark.prune_path(native, frame, features=names, label="label", solver=WeakestLink())
        assert np.array_equal(found.table["n_nodes"], expected.table["n_nodes"])
        np.testing.assert_allclose(found.table["risk"], expected.table["risk"])
        assert type(found[1].to_model()) is type(expected[1].to_model())


def test_a_scorer_scores_rows_on_the_driver_or_refuses(spark, classifier, flowers):
    from secateur.spark import evaluate, prune_path, prune_point

    frame, names = frame_of(spark, *flowers)
    path = prune_path(classifier, frame, features=names, solver=WeakestLink())
    found = evaluate(path, frame, features=names, scoring="f1_macro")
    expected = path.evaluate(*flowers, scoring="f1_macro")
    np.testing.assert_allclose(found.table["score"], expected.table["score"], rtol=1e-12)
    np.testing.assert_allclose(found.table["loss"], expected.table["loss"], rtol=1e-9)
    options = {"features": names, "solver": WeakestLink(), "scoring": "accuracy"}
    chosen = prune_point(classifier, frame, max_score_drop=0.1, **options)
    assert chosen.row["score"] >= chosen.info.unpruned_score - 0.1
    with pytest.raises(sc.errors.UnsupportedProblemError, match=r"rows do not fit.*Raise driver_bytes"):
        prune_point(classifier, frame, driver_bytes=100, **options)


def test_limits_are_certified_by_sums_over_partitions(spark, classifier, flowers):
    from secateur.path.guarantee import certify
    from secateur.spark import evaluate, prune_path, prune_point

    frame, names = frame_of(spark, *flowers)
    path = prune_path(classifier, frame, features=names, solver=WeakestLink())
    far, near = evaluate(path, frame, features=names), path.evaluate(*flowers)
    for limits in ({"max_loss_increase": 0.5}, {"max_loss_increase": 2.0}):
        certified = certify(near, limits, 0.9).certified
        np.testing.assert_array_equal(certify(far, limits, 0.9).certified, certified)
    assert certified.sum() > 1
    options = {"features": names, "solver": WeakestLink(), "max_loss_increase": 2.0, "confidence": 0.9}
    chosen = prune_point(classifier, frame, validation=frame, **options)
    assert chosen.guarantee["rows"] == len(flowers[1])
