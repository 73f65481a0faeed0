"""Rows in a Spark cluster: the same sums as here, whatever the partitions, the columns and the accidents."""

import os
import pickle
import sys
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from tests.cases.spark import MODELS, VERSION
from tests.models.make_spark import data, new_rows

from secateur.data.rows import joined, read_sample, weight_at_nodes
from secateur.errors import InvalidInputError
from secateur.forest.node_sums import class_stats, value_stats
from secateur.forest.routing import route
from secateur.libraries import adapt
from secateur.libraries.adapter import Adapter, ForestAdapter
from secateur.libraries.spark import SavedModel

pytest.importorskip("pyspark", reason="Spark is not installed: pip install 'secateur[spark]'")

from secateur.spark import cluster_rows as cluster
from secateur.spark import partition_results as answers
from secateur.spark.cluster_rows import ClusterSample
from secateur.spark.frame_columns import FrameColumns
from secateur.spark.tasks import _gathered, _rows_at_once

X, TARGETS = data()
Y, REAL, WEIGHT = TARGETS["three"], TARGETS["real"], TARGETS["weight"]
PLAIN = tuple("abcde")
WEIGHTED = FrameColumns("features", "label", "weight")


@pytest.fixture(autouse=True, scope="module")
def _questions_of_this_file_travel(spark):
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


@cache
def saved(kind="forest_classes"):
    return adapt(SavedModel.load(MODELS / f"spark-{VERSION}-{kind}"))


@cache
def classifier():
    return adapt(RandomForestClassifier(5, max_depth=4, random_state=0).fit(X, Y))


def rows_of(X, y, weight, kind):
    """Return rows of a DataFrame and the names of its columns."""
    from pyspark.ml.linalg import Vectors

    make = {
        "dense": Vectors.dense,
        "sparse": lambda x: Vectors.sparse(len(x), [(k, v) for k, v in enumerate(x) if v != 0]),
        "array": list,
    }
    if kind == "plain":
        return [(*x, *rest) for x, *rest in zip(X.tolist(), y, weight, strict=True)], [*PLAIN, "label", "weight"]
    cells = map(make[kind], X.tolist())
    return [(x, *rest) for x, *rest in zip(cells, y, weight, strict=True)], ["features", "label", "weight"]


def frame(spark, X=X, y=Y, weight=WEIGHT, kind="array"):
    return spark.createDataFrame(*rows_of(X, np.asarray(y).tolist(), np.asarray(weight).tolist(), kind))


def class_counts(forest, sample):
    return class_stats(forest, sample.leaves, sample.y, sample.weight)


def moments(forest, sample, shift):
    return value_stats(forest, sample.leaves, sample.y, sample.weight, shift)


def n_rows(forest, sample):
    return len(sample)


def same_stats(found, expected):
    for name in ("weight", "counts", "total", "square"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-12, atol=1e-12)


def in_order(sample):
    """Return leaves, targets and weights with rows in an order of their own."""
    table = np.vstack([sample.leaves, sample.y.T, sample.weight])
    return table[:, np.lexsort(table)]


def partitioned(frame, how):
    """Return a frame in so many partitions; or with nearly all rows in one and some partitions empty."""
    from pyspark.sql import functions as F  # noqa: N812

    if how != "skewed":
        return frame.repartition(how)
    key = F.when(F.col("weight") > np.sort(WEIGHT)[3], 0).otherwise(1)
    return frame.repartition(6, key)


@pytest.mark.parametrize("how", ["skewed", *[pytest.param(n, marks=pytest.mark.nightly) for n in (1, 2, 7, 20)]])
def test_sums_do_not_depend_on_the_partitions(spark, how):
    adapter = classifier()
    there = ClusterSample.of(partitioned(frame(spark), how), adapter, WEIGHTED)
    here = read_sample(adapter, X, Y, WEIGHT)
    same_stats(there.total(adapter.forest, class_counts), class_counts(adapter.forest, here))
    assert len(there) == len(X)
    assert there.total_weight == pytest.approx(WEIGHT.sum(), rel=1e-14)
    if how == "skewed":
        counts = sorted(there.row_counts.parts.values())
        assert len(counts) < 6
        assert counts[0] <= 4
        assert counts[-1] >= 146
    if how == 20:
        assert len(there.row_counts.parts) > answers.MOST_ANSWERS


def test_weights_are_summed_over_all_batches_of_a_partition_before_any_other_pass(spark):
    there = ClusterSample.of(frame(spark).coalesce(1), classifier(), WEIGHTED)
    assert there.total_weight == pytest.approx(WEIGHT.sum(), rel=1e-14)


def test_more_answers_than_the_driver_adds_up_are_added_in_groups(spark, monkeypatch):
    adapter = classifier()
    there = ClusterSample.of(frame(spark).repartition(5), adapter, FrameColumns("features", "label"))
    monkeypatch.setattr(answers, "MOST_ANSWERS", 2)
    monkeypatch.setattr(cluster, "MOST_ANSWERS", 2)
    driver = []

    def spied(frame):
        driver.append(answers.collected(frame))
        return answers.added_up(frame)

    monkeypatch.setattr(cluster, "added_up", spied)
    for _ in range(2):
        found = there.total(adapter.forest, class_counts)
        assert np.array_equal(found.counts, class_counts(adapter.forest, read_sample(adapter, X, Y)).counts)
    assert [[sorted(result.counts) for result in pass_] for pass_ in driver] == 2 * [[[0, 2, 4], [1, 3]]]


def test_counts_of_rows_are_exact_and_every_pass_has_the_same_bits(spark):
    adapter = saved()
    there = ClusterSample.of(frame(spark).repartition(3), adapter, FrameColumns("features", "label"))
    first = there.total(adapter.forest, class_counts)
    here = class_counts(adapter.forest, read_sample(adapter, X, Y))
    assert np.array_equal(first.counts, here.counts)
    assert there.total_weight == len(X)
    weighted = ClusterSample.of(frame(spark).repartition(3).cache(), adapter, WEIGHTED)
    bits = [weighted.total(adapter.forest, class_counts).counts.tobytes() for _ in range(3)]
    assert bits[0] == bits[1] == bits[2]


@pytest.mark.parametrize("kind", ["dense", "sparse", "plain"])
def test_features_may_be_vectors_or_plain_columns(spark, kind):
    adapter = saved()  # its splits know categories, and some of these rows are of none
    rows = np.vstack([X[:60], new_rows()])
    y, weight = np.tile(Y[:60], 2), np.tile(WEIGHT[:60], 2)
    columns = FrameColumns(PLAIN if kind == "plain" else "features", "label", "weight")
    there = ClusterSample.of(frame(spark, rows, y, weight, kind), adapter, columns)
    same_stats(
        there.total(adapter.forest, class_counts), class_counts(adapter.forest, read_sample(adapter, rows, y, weight))
    )
    assert len(adapter.portable().saved.nodes) == 0


def test_only_the_rows_that_fit_are_routed_at_once():
    import pyarrow as pa

    parts = (np.arange(start, stop) for start, stop in ((0, 3), (3, 3), (3, 10), (10, 11)))
    batches = [pa.RecordBatch.from_pydict({"x": part}) for part in parts]
    tables = list(_gathered(batches, 4))
    assert [len(table) for table in tables] == [4, 4, 3]
    assert np.array_equal(pa.concat_tables(tables)["x"].to_numpy(), np.arange(11))
    forest = classifier().forest
    assert [_rows_at_once(forest, n_bytes) for n_bytes in (2**26, 5 * 2**12, 5)] == [2**16, 2**12, 2**10]


def models():
    """Return models of other libraries with the labels they know."""
    from lightgbm import LGBMClassifier
    from xgboost import XGBRegressor

    names = np.array(["low", "mid", "top"])[Y.astype(int)]
    table = pd.DataFrame(X, columns=list(PLAIN))
    text = table.assign(e=np.array(["x", "y", "z"])[X[:, 4].astype(int)])
    encoded = make_column_transformer((OneHotEncoder(), ["e"]), remainder="passthrough")
    forest = RandomForestClassifier(4, max_depth=4, random_state=0)
    return {
        "pipeline": (make_pipeline(encoded, forest).fit(text, names), text, names),
        "xgboost": (XGBRegressor(n_estimators=4, max_depth=3, n_jobs=1).fit(table, REAL), table, REAL),
        "lightgbm": (LGBMClassifier(n_estimators=3, n_jobs=1, verbose=-1).fit(table, names), table, names),
        "isolation": (IsolationForest(n_estimators=4, random_state=0).fit(X), table, None),
    }


@pytest.mark.parametrize(
    "name",
    ["pipeline", *[pytest.param(name, marks=pytest.mark.nightly) for name in ("xgboost", "lightgbm", "isolation")]],
)
def test_models_of_other_libraries_see_their_own_columns(spark, name):
    model, table, y = models()[name]
    adapter = adapt(model)
    whole = table if y is None else table.assign(label=y)
    there = ClusterSample.of(
        spark.createDataFrame(whole).repartition(2), adapter, FrameColumns(PLAIN, None if y is None else "label")
    )
    here = read_sample(adapter, table, y)
    forest, shift = adapter.forest, np.zeros(here.y.shape[1])
    ask = class_counts if forest.n_classes else partial(moments, shift=shift)
    same_stats(there.total(forest, ask), ask(forest, here))


def test_a_live_spark_model_goes_without_its_session(spark):
    from pyspark.ml.classification import RandomForestClassificationModel

    model = RandomForestClassificationModel.load((MODELS / f"spark-{VERSION}-forest_classes").as_uri())
    adapter = adapt(model)
    there = ClusterSample.of(frame(spark, kind="dense"), adapter, WEIGHTED)
    found = there.total(adapter.forest, weight_at_nodes)
    np.testing.assert_allclose(found, weight_at_nodes(adapter.forest, read_sample(adapter, X, Y, WEIGHT)), rtol=1e-12)


@dataclass(frozen=True)
class Accident:
    """Counts classes, but not before something went wrong once."""

    flag: str
    kind: str

    def __call__(self, forest, sample):
        try:
            os.close(os.open(self.flag, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return class_counts(forest, sample)
        if self.kind == "killed":
            os._exit(1)
        raise OSError("no space left on device")


@pytest.mark.parametrize("kind", ["raised", pytest.param("killed", marks=pytest.mark.nightly)])
def test_a_task_that_fails_is_tried_again_and_counts_once(spark, tmp_path, kind):
    adapter = classifier()
    there = ClusterSample.of(frame(spark).repartition(3).cache(), adapter, WEIGHTED)
    flag = tmp_path / "failed"
    found = there.total(adapter.forest, Accident(str(flag), kind))
    assert flag.exists()
    assert found.counts.tobytes() == there.total(adapter.forest, class_counts).counts.tobytes()


def test_routed_rows_answer_without_their_features(spark):
    adapter = classifier()
    there = ClusterSample.of(frame(spark).repartition(3), adapter, WEIGHTED)
    with there.routed() as near:
        assert near.routed() is near
        assert len(near) == len(X)
        expected = class_counts(adapter.forest, read_sample(adapter, X, Y, WEIGHT))
        same_stats(near.total(adapter.forest, class_counts), expected)
        assert near.blocks.is_cached
        assert near.each(adapter.forest, each_number) == [(n, number) for number, n in enumerate(parts_of(near))]
    assert not near.blocks.is_cached
    same_stats(near.total(adapter.forest, class_counts), expected)  # routed again, from the frame


def each_number(forest, sample, number):
    return len(sample), number


def parts_of(there):
    return [there.row_counts.parts[part] for part in sorted(there.row_counts.parts)]


def itself(forest, sample, number):
    return sample


def test_parts_have_the_same_rows_and_numbers_at_every_call(spark):
    adapter = classifier()
    there = ClusterSample.of(partitioned(frame(spark), "skewed").cache(), adapter, WEIGHTED)
    first = there.each(adapter.forest, each_number)
    assert [number for _, number in first] == list(range(len(first)))
    assert sum(n for n, _ in first) == len(X)
    assert max(there.row_counts.parts) >= len(first)  # some partition before the last is empty
    again = there.each(adapter.forest, itself)
    assert [len(part) for part in again] == [n for n, _ in first]
    here = read_sample(adapter, X, Y, WEIGHT)
    assert np.array_equal(in_order(joined(again)), in_order(here))


def test_another_forest_may_be_asked_about(spark):
    adapter = classifier()
    there = ClusterSample.of(frame(spark), adapter, FrameColumns("features", "label"))
    copy = pickle.loads(pickle.dumps(adapter.forest))
    assert np.array_equal(there.total(copy, weight_at_nodes), weight_at_nodes(copy, read_sample(adapter, X, Y)))


def test_rows_brought_here_are_those_of_the_local_sample(spark):
    adapter = classifier()
    there = ClusterSample.of(frame(spark).repartition(3), adapter, WEIGHTED)
    assert there.is_remote
    assert there.fits_in_memory
    found, here = there.collect(), read_sample(adapter, X, Y, WEIGHT)
    assert found.rows is None
    assert found.leaves.dtype == here.leaves.dtype
    assert np.array_equal(in_order(found), in_order(here))


def test_of_more_rows_than_the_driver_may_hold_a_share_is_drawn_by_content(spark):
    adapter = classifier()
    drawn = []
    for n_partitions in (1, 4):
        there = ClusterSample.of(frame(spark).repartition(n_partitions), adapter, WEIGHTED, driver_bytes=45 * 60)
        assert not there.fits_in_memory  # a row has 5 leaves, code, weight and 3 sums: 45 bytes
        drawn.append(there.collect())
    assert 20 <= len(drawn[0]) <= 60
    assert drawn[0].sampled_from == len(Y)
    for name in ("leaves", "y", "weight"):
        assert np.array_equal(getattr(drawn[0], name), getattr(drawn[1], name))
    whole = read_sample(adapter, X, Y, WEIGHT)
    contents = {tuple(row) for row in np.column_stack([*whole.leaves, whole.y, whole.weight]).tolist()}
    assert {tuple(row) for row in np.column_stack([*drawn[0].leaves, drawn[0].y, drawn[0].weight]).tolist()} <= contents


def test_a_driver_without_room_for_a_row_raises_an_error_with_advice(spark):
    there = ClusterSample.of(frame(spark), classifier(), WEIGHTED, driver_bytes=40)
    with pytest.raises(InvalidInputError, match="Raise driver_bytes"):
        there.collect()


def test_a_share_is_drawn_by_content_and_complementary(spark):
    adapter = classifier()
    shares = []
    for n_partitions in (1, 5):
        there = ClusterSample.of(frame(spark).repartition(n_partitions), adapter, WEIGHTED)
        rest, share = there.split(0.3, np.random.default_rng(3))
        collected = [sorted(map(tuple, part.frame.select("c2").collect())) for part in (rest, share)]
        shares.append(collected)
    assert shares[0] == shares[1]
    assert sorted(shares[0][0] + shares[0][1]) == sorted((w,) for w in WEIGHT)
    assert 25 <= len(shares[0][1]) <= 65
    other = there.split(0.3, np.random.default_rng(4))[1]
    assert sorted(map(tuple, other.frame.select("c2").collect())) != shares[0][1]
    assert share.total(adapter.forest, n_rows) == len(share) == len(shares[0][1])
    with pytest.raises(ValueError, match="between 0 and 1"):
        there.split(1.0, np.random.default_rng(0))


def changed(values, **new):
    values = np.array(values, dtype=object)
    for place, value in new.items():
        values[int(place[1:])] = value
    return values


WRONG = {
    "labels": ({"y": changed(Y, _7=9.0)}, "labels that the model was not trained on: \\[9.0\\]"),
    "no label": ({"y": changed(Y, _7=None, _90=None)}, "'label' has 2 null\\(s\\), but every row needs .*dropna"),
    "negative": ({"weight": changed(WEIGHT, _3=-2.5)}, "'weight' contains -2.5, but weights must be finite"),
    "no weight": ({"weight": changed(WEIGHT, _3=None)}, "'weight' has 1 null"),
    "zero": ({"weight": 0 * WEIGHT}, "'weight' is zero in all 150 rows"),
    "features": ({"X": X[:, :4]}, "trained on 5 features"),
}


@pytest.mark.parametrize("what", WRONG)
def test_invalid_rows_raise_the_error_of_rows_in_memory(spark, what):
    change, words = WRONG[what]
    adapter = saved()
    there = ClusterSample.of(frame(spark, **change).repartition(2), adapter, WEIGHTED)
    with pytest.raises(ValueError, match=words) as caught:
        there.total(adapter.forest, class_counts)
    assert type(caught.value) is InvalidInputError
    assert caught.value.__cause__ is None


def test_errors_are_found_in_routed_rows_and_in_arrays_of_unequal_size(spark):
    rows = [([1.0, 2.0], 0.0), ([1.0], 1.0)]
    short = spark.createDataFrame(rows, ["features", "label"])
    there = ClusterSample.of(short, saved(), FrameColumns("features", "label"))
    with there.routed() as near, pytest.raises(ValueError, match="'features' have 1 to 2 numbers"):
        near.total(saved().forest, class_counts)
    nothing = ClusterSample.of(short.filter("label > 5"), saved(), FrameColumns("features", "label"))
    with pytest.raises(ValueError, match="has no rows"):
        len(nothing)


def test_missing_features_are_nan(spark):
    holes = changed(X[:, 0], _0=None, _5=None)
    table = [
        (x, *rest) for x, rest in zip(holes.tolist(), zip(*X[:, 1:].T.tolist(), Y.tolist(), strict=True), strict=True)
    ]
    there = ClusterSample.of(spark.createDataFrame(table, [*PLAIN, "label"]), saved(), FrameColumns(PLAIN, "label"))
    rows = X.copy()
    rows[[0, 5], 0] = np.nan
    found = there.total(saved().forest, weight_at_nodes)
    assert np.array_equal(found, weight_at_nodes(saved().forest, read_sample(saved(), rows, Y)))
    assert not np.array_equal(found, weight_at_nodes(saved().forest, read_sample(saved(), X, Y)))


def test_columns_of_any_number_type_and_name(spark):
    table = frame(spark, X, Y, np.ones(len(Y))).selectExpr(
        "cast(features as array<decimal(20,6)>) `my.x`", "cast(label as int) `a``b`", "cast(weight as boolean) w"
    )
    there = ClusterSample.of(table, saved(), FrameColumns("my.x", "a`b", "w"))
    found = there.total(saved().forest, class_counts)
    assert np.array_equal(found.counts, class_counts(saved().forest, read_sample(saved(), X, Y)).counts)
    assert sum(map(len, there.split(0.5, np.random.default_rng(0)))) == len(X)


def test_columns_that_cannot_be_meant_are_named(spark):
    table = frame(spark, X[:2], Y[:2], WEIGHT[:2])
    text = table.selectExpr("array('a') features", "label", "'heavy' weight")
    cases = [
        (
            table,
            FrameColumns("feature", "label"),
            "no column 'feature'; the DataFrame has features, label, weight. Did you",
        ),
        (table, FrameColumns("features", "zzz"), "no column 'zzz'.*Pass one of these"),
        (table.select("*", "label"), FrameColumns("features", "label"), "2 columns named 'label'"),
        (text, FrameColumns("features", "label"), "'features' has type array<string>"),
        (text, FrameColumns(("label",), "label", "weight"), "'weight' has type string"),
        (table, FrameColumns((), "label"), "No feature column is given"),
    ]
    for given, columns, words in cases:
        with pytest.raises(ValueError, match=words):
            ClusterSample.of(given, saved(), columns)


class Stuck(ForestAdapter):
    """An adapter that cannot travel."""

    def __reduce__(self):
        raise TypeError("it holds a lock")


def test_a_model_that_cannot_travel_is_named_before_any_work(spark):
    adapter: Adapter = Stuck(saved().forest)
    with pytest.raises(ValueError, match=r"This Forest cannot be pickled .*it holds a lock.*as_forest"):
        ClusterSample.of(frame(spark), adapter, WEIGHTED)


def test_rows_that_change_between_passes_are_noticed(spark, tmp_path):
    where = (tmp_path / "rows").as_uri()
    frame(spark, X[:20], Y[:20], WEIGHT[:20]).write.parquet(where)
    adapter = classifier()
    there = ClusterSample.of(spark.read.parquet(where), adapter, WEIGHTED)
    assert there.total(adapter.forest, n_rows) == 20
    frame(spark, X[:5], Y[:5], WEIGHT[:5]).coalesce(1).write.mode("append").parquet(where)
    moved = ClusterSample.of(spark.read.parquet(where), adapter, WEIGHTED)
    moved.row_counts.n_rows = there.row_counts.n_rows
    with pytest.raises(ValueError, match="had 20 rows before and has 25 now"):
        moved.total(adapter.forest, n_rows)


def test_leaves_are_those_the_kernels_find_here(spark):
    adapter = classifier()
    there = ClusterSample.of(frame(spark), adapter, WEIGHTED)
    (part,) = there.each(adapter.forest, itself)  # one partition keeps the order
    assert np.array_equal(part.leaves, route(adapter.forest, X))
    assert np.array_equal(part.weight, WEIGHT)
