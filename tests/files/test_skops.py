"""skops files: read without trust where every part is known to be harmless, and crafted trees are refused."""

import builtins
import functools
import json
import os
import pickle
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import RandomizedSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from tests.cases import RECIPES, case

import secateur as sc
from secateur.errors import DamagedFileError, UnsupportedFileError
from secateur.files.models import load_model, save_model


class Stranger(StandardScaler):
    """A type no list knows."""


def answers(model, X):
    return model.score_samples(X) if hasattr(model, "score_samples") else model.predict(X)


@pytest.mark.parametrize("name", RECIPES)
def test_every_pruned_model_comes_back_from_skops_without_trust(name, tmp_path):
    fitted = case(name)
    path = sc.prune_path(fitted.model, fitted.X, fitted.y)
    small = path[len(path) // 2].to_model()
    again = load_model(save_model(small, tmp_path / "small.skops"))
    assert type(again) is type(fitted.model)
    np.testing.assert_array_equal(answers(again, fitted.X_new), answers(small, fitted.X_new))


@pytest.mark.parametrize("name", RECIPES)
def test_the_same_model_is_written_as_the_same_bytes(name, tmp_path):
    fitted = case(name)
    model = fitted.model
    first, second, third = (tmp_path / f"{number}.skops" for number in ("first", "second", "third"))
    save_model(model, first)
    # Its copy has all objects at other addresses, and was not written at the same time.
    save_model(pickle.loads(pickle.dumps(model)), second)
    assert first.read_bytes() == second.read_bytes()
    save_model(load_model(first), third)
    assert third.stat().st_size == pytest.approx(first.stat().st_size, rel=0.02)


def test_another_process_writes_the_same_bytes(tmp_path):
    model = case("random forest classifier").model
    save_model(model, tmp_path / "model.joblib")
    code = (
        "import sys; from secateur.files.models import *; save_model(load_model(sys.argv[1], trust=True), sys.argv[2])"
    )
    for seed in "12":
        command = [sys.executable, "-c", code, tmp_path / "model.joblib", tmp_path / f"{seed}.skops"]
        subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": seed})
        assert (tmp_path / f"{seed}.skops").read_bytes() == save_model(
            model, tmp_path / "model.skops", force=True
        ).read_bytes()


def test_objects_that_a_model_shares_are_still_shared(tree, tmp_path):
    shared = np.arange(3.0)
    model = make_pipeline(StandardScaler(), tree)
    model.steps[0][1].mean_ = model.steps[0][1].scale_ = shared
    model.steps[0][1].var_ = shared.copy()
    scaler = load_model(save_model(model, tmp_path / "model.skops"))[0]
    assert scaler.mean_ is scaler.scale_
    assert scaler.mean_ is not scaler.var_
    np.testing.assert_array_equal(scaler.var_, shared)


def test_a_dict_of_a_model_may_have_the_keys_of_the_format(tree, tmp_path):
    keys = {"__loader__": "1.npy", "__id__": 7, "file": "2.npy", "content": np.ones(2)}
    model = make_pipeline(FunctionTransformer(kw_args=keys), tree)
    again = load_model(save_model(model, tmp_path / "model.skops"))[0].kw_args
    assert {name: again[name] for name in ("__loader__", "__id__", "file")} == {k: keys[k] for k in list(keys)[:3]}
    np.testing.assert_array_equal(again["content"], np.ones(2))


def test_a_search_with_its_own_folds_and_score_needs_no_trust(tmp_path):
    X, y = case("random forest classifier").X, case("random forest classifier").y
    search = RandomizedSearchCV(
        RandomForestClassifier(5, random_state=0),
        {"max_depth": [2, 3]},
        n_iter=2,
        cv=StratifiedKFold(2),
        scoring="accuracy",
        random_state=0,
    ).fit(X, y)
    again = load_model(save_model(search, tmp_path / "search.skops"))
    np.testing.assert_array_equal(again.predict(X), search.predict(X))


def test_an_unknown_type_in_skops_is_named_and_needs_trust(tree, tmp_path):
    model = make_pipeline(Stranger(), tree)
    model[0].fit(np.zeros((2, 3)))
    file = save_model(model, tmp_path / "model.skops")
    with pytest.raises(UnsupportedFileError, match=r"not known to be harmless: .*Stranger.*--trust"):
        load_model(file)
    assert isinstance(load_model(file, trust=True)[0], Stranger)


def test_a_stored_call_of_anything_but_check_array_is_refused(tree, tmp_path):
    model = make_pipeline(FunctionTransformer(functools.partial(np.add, 1)), tree)
    file = save_model(model, tmp_path / "model.skops")
    with pytest.raises(ValueError, match="contains a call of"):
        load_model(file)
    assert load_model(file, trust=True).predict(np.zeros((1, 3))).shape == (1,)


def _with_nodes(tree, **fields):
    """Return a Tree in which node 0 is not what a Tree can be."""
    state = tree.__getstate__()
    nodes = state["nodes"].copy()
    for name, value in fields.items():
        nodes[name][0] = value
    new = type(tree)(tree.n_features, np.asarray(tree.n_classes, np.intp), tree.n_outputs)
    new.__setstate__({**state, "nodes": nodes})
    return new


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"left_child": 10**6}, "child index is outside"),
        ({"right_child": -5}, "child index is outside"),
        ({"left_child": 0}, "child index is outside"),
        ({"feature": 3}, "feature that does not exist"),
        ({"feature": -2}, "feature that does not exist"),
    ],
)
@pytest.mark.parametrize("trust", [False, True])
def test_a_tree_with_invalid_indices_is_refused(fields, found, trust, tree, tmp_path):
    tree.tree_ = _with_nodes(tree.tree_, **fields)
    file = save_model(tree, tmp_path / "crafted.skops")
    with pytest.raises(DamagedFileError, match=found):
        load_model(file, trust=trust)


def test_a_tree_for_more_features_than_its_model_checks_is_refused(tree, tmp_path):
    tree.n_features_in_ = 1
    file = save_model(tree, tmp_path / "crafted.skops")
    with pytest.raises(ValueError, match="features or classes of a tree differ"):
        load_model(file)


def test_boosting_stages_that_do_not_match_are_refused(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 3))
    model = GradientBoostingRegressor(n_estimators=4).fit(X, X[:, 0])
    whole = model.estimators_
    model.estimators_ = whole.reshape(2, 2)
    with pytest.raises(ValueError, match="trees per stage does not match"):
        load_model(save_model(model, tmp_path / "stages.skops"))
    model.estimators_, model.n_features_in_ = whole, 2
    with pytest.raises(ValueError, match="number of features of a tree differs"):
        load_model(save_model(model, tmp_path / "features.skops"))


@pytest.mark.parametrize(
    ("field", "value", "found"),
    [
        ("left", 10**6, "child index is outside"),
        ("feature_idx", 99, "feature that does not exist"),
        ("bitset_idx", 50, "no list of categories"),
        ("is_categorical", 1, "numeric feature"),
    ],
)
def test_invalid_hist_boosting_trees_are_refused(field, value, found, tmp_path):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 6, 300), rng.normal(size=(300, 2))]).astype(float)
    y = (X[:, 0] % 2 == 0) ^ (X[:, 1] > 0.5)
    model = HistGradientBoostingClassifier(max_iter=3, categorical_features=[0], random_state=0).fit(X, y)
    nodes = model._predictors[0][0].nodes
    splits = np.flatnonzero((nodes["is_leaf"] == 0) & (nodes["is_categorical"] == (field == "bitset_idx")))
    nodes[field][splits[0]] = value
    with pytest.raises(DamagedFileError, match=found):
        load_model(save_model(model, tmp_path / "crafted.skops"))


def test_without_skops_the_extra_is_named(tree, tmp_path, monkeypatch):
    file = save_model(tree, tmp_path / "tree.skops")
    original = builtins.__import__

    def without_skops(name, *args, **kwargs):
        if name.startswith("skops"):
            raise ImportError(name)
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_skops)
    with pytest.raises(ImportError, match=r"secateur\[skops\]"):
        load_model(file)
    with pytest.raises(ImportError, match=r"secateur\[skops\]"):
        save_model(tree, tmp_path / "other.skops")
    assert [file.name for file in tmp_path.iterdir()] == ["tree.skops"]


def test_a_self_referencing_model_can_be_saved_as_joblib_but_not_as_skops(tree, tmp_path):
    tree.itself = tree
    with pytest.raises(ValueError, match=r"cannot be written as \.skops.*\.joblib"):
        save_model(tree, tmp_path / "m.skops")
    save_model(tree, tmp_path / "m.joblib")
    assert [file.name for file in tmp_path.iterdir()] == ["m.joblib"]


def test_skops_without_a_schema_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "odd.skops", "w") as archive:
        archive.writestr("readme", "hello")
    with pytest.raises(DamagedFileError, match="damaged"):
        load_model(tmp_path / "odd.skops")


def change_schema(file, change):
    """Write a .skops file again with its schema changed."""
    with zipfile.ZipFile(file) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(entries["schema.json"])
    change(schema)
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in {**entries, "schema.json": json.dumps(schema)}.items():
            archive.writestr(name, content)


def odd(number):
    """Return a number as a schema has it, of which no other part of the file is a copy."""
    return {"content": number, "__id__": -7}


def tree_of(schema):
    return schema["content"]["content"]["tree_"]


@pytest.mark.parametrize("count", ["node_count", "max_depth"])
@pytest.mark.parametrize("number", ["1000000", "-1", '"x"'])
def test_a_tree_with_other_counts_than_nodes_is_never_built(tree, tmp_path, count, number):
    if (count, number) == ("max_depth", "1000000"):
        return  # room for more than there is does no harm
    file = save_model(tree, tmp_path / "crafted.skops")
    change_schema(file, lambda schema: tree_of(schema)["content"]["content"][count].update(odd(number)))
    with pytest.raises(DamagedFileError, match="damaged"):
        load_model(file)


@pytest.mark.parametrize("number", ["100000000", "0", "null"])
def test_a_tree_with_other_outputs_than_classes_is_never_built(tree, tmp_path, number):
    file = save_model(tree, tmp_path / "crafted.skops")
    change_schema(file, lambda schema: tree_of(schema)["__reduce__"]["args"]["content"][2].update(odd(number)))
    with pytest.raises(DamagedFileError, match="damaged"):
        load_model(file)


def test_a_tree_deeper_than_its_max_depth_is_refused(tree, tmp_path):
    file = save_model(tree, tmp_path / "crafted.skops")
    change_schema(file, lambda schema: tree_of(schema)["content"]["content"]["max_depth"].update(odd("0")))
    with pytest.raises(ValueError, match="deeper than its max_depth"):
        load_model(file)


def test_a_forest_with_other_classes_than_its_trees_is_refused(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = RandomForestClassifier(2, random_state=0).fit(X, X[:, 0].round())
    model.estimators_[1].n_classes_ = 1
    with pytest.raises(DamagedFileError, match="damaged"):
        load_model(save_model(model, tmp_path / "crafted.skops"))


def test_highly_compressible_models_are_written_uncompressed(tree, tmp_path, monkeypatch):
    monkeypatch.setattr("secateur.files.size_limits.MAX_BYTES", 0)
    monkeypatch.setattr("secateur.files.size_limits.MAX_RATIO", 2)
    assert load_model(save_model(tree, tmp_path / "tree.skops")).get_depth() == tree.get_depth()


def test_a_small_file_that_unpacks_to_a_huge_one_is_not_unpacked(tree, tmp_path, monkeypatch):
    monkeypatch.setattr("secateur.files.size_limits.MAX_BYTES", 2**20)
    file = save_model(tree, tmp_path / "bomb.skops")
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros.npy", bytes(2**24))
    with pytest.raises(ValueError, match="would unpack to"):
        load_model(file)


def test_hist_boosting_with_a_float16_baseline_is_refused(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = HistGradientBoostingClassifier(max_iter=2, random_state=0).fit(X, X[:, 0] > 0)
    model._baseline_prediction = model._baseline_prediction.astype(np.float16)  # scikit-learn would add in these
    save_model(model, tmp_path / "model.skops")
    with pytest.raises(ValueError, match="its baseline prediction is not float64"):
        load_model(tmp_path / "model.skops")
