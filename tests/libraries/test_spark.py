"""Test saved and live Spark models: folders of all versions, damaged folders, and what a folder can store."""

import json
import shutil
from ctypes.util import find_library
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cases import case
from tests.cases.spark import (
    MODELS,
    TARGETS,
    VERSION,
    VERSIONS,
    last_places,
    live,
    live_predictions,
    predictions,
    session,
)
from tests.models.make_spark import new_rows
from tests.strategies import everything, random_keep

from secateur import Decision, prune
from secateur.libraries import adapt
from secateur.libraries.spark import SavedModel, dump, load
from secateur.libraries.spark.arrow import node_columns
from secateur.libraries.spark.write_nodes import pruned_table
from secateur.path import Pruned

KINDS = [kind for kind in TARGETS if kind != "pipeline"]
stored = pytest.mark.parametrize(("version", "kind"), [(v, k) for v in VERSIONS for k in KINDS])


@pytest.fixture(scope="session")
def spark():
    return session()


def saved(kind, version=VERSION):
    return load(MODELS / f"spark-{version}-{kind}")


def pruned_by(adapter, decision):
    return Pruned(adapter, decision, 0, {}, "", {})


def same_bits(kind, version, found, expected):
    """Boosting adds by the machine's BLAS, whose order of additions differs between versions of Spark."""
    if ulp := last_places(kind, version):
        return bool((np.abs(found - expected) <= ulp * np.spacing(np.abs(expected).max())).all())
    return np.array_equal(found, expected)


@stored
def test_a_model_saved_by_any_version_predicts_as_spark(version, kind):
    facts = json.loads((MODELS / f"spark-{version}.json").read_text())
    X = np.array(facts["rows"], float)
    expected = {name: np.array(values) for name, values in facts["answers"][kind].items()}
    adapter = adapt(saved(kind, version))
    ours = pruned_by(adapter, everything(adapter.forest))
    assert same_bits(kind, version, ours.predict(X), expected["prediction"])
    if "probability" in expected:
        assert same_bits(kind, version, ours.predict_proba(X), expected["probability"])
    if kind == "forest_classes":
        assert np.array_equal(ours.raw(X), expected["rawPrediction"])


@stored
def test_a_pruned_folder_reads_back_as_it_was_written(version, kind, tmp_path):
    adapter = adapt(saved(kind, version))
    ours = pruned_by(adapter, Decision(random_keep(np.random.default_rng(3), adapter.forest)))
    folder = ours.to_model().save(tmp_path / "small")
    again = adapt(load(folder))
    assert again.forest.n_nodes == ours.forest.n_nodes
    assert np.array_equal(pruned_by(again, everything(again.forest)).predict(new_rows()), ours.predict(new_rows()))
    assert again.saved.metadata["uid"] == adapter.saved.metadata["uid"]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_other_stages_of_a_pipeline_stay_as_they_are(version, tmp_path):
    adapter = adapt(saved("pipeline", version))
    small = adapter.write(Decision(random_keep(np.random.default_rng(3), adapter.forest)))
    again = load(small.save(tmp_path / "small"))
    assert again.place == adapter.saved.place
    assert again.others == adapter.saved.others
    assert {name.split("/")[0] for name in again.others} == {"metadata", "stages"}


@pytest.mark.parametrize("kind", ["forest_classes", "boosted_regression", "pipeline"])
def test_a_live_model_is_pruned_to_a_live_model_of_its_class(spark, kind):
    name = f"spark_{kind}"
    model, X, column = live(saved(kind)), case(name).X_new, "vector" if kind == "pipeline" else "features"
    before = live_predictions(model, X, column)
    adapter = adapt(model)
    decision = Decision(random_keep(np.random.default_rng(4), adapter.forest))
    small = adapter.write(decision)
    assert type(small) is type(model)
    expected = pruned_by(adapter, decision)
    for method, found in live_predictions(small, X, column).items():
        assert same_bits(kind, VERSION, found, getattr(expected, method)(X))
    for method, found in live_predictions(model, X, column).items():
        assert np.array_equal(found, before[method])
    assert adapter.n_bytes(small) < adapter.n_bytes(model)
    assert adapter.n_bytes_after(decision) == pytest.approx(adapter.n_bytes(small), rel=0.01)  # but for a time stamp


def repeated(model, times):
    """Return a boosted model with its trees several times over."""
    nodes, trees = [], []
    for k in range(times):
        first = model.trees.num_rows * k
        nodes.append(model.nodes.set_column(0, model.nodes.schema.field(0), _shifted(model.nodes, first)))
        trees.append(model.trees.set_column(0, model.trees.schema.field(0), _shifted(model.trees, first)))
    metadata = {**model.metadata, "numTrees": model.trees.num_rows * times}
    return replace(model, metadata=metadata, nodes=pa.concat_tables(nodes), trees=pa.concat_tables(trees))


def _shifted(table, first):
    return pa.array(table.column(0).to_numpy() + first).cast(pa.int32())


def lanes(spark):
    """Return how many sums Java adds side by side: 4 with AVX2, 8 with AVX-512, and 1 where Spark 3 starts it."""
    if VERSION == "3.5.8":
        return 1
    return spark._jvm.jdk.incubator.vector.DoubleVector.SPECIES_MAX.length()


@pytest.mark.parametrize("times", [2, 5, 8])
def test_many_boosted_trees_are_added_in_the_order_of_java(spark, times):
    model = repeated(saved("boosted_regression"), times)
    adapter = adapt(model)
    ours = pruned_by(adapter, everything(adapter.forest)).predict(new_rows())
    theirs = predictions(model, new_rows())["predict"]
    if find_library("blas") or lanes(spark) != 4:  # a native one, which Spark prefers, adds in another order
        assert (np.abs(ours - theirs) <= 8 * np.spacing(np.abs(theirs).max())).all()
    else:
        assert np.array_equal(ours, theirs)


def test_new_class_fractions_are_stored_as_class_weights(spark):
    adapter = adapt(saved("forest_classes"))
    forest = adapter.forest
    value = np.eye(3)[forest.value.argmax(axis=1)]
    decision = Decision(random_keep(np.random.default_rng(5), forest), value=value)
    model = adapter.write(decision)
    for method, found in predictions(model, new_rows()).items():
        assert np.array_equal(found, getattr(pruned_by(adapter, decision), method)(new_rows()))
    leaf = ~adapt(model).forest.is_split
    assert np.allclose(adapt(model).forest.weight[leaf], forest.weight[decision.keep][leaf])


def test_values_that_are_not_class_fractions_are_refused():
    adapter = adapt(saved("forest_classes"))
    keep = np.ones(adapter.forest.n_nodes, bool)
    for value in (adapter.forest.value * 2, adapter.forest.value + np.array([0.5, 0.25, -0.75])):
        with pytest.raises(ValueError, match="not class fractions"):
            adapter.write(Decision(keep, value=value))
    assert "divides by their sum" in adapter.why_immutable("value")


def test_new_weights_and_values_of_boosted_trees_are_stored(spark):
    adapter = adapt(saved("boosted_classes"))
    forest, rng = adapter.forest, np.random.default_rng(6)
    decision = Decision(
        random_keep(rng, forest), value=rng.normal(size=forest.value.shape), tree_weight=rng.random(forest.n_trees)
    )
    expected = pruned_by(adapter, decision)
    for method, found in predictions(expected.to_model(), new_rows()).items():
        assert same_bits("boosted_classes", VERSION, found, getattr(expected, method)(new_rows()))


def test_without_boosted_trees_one_leaf_predicts_0(spark):
    adapter = adapt(saved("boosted_regression"))
    model = adapter.write(Decision(np.zeros(adapter.forest.n_nodes, bool)))
    assert model.nodes.num_rows == model.trees.num_rows == 1
    assert np.array_equal(predictions(model, new_rows())["predict"], np.zeros(len(new_rows())))


def test_quantities_that_a_model_cannot_store_are_refused():
    forest, boosted = adapt(saved("forest_regression")), adapt(saved("boosted_regression"))
    assert "cannot store a tree weight" in forest.why_immutable("tree_weight")
    assert "cannot store a base" in boosted.why_immutable("base")
    assert boosted.why_immutable("tree_weight") is None


def test_rows_may_come_in_any_order_and_in_several_files(tmp_path):
    model = saved("forest_classes")
    folder = tmp_path / "model"
    shutil.copytree(MODELS / f"spark-{VERSIONS[-1]}-forest_classes", folder)
    for file in (folder / "data").iterdir():
        file.unlink()
    shuffled = model.nodes.take(np.random.default_rng(0).permutation(model.nodes.num_rows))
    pq.write_table(shuffled.slice(0, 50), folder / "data" / "part-00000.parquet")
    pq.write_table(shuffled.slice(50), folder / "data" / "part-00001.parquet")
    (folder / "data" / "._SUCCESS.crc").write_bytes(b"?")
    forest, expected = adapt(load(folder)).forest, adapt(model).forest
    for name in ("right", "feature", "threshold", "value", "tree_start"):
        assert np.array_equal(getattr(forest, name), getattr(expected, name))


def test_trees_and_their_weights_may_come_in_any_order(tmp_path):
    model = saved("boosted_regression")
    folder = tmp_path / "model"
    shutil.copytree(MODELS / f"spark-{VERSIONS[-1]}-boosted_regression", folder)
    for file in (folder / "treesMetadata").iterdir():
        file.unlink()
    weight = pa.array(np.linspace(1.0, 0.5, model.trees.num_rows))
    trees = model.trees.set_column(2, model.trees.schema.field(2), weight)  # tree, its metadata, its weight
    pq.write_table(trees.take(np.arange(trees.num_rows)[::-1]), folder / "treesMetadata" / "part-00000.parquet")
    np.testing.assert_array_equal(adapt(load(folder)).forest.tree_weight, weight.to_numpy())


def test_ids_need_not_be_in_preorder(spark):
    model = saved("tree_regression")
    adapter = adapt(model)
    forest = adapter.forest
    by_level = np.argsort(forest.depth, kind="stable")
    new_id = np.argsort(by_level)
    table = pruned_table(adapter.nodes, np.ones(forest.n_nodes, bool), forest, {})
    split = forest.is_split
    left, right = (
        np.where(split, new_id[np.arange(1, len(split) + 1) % len(split)], -1),
        np.where(split, new_id[forest.right], -1),
    )
    for name, ids in (("id", new_id), ("leftChild", left), ("rightChild", right)):
        place = table.column_names.index(name)
        table = table.set_column(place, table.schema.field(name), pa.array(ids).cast(pa.int32()))
    mixed = adapt(replace(model, nodes=table))
    assert np.array_equal(mixed.native_ids(), new_id)
    cut = Decision(random_keep(np.random.default_rng(7), forest))
    for adapted in (mixed.saved, mixed.write(cut)):
        decision = cut if adapted is not mixed.saved else everything(forest)
        assert np.array_equal(
            predictions(adapted, new_rows())["predict"], pruned_by(adapter, decision).predict(new_rows())
        )


def test_a_folder_is_overwritten_only_with_force(tmp_path):
    model = saved("tree_classes")
    folder = model.save(tmp_path / "model")
    with pytest.raises(FileExistsError, match="force=True"):
        model.save(folder)
    assert load(model.save(folder, force=True)).nodes.equals(model.nodes)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    (tmp_path / "mine").mkdir()
    with pytest.raises(FileExistsError, match="not a Spark model"):
        model.save(tmp_path / "mine", force=True)


def test_rows_may_be_a_frame_with_the_features_column():
    from pyspark.ml.linalg import Vectors

    adapter, X = adapt(saved("tree_classes")), new_rows()
    frame = pd.DataFrame({"id": np.arange(len(X)), "features": [Vectors.dense(x) for x in X.tolist()]})
    assert np.array_equal(adapter.rows(frame), adapter.rows(X), equal_nan=True)


def test_a_saved_model_can_be_pruned_by_a_solver(tmp_path):
    c = case("spark_forest_classes")
    small = prune(c.model, c.X, c.y)
    assert isinstance(small, SavedModel)
    assert small.nodes.num_rows < c.model.nodes.num_rows


def test_training_rows_are_recognised_unless_rows_were_sampled():
    for kind, known in (("tree_classes", True), ("boosted_regression", True), ("forest_classes", False)):
        c = case(f"spark_{kind}")
        adapter = adapt(c.model)
        from secateur.forest.routing import route

        assert adapter.grown_on(route(adapter.forest, adapter.rows(c.X))) is known


def test_other_spark_objects_are_refused():
    from pyspark.ml.classification import RandomForestClassifier

    with pytest.raises(TypeError, match="not a fitted tree model"):
        adapt(RandomForestClassifier.__new__(RandomForestClassifier))
    with pytest.raises(ValueError, match="folder of files"):
        dump(saved("tree_classes"), ".json")


def _metadata(change):
    def damage(folder):
        file = next((folder / "metadata").iterdir())
        found = json.loads(file.read_text())
        change(found)
        file.write_text(json.dumps(found))

    return damage


def _text(text):
    return lambda folder: next((folder / "metadata").iterdir()).write_text(text)


def _column(name, change):
    def damage(folder):
        file = next((folder / "data").iterdir())
        table = pq.read_table(file)
        column = table.column("nodeData").combine_chunks()
        columns = dict(zip((field.name for field in column.type), column.flatten(), strict=True))
        if change is None:
            del columns[name]
        else:
            columns[name] = change(columns[name])
        data = pa.StructArray.from_arrays(list(columns.values()), names=list(columns))
        pq.write_table(pa.table({"treeID": table.column("treeID"), "nodeData": data}), file)

    return damage


def _set(row, value):
    def change(column):
        values = column.to_pylist()
        values[row] = value
        return pa.array(values, column.type)

    return change


def _trees(change):
    def damage(folder):
        file = next((folder / "treesMetadata").iterdir())
        pq.write_table(change(pq.read_table(file)), file)

    return damage


def _cut_short(folder):
    file = next((folder / "data").iterdir())
    file.write_bytes(file.read_bytes()[:-200])


DAMAGES = {
    "no JSON": (_text("{"), "no line of JSON"),
    "empty": (_text(""), "no line of JSON"),
    "a list": (_text("[1]"), "not a JSON object"),
    "another class": (_metadata(lambda m: m.update({"class": "x.LinearRegressionModel"})), "contains 0 tree models"),
    "no parameters": (_metadata(lambda m: m.pop("paramMap")), "no paramMap"),
    "features as text": (_metadata(lambda m: m.update(numFeatures="5")), "numFeatures"),
    "too few features": (_metadata(lambda m: m.update(numFeatures=2)), "must be 0 to 1"),
    "another number of trees": (_metadata(lambda m: m.update(numTrees=5)), "the same trees"),
    "another divisor": (_metadata(lambda m: m["paramMap"].update(numTrees=5)), "divides"),
    "more classes": (_metadata(lambda m: m.update(numClasses=4)), "4 impurityStats"),
    "too few thresholds": (_metadata(lambda m: m["paramMap"].update(thresholds=[0.5])), "one number for each class"),
    "no categories": (
        _column("split", _set(0, {"featureIndex": 3, "leftCategoriesOrThreshold": [], "numCategories": -7})),
        "not one of its categories",
    ),
    "no ids": (_column("id", None), "no column id"),
    "no splits": (_column("split", None), "no column split"),
    "no gain": (_column("gain", None), "no column gain"),
    "an id twice": (_column("id", _set(1, 2)), "each once"),
    "a child beyond": (_column("rightChild", _set(0, 999)), "later nodes"),
    "a child above": (_column("leftChild", _set(0, 0)), "later nodes"),
    "no right child": (_column("rightChild", _set(0, -1)), "later nodes"),
    "a shared child": (_column("rightChild", _set(0, 2)), "reached twice"),
    "missing entries": (_column("prediction", lambda c: pa.array([None] * len(c), c.type)), "missing entries"),
    "statistics not finite": (_column("impurityStats", _set(0, [np.nan, 1, 1])), "not finite"),
    "negative weights": (_column("impurityStats", _set(0, [-1, 1, 1])), "below 0"),
    "no threshold": (
        _column("split", _set(0, {"featureIndex": 0, "leftCategoriesOrThreshold": [], "numCategories": -1})),
        "exactly one threshold",
    ),
    "a NaN threshold": (
        _column("split", _set(0, {"featureIndex": 0, "leftCategoriesOrThreshold": [np.nan], "numCategories": -1})),
        "threshold is NaN",
    ),
    "a category too large": (
        _column("split", _set(0, {"featureIndex": 3, "leftCategoriesOrThreshold": [5.0], "numCategories": 5})),
        "not one of its categories",
    ),
    "a number and a category": (
        _column("split", _set(0, {"featureIndex": 3, "leftCategoriesOrThreshold": [1.0], "numCategories": -1})),
        "both numeric and categorical splits",
    ),
    "text for numbers": (_column("id", lambda c: c.cast(pa.string())), "has the type string"),
    "trees missing": (_trees(lambda t: t.slice(1)), "the same trees"),
    "no weights": (_trees(lambda t: t.select([0, 1])), "weights of trees"),
    "truncated": (_cut_short, "cannot be read"),
    "no data": (lambda folder: shutil.rmtree(folder / "data"), "no Parquet files"),
}


@pytest.mark.parametrize("name", list(DAMAGES))
def test_a_damaged_folder_is_refused_with_a_reason(name, tmp_path):
    damage, reason = DAMAGES[name]
    folder = tmp_path / "model"
    shutil.copytree(MODELS / f"spark-{VERSIONS[-1]}-forest_classes", folder)
    damage(folder)
    with pytest.raises(ValueError, match=reason):
        assert adapt(load(folder)).forest


def test_a_missing_folder_raises_file_not_found(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        load(tmp_path / "nothing")


def test_unknown_columns_are_kept(tmp_path):
    model = saved("tree_classes")
    table = model.nodes.append_column("later", pa.array(np.arange(model.nodes.num_rows)))
    adapter = adapt(replace(model, nodes=table))
    decision = Decision(random_keep(np.random.default_rng(1), adapter.forest))
    assert np.array_equal(node_columns(adapter.write(decision).nodes)["later"], np.flatnonzero(decision.keep))
