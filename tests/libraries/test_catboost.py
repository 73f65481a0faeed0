"""Test what is specific to CatBoost: its files, symmetric trees, categories and metadata."""

import json
import struct
import subprocess
import sys
from pathlib import Path

import catboost
import numpy as np
import pytest
from catboost import CatBoost, CatBoostClassifier, CatBoostRegressor
from tests.cases import case
from tests.strategies import random_keep

from secateur import Decision, subforest
from secateur.errors import DamagedFileError, UnsupportedModelError
from secateur.forest.routing import raw_scores, route
from secateur.libraries import adapt
from secateur.libraries.catboost import dump, load
from secateur.libraries.catboost.cbm import MAGIC, read_cbm
from secateur.libraries.catboost.flatbuffer import root, with_vectors
from secateur.libraries.catboost.model_info import check_info, class_positions
from secateur.libraries.catboost.objectives import loss_named
from secateur.path import Pruned

MODELS = Path(__file__).parent.parent / "models"
QUICK = {"iterations": 4, "depth": 2, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
SAVED = [
    (version, kind)
    for version in ("1.2", "1.2.10")
    for kind in ("regressor.cbm", "classes.cbm", "leafwise.json", "categories.cbm", "depthwise.json")
]


def numbers(n=100):
    X = np.random.default_rng(0).normal(size=(n, 3))
    return X, X[:, 0] * X[:, 1]


def sums(model, X):
    raw = CatBoost.predict(model, X, prediction_type="RawFormulaVal")
    return raw.reshape(len(raw), -1)


def ours(forest, rows):
    return raw_scores(forest, route(forest, rows))


def near(a, b, ulp):
    return (np.abs(a - b) <= ulp * np.spacing(np.abs(b).max())).all()


@pytest.mark.parametrize(("version", "kind"), SAVED)
def test_saved_models_of_old_and_new_versions_predict_as_they_did(version, kind):
    known = json.loads((MODELS / f"catboost-{version}.json").read_text())[kind]
    X = np.array(known["rows"], object)
    X[X == None] = np.nan  # noqa: E711 - element by element
    X = X if kind in ("categories.cbm", "depthwise.json") else X.astype(float)
    expected = np.array(known["raw"]).reshape(len(X), -1)
    model = load(MODELS / f"catboost-{version}-{kind}")
    # CatBoost's own reader of JSON loses the last digit of some numbers.
    assert near(sums(model, X), expected, 2 if kind.endswith("json") else 0)
    adapter = adapt(model)
    assert near(ours(adapter.forest, adapter.rows(X)), sums(model, X), 2)
    decision = Decision(random_keep(np.random.default_rng(0), adapter.forest))
    pruned = subforest(adapter.forest, decision)
    assert near(ours(pruned, adapter.rows(X)), sums(adapter.write(decision), X), 4)


@pytest.mark.parametrize("suffix", [".cbm", ".json"])
@pytest.mark.parametrize("name", ["catboost categories", "catboost regressor, by leaf", "catboost regressor, poisson"])
def test_files_restore_the_class_and_the_predictions(name, suffix, tmp_path):
    model, X = case(name).model, case(name).X_new
    (tmp_path / f"model{suffix}").write_bytes(dump(model, suffix))
    again = load(tmp_path / f"model{suffix}")
    assert type(again) is type(model)
    assert near(sums(again, X), sums(model, X), 0 if suffix == ".cbm" else 4)
    if suffix == ".cbm":
        assert np.array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize("policy", ["SymmetricTree", "Depthwise"])
def test_trees_of_several_classes_are_dropped_anywhere_and_the_bias_stays(policy):
    X, _ = numbers()
    y = np.digitize(X[:, 0] + X[:, 1], [-0.5, 0.5])
    model = CatBoostClassifier(**{**QUICK, "iterations": 7}, grow_policy=policy).fit(X, y)
    model.set_scale_and_bias(1.0, [0.3, -0.1, 0.7])
    adapter = adapt(model)
    for dropped in ([0], [3], [1, 2, 5], [6]):
        keep = np.ones(adapter.forest.n_nodes, bool)
        for tree in dropped:
            keep[slice(*adapter.forest.tree_start[tree : tree + 2])] = False
        small = adapter.write(Decision(keep))
        assert small.tree_count_ == 7 - len(dropped)
        expected = raw_scores(adapter.forest, route(adapter.forest, adapter.rows(X)), Decision(keep))
        assert np.array_equal(sums(small, X), expected)


def test_only_whole_levels_of_symmetric_trees_can_be_cut():
    adapter = adapt(case("catboost regressor").model)
    keep = np.ones(adapter.forest.n_nodes, bool)
    keep[adapter.forest.right[0] + 1 : adapter.forest.end[0]] = False
    with pytest.raises(ValueError, match="cuts through a level"):
        adapter.write(Decision(keep))


def test_cutting_a_level_drops_the_last_condition_and_merges_leaves_by_weight():
    adapter = adapt(case("catboost regressor").model)
    old = adapter.native.trees
    new = read_cbm(adapter.write(Decision(adapter.forest.depth < 3))._serialize_model()).trees
    assert (new.size == old.size - 1).all()
    value, weight = old.leaf_value[:8, 0], old.leaf_weight[:8]
    total = weight[:4] + weight[4:]
    assert np.array_equal(new.leaf_weight[:4], total)
    mean = (value[:4] * weight[:4] + value[4:] * weight[4:]) / np.where(total > 0, total, 1)
    assert np.allclose(new.leaf_value[:4, 0][total > 0], mean[total > 0], rtol=1e-14)


@pytest.mark.parametrize("name", ["catboost regressor", "catboost regressor, by leaf", "catboost classes"])
def test_without_trees_the_bias_is_predicted(name):
    adapter, X = adapt(case(name).model), case(name).X_new
    empty = adapter.write(Decision(np.zeros(adapter.forest.n_nodes, bool)))
    assert np.array_equal(sums(empty, X), np.tile(adapter.forest.base, (len(X), 1)))


@pytest.mark.parametrize("name", ["catboost regressor", "catboost regressor, by leaf", "catboost categories"])
def test_trees_cut_to_their_roots_are_kept(name):
    adapter, X = adapt(case(name).model), case(name).X_new
    keep = np.zeros(adapter.forest.n_nodes, bool)
    keep[adapter.forest.root] = True
    stumps = adapter.write(Decision(keep))
    assert stumps.tree_count_ == adapter.forest.n_trees
    assert near(sums(stumps, X), ours(subforest(adapter.forest, Decision(keep)), adapter.rows(X)), 4)


def test_a_new_base_and_new_values_are_written():
    adapter, X = adapt(case("catboost regressor").model), case("catboost regressor").X_new
    forest = adapter.forest
    decision = Decision(np.ones(forest.n_nodes, bool), value=2 * forest.value, base=np.array([5.0]))
    assert near(sums(adapter.write(decision), X), ours(subforest(forest, decision), adapter.rows(X)), 4)
    with pytest.raises(ValueError, match="cannot store tree weights"):
        adapter.write(Decision(decision.keep, tree_weight=2 * forest.tree_weight))


def test_unused_borders_and_statistics_are_removed():
    adapter = adapt(case("catboost categories, combined").model)
    keep = np.zeros(adapter.forest.n_nodes, bool)
    keep[: adapter.forest.tree_start[1]] = True
    small = adapter.write(Decision(keep))
    assert len(small._serialize_model()) < len(adapter.model._serialize_model())
    used = adapt(small).forest.features_used
    assert (
        len(adapt(small).forest.feature_names)
        == adapter.native.conditions.n_columns + (used >= adapter.native.conditions.n_columns).sum()
    )


def test_the_pruned_model_keeps_parameters_and_metadata():
    X, y = numbers(200)
    model = CatBoostRegressor(**{**QUICK, "iterations": 40, "learning_rate": 0.5})
    model.fit(X[:100], y[:100], eval_set=(X[100:], y[100:]), early_stopping_rounds=3)
    adapter = adapt(model)
    small = adapter.write(Decision(adapter.forest.depth < 2))
    assert small.get_params() == model.get_params()
    assert small.get_all_params() == model.get_all_params()
    assert small.tree_count_ == model.tree_count_ == adapter.forest.n_trees
    for name in ("n_features_in_", "feature_names_", "learning_rate_", "best_iteration_", "best_score_"):
        assert getattr(small, name) == getattr(model, name), name
    assert np.isclose(small.feature_importances_.sum(), 100)


def test_training_rows_are_recognised_by_leaf_counts():
    c = case("catboost regressor")
    adapter = adapt(c.model)
    assert adapter.grown_on(route(adapter.forest, adapter.rows(c.X)))
    assert not adapter.grown_on(route(adapter.forest, adapter.rows(c.X[::-1] * 2)))
    assert adapt(case("catboost classifier, weights").model).samples_per_node() is None


@pytest.mark.parametrize("name", ["catboost classifier", "catboost categories", "catboost plain"])
def test_refitting_gives_the_same_model(name):
    c = case(name)
    again = adapt(c.model).refit(c.X, c.y, None)
    assert np.array_equal(sums(again, c.X), sums(c.model, c.X))


@pytest.mark.parametrize(
    ("name", "objective"),
    [
        ("catboost regressor, absolute", "absolute_error"),
        ("catboost regressor, quantile", "quantile:0.9"),
        ("catboost regressor, poisson", "poisson"),
        ("catboost regressor, tweedie", "tweedie:1.5"),
    ],
)
def test_the_training_loss_is_read(name, objective):
    assert adapt(case(name).model).objective == objective


@pytest.mark.parametrize(
    ("loss", "expected"), [("Tweedie", "tweedie:1.5"), ("Huber", "huber:1"), ("Quantile", "absolute_error")]
)
def test_a_loss_without_its_parameter_has_the_usual_one(loss, expected):
    assert loss_named({"loss_function": json.dumps({"type": loss})}).objective == expected


def test_a_loss_parameter_that_is_not_a_number_is_refused():
    description = {"type": "Tweedie", "params": {"variance_power": "much"}}
    with pytest.raises(DamagedFileError, match="variance_power of its loss is 'much'"):
        loss_named({"loss_function": json.dumps(description)})


def test_rankers_and_uncertainty_models_are_unsupervised():
    for name in ("catboost ranker", "catboost regressor, uncertainty", "catboost labels"):
        assert not adapt(case(name).model).supervised


def test_columns_must_be_those_of_training():
    adapter = adapt(case("catboost categories").model)
    with pytest.raises(ValueError, match="columns of X differ"):
        adapter.rows(case("catboost categories").X.rename(columns={"colour": "color"}))
    with pytest.raises(ValueError, match="trained on 5 features"):
        adapt(case("catboost regressor").model).rows(np.zeros((3, 4)))


def test_models_that_cannot_be_pruned_are_refused_with_a_reason():
    with pytest.raises(ValueError, match="not fitted"):
        adapt(CatBoostClassifier())
    notes = [["oak ash"], ["elm"], ["oak elm fir"], ["ash"]] * 25
    reader = CatBoostClassifier(**QUICK).fit(notes, [0, 1, 0, 1] * 25, text_features=[0])
    with pytest.raises(UnsupportedModelError, match="uses text features"):
        adapt(reader)


def without(text, *way):
    found = json.loads(text)
    place = found
    for step in way[:-1]:
        place = place[step]
    del place[way[-1]]
    return found


@pytest.mark.parametrize(
    "way",
    [("model_info",), ("model_info", "output_options"), ("features_info", "float_features", 0, "has_nans")],
)
def test_files_of_old_versions_lack_entries_that_catboost_does_not_need(way, tmp_path):
    X, y = numbers()
    found = without(dump(CatBoostRegressor(**QUICK).fit(X, y), ".json"), *way)
    file = tmp_path / "model.json"
    file.write_text(json.dumps(found))
    expected = CatBoost().load_model(str(file), format="json")
    adapter = adapt(load(file))
    assert near(ours(adapter.forest, adapter.rows(X)), sums(expected, X), 4)
    pruned = adapter.write(Decision(adapter.forest.depth < 2))
    assert near(sums(pruned, X), ours(subforest(adapter.forest, Decision(adapter.forest.depth < 2)), X), 4)


@pytest.mark.parametrize("policy", ["SymmetricTree", "Depthwise"])
@pytest.mark.parametrize("bias", [None, 0])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_old_files_have_no_bias_or_one_for_all_outputs(policy, bias, n_classes, tmp_path):
    X, y = numbers()
    labels = (y > 0).astype(int) if n_classes == 2 else np.digitize(y, [-0.3, 0.3])
    model = CatBoostClassifier(**QUICK, grow_policy=policy).fit(X, labels)
    found = without(dump(model, ".json"), "scale_and_bias")
    if bias is not None:
        found["scale_and_bias"] = [1, bias]
    file = tmp_path / "model.json"
    file.write_text(json.dumps(found))
    expected = CatBoost().load_model(str(file), format="json")
    adapter = adapt(load(file))
    assert near(ours(adapter.forest, adapter.rows(X)), sums(expected, X), 4)
    # CatBoost ignores a single bias other than 0, so that its predictions would differ from those of the file.
    found["scale_and_bias"] = [1, 0.25]
    file.write_text(json.dumps(found))
    with pytest.raises(DamagedFileError, match="bias that CatBoost reads differs"):
        load(file)


def changed(text, **facts):
    found = json.loads(text)
    for path, value in facts.items():
        *way, last = path.split("__")
        place = found
        for step in way:
            place = place[int(step) if step.isdigit() else step]
        place[int(last) if last.isdigit() else last] = value
    return json.dumps(found).encode()


@pytest.mark.parametrize(
    "facts",
    [
        {"scale_and_bias": [1]},
        {"scale_and_bias": [1, [0, 0]]},
        {"oblivious_trees": "none"},
        {"oblivious_trees__0__leaf_values": [1, 2, 3]},
        {"oblivious_trees__0__leaf_values__1": float("nan")},
        {"oblivious_trees__0__leaf_weights": [1]},
        {"oblivious_trees__0__splits__0__split_index": 999},
        {"oblivious_trees__0__splits__0__split_index": -1},
        {"oblivious_trees__0__splits__0__border": 77.0},
        {"oblivious_trees__0__splits__0__split_type": "Unheard"},
        {"features_info__float_features__0__borders": [3, 2, 1]},
        {"features_info__float_features__0__nan_value_treatment": "Never"},
        {"features_info__float_features__2__flat_feature_index": 1},
        {"features_info__float_features__2__flat_feature_index": 12},
        {"model_info__params__loss_function": {"parAms": {}, "type": "RMSE"}},
        {"features_info": []},
        {"trees": []},
    ],
)
def test_invalid_json_entries_are_refused(facts, tmp_path):
    text = dump(case("catboost regressor").model, ".json")
    (tmp_path / "model.json").write_bytes(changed(text, **facts))
    with pytest.raises(DamagedFileError, match="damaged"):
        load(tmp_path / "model.json")


@pytest.mark.parametrize("cut", [0, 3, 8, 20, 1000, -1])
@pytest.mark.parametrize("suffix", [".cbm", ".json"])
def test_truncated_files_are_refused(cut, suffix, tmp_path):
    whole = dump(case("catboost categories").model, suffix)
    (tmp_path / f"model{suffix}").write_bytes(whole[:cut])
    with pytest.raises(DamagedFileError, match="damaged"):
        load(tmp_path / f"model{suffix}")


INFO_DAMAGES = {
    "a loss without a type": (b'"loss_function":{"type"', b'"loss_function":{"typa"', "loss_function has no type"),
    "a loss that is no object": (b'"loss_function":{"type":"RMSE"', b'"loss_function":["type","RMSE"', "not JSON"),
    "a loss CatBoost does not know": (b'"loss_function":{"type":"RMSE"', b'"loss_function":{"type":"RMSF"', "RMSF"),
    "options that are no object": (b'"boosting_options":{', b'"boosting_options":\x7f', "not JSON"),
    "an option that is a number": (b'"flat_params":{}', b'"flat_params":17', "not an object"),
}


@pytest.mark.parametrize("name", list(INFO_DAMAGES))
def test_damaged_training_metadata_is_refused(name, tmp_path):
    was, now, reason = INFO_DAMAGES[name]
    blob = dump(CatBoost({**QUICK, "loss_function": "RMSE"}).fit(*numbers()), ".cbm")
    start = blob.index(b'"flat_params":{')
    stop = blob.index(b"}", start) + 1
    blob = blob[:start] + b'"flat_params":{}'.ljust(stop - start) + blob[stop:]
    (tmp_path / "model.cbm").write_bytes(blob)
    load(tmp_path / "model.cbm")
    assert was in blob
    (tmp_path / "model.cbm").write_bytes(blob.replace(was, now))
    with pytest.raises(DamagedFileError, match=f"damaged: .*{reason}"):
        load(tmp_path / "model.cbm")


@pytest.mark.parametrize("threshold", ["0", "1.5", "nan", "half"])
def test_an_invalid_probability_threshold_is_refused(threshold):
    with pytest.raises(ValueError, match="probability threshold"):
        check_info({"binclass_probability_threshold": threshold})


@pytest.mark.parametrize("n_rows", [1, 2, 3, 450])
@pytest.mark.parametrize("name", ["catboost classes", "catboost regressor, poisson", "catboost regressor, uncertainty"])
def test_catboost_transforms_raw_predictions_in_blocks_of_rows(name, n_rows, monkeypatch):
    monkeypatch.setattr("secateur.libraries.catboost.predictions._BLOCK_SIZE", 64)
    model, X = case(name).model, case(name).X_new[:n_rows]
    adapter = adapt(model)
    full = Pruned(adapter, Decision(np.ones(adapter.forest.n_nodes, bool)), 0, {}, "", {})
    assert np.array_equal(full.predict(X), model.predict(X))
    if name == "catboost classes":
        assert np.array_equal(full.predict_proba(X), model.predict_proba(X))


CLASS_DAMAGES = {
    "more places than sums": ({"class_to_label": [0, 1, 2, 3]}, "does not list 3 classes"),
    "a place beyond the names": ({"class_to_label": [0, 1, 9]}, "outside 0 to 2"),
    "a place below 0": ({"class_to_label": [-1, 1, 2]}, "outside 0 to 2"),
    "places mixed up": ({"class_to_label": [0, 2, 1]}, "not increasing"),
    "a place that is a text": ({"class_to_label": ["0", 1, 2]}, "outside 0 to 2"),
    "a name twice": ({"class_names": ["a", "b", "b"]}, "repeat a class name"),
    "more classes than names": ({"classes_count": 7}, "3 names and classes_count 7"),
    "names that are no list": ({"class_names": "abc"}, "class_names or classes_count"),
}


@pytest.mark.parametrize("name", list(CLASS_DAMAGES))
def test_class_parameters_that_do_not_match_the_trees_are_refused(name):
    change, reason = CLASS_DAMAGES[name]
    params = {"classes_count": 0, "class_names": ["a", "b", "c"], "class_to_label": [0, 1, 2]}
    assert class_positions({"class_params": json.dumps(params)}, 3) == [0, 1, 2]
    with pytest.raises(ValueError, match=reason):
        class_positions({"class_params": json.dumps({**params, **change})}, 3)


@pytest.mark.parametrize("named", [{"class_names": ["cedar", "ash", "never", "birch"]}, {"classes_count": 5}])
def test_a_class_absent_from_training_keeps_its_position(named):
    X, y = numbers()
    codes = np.digitize(y, [-0.3, 0.3])
    labels = np.array(["ash", "birch", "cedar"])[codes] if "class_names" in named else codes
    model = CatBoostClassifier(**QUICK, **named).fit(X, labels)
    adapter = adapt(model)
    full = Pruned(adapter, Decision(np.ones(adapter.forest.n_nodes, bool)), 0, {}, "", {})
    assert np.array_equal(full.predict(X), model.predict(X))
    assert np.array_equal(full.predict_proba(X), model.predict_proba(X))
    assert set(np.unique(adapter.target(labels))) == {0, 1, 2}
    assert np.array_equal(sums(full.to_model(), X), sums(model, X))


@pytest.mark.parametrize("field", [10, 11])
def test_fewer_nodes_than_splits_are_refused(field):
    blob = dump(case("catboost regressor, by depth").model, ".cbm")
    native = read_cbm(blob)
    fewer = np.arange(len(native.trees.split) - 1, dtype="<u4")
    core = with_vectors(root(native.core).table(1), {field: fewer})
    with pytest.raises(DamagedFileError, match=f"damaged: it has {len(fewer) + 1} splits"):
        read_cbm(MAGIC + struct.pack("<I", len(core)) + core + native.tail)


@pytest.mark.parametrize("policy", ["SymmetricTree", "Depthwise"])
@pytest.mark.parametrize("suffix", [".cbm", ".json"])
def test_a_sum_of_models_has_no_parameters_and_survives_files(policy, suffix, tmp_path):
    X, y = numbers()
    parts = [CatBoost({**QUICK, "grow_policy": policy, "random_seed": seed}).fit(X, y) for seed in (0, 1)]
    model = catboost.sum_models(parts, weights=[0.3, 0.7])
    expected = sums(model, X)
    for _ in range(3):
        file = tmp_path / f"sum{suffix}"
        file.write_bytes(dump(model, suffix))
        adapter = adapt(load(file))
        model = adapter.write(Decision(np.ones(adapter.forest.n_nodes, bool)))
        assert near(sums(model, X), expected, 0 if suffix == ".cbm" else 4)


def test_a_sum_in_memory_is_written_and_not_refitted():
    X, y = numbers()
    model = catboost.sum_models([CatBoostRegressor(**QUICK, random_seed=seed).fit(X, y) for seed in (0, 1)])
    adapter = adapt(model)
    written = adapter.write(Decision(np.ones(adapter.forest.n_nodes, bool)))
    assert np.array_equal(sums(written, X), sums(model, X))
    assert not adapter.can_refit


_TRY = """
import sys, numpy as np
from pathlib import Path
from secateur.libraries.catboost import load
file, whole = Path(sys.argv[1]), Path(sys.argv[2]).read_bytes()
rng = np.random.default_rng(0)
for _ in range(150):
    mutated = bytearray(whole)
    for place in rng.integers(0, len(whole) - 4, 2):
        mutated[place : place + 4] = int(rng.choice([0, 5, 65536, 2**31, 2**32 - 1])).to_bytes(4, "little")
    file.write_bytes(mutated)
    try:
        load(file)
    except ValueError:
        pass
print("survived")
"""


def test_damaged_bytes_never_crash_the_process(tmp_path):
    (tmp_path / "whole").write_bytes(dump(case("catboost categories").model, ".cbm"))
    command = [sys.executable, "-c", _TRY, str(tmp_path / "model.cbm"), str(tmp_path / "whole")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.endswith("survived\n"), done.stderr[-500:]


def test_the_newest_saved_model_is_not_older_than_the_installed_catboost():
    newest = max(_numbers(file.stem[9:]) for file in MODELS.glob("catboost-*.json") if "-" not in file.stem[9:])
    assert _numbers(catboost.__version__) <= newest


def _numbers(version):
    return tuple(map(int, version.split(".")))
