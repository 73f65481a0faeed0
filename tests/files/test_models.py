"""Model files: written models are read back, files that can run code need trust, and damaged ones are refused."""

import json
import pickle
import re
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import secateur as sc
from secateur.errors import DamagedFileError, UnsupportedFileError
from secateur.files.archive import same_forest
from secateur.files.models import check_model_name, load_model, save_model, suffixes_for
from secateur.forest.routing import raw_scores, route
from secateur.libraries import adapt

SUFFIXES = [".skops", ".joblib", ".pkl", ".pickle"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_model_comes_back_as_it_was(suffix, tree, tmp_path):
    file = save_model(tree, tmp_path / f"tree{suffix}")
    again = load_model(file, trust=suffix != ".skops")
    np.testing.assert_array_equal(again.tree_.value, tree.tree_.value)
    np.testing.assert_array_equal(again.tree_.threshold, tree.tree_.threshold)


@pytest.mark.parametrize("suffix", [".joblib", ".pkl", ".pickle"])
def test_a_file_that_can_run_code_is_not_opened_without_trust(suffix, tmp_path):
    class Bomb:
        def __reduce__(self):
            return (open, (str(tmp_path / "boom"), "w"))

    file = tmp_path / f"bomb{suffix}"
    (joblib.dump if suffix == ".joblib" else lambda obj, f: f.write_bytes(pickle.dumps(obj)))(Bomb(), file)
    with pytest.raises(UnsupportedFileError, match=r"can run any code.*trust=True \(--trust\).*\.skops"):
        load_model(file)
    assert not (tmp_path / "boom").exists()


def test_existing_file_is_not_overwritten_unless_forced(tree, tmp_path):
    file = tmp_path / "tree.skops"
    file.write_bytes(b"precious")
    with pytest.raises(FileExistsError, match="--force"):
        save_model(tree, file)
    assert file.read_bytes() == b"precious"
    save_model(tree, file, force=True)
    assert load_model(file).get_n_leaves() == tree.get_n_leaves()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_model_that_cannot_be_written_leaves_nothing_behind(suffix, tmp_path):
    with pytest.raises(ValueError, match=f"cannot be written as {suffix}.*another suffix"):
        save_model((row for row in ()), tmp_path / f"m{suffix}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["model", "model.h5", "model.skops.bak"])
def test_unknown_suffix_names_the_known_ones(name, tree, tmp_path):
    for attempt in (lambda: save_model(tree, tmp_path / name), lambda: load_model(tmp_path / name)):
        with pytest.raises(UnsupportedFileError, match=r"\.skops, \.joblib, \.pkl, \.pickle"):
            attempt()
    assert not list(tmp_path.iterdir())


def test_suffix_may_be_in_capitals(tree, tmp_path):
    file = save_model(tree, tmp_path / "TREE.SKOPS")
    assert load_model(file).get_n_leaves() == tree.get_n_leaves()


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file .*gone\.skops"):
        load_model(tmp_path / "gone.skops")
    (tmp_path / "folder.skops").mkdir()
    with pytest.raises(FileNotFoundError, match="no file"):
        load_model(tmp_path / "folder.skops")


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("harm", ["empty", "text", "cut"])
def test_a_damaged_file_is_refused(suffix, harm, tree, tmp_path):
    file = save_model(tree, tmp_path / f"tree{suffix}")
    whole = file.read_bytes()
    file.write_bytes({"empty": b"", "text": b"hello", "cut": whole[: len(whole) // 2]}[harm])
    with pytest.raises(DamagedFileError, match=r"damaged.*Save the model again"):
        load_model(file, trust=True)


def test_as_forest_reads_a_file(tree, tmp_path):
    file = save_model(tree, tmp_path / "tree.skops")
    assert sc.as_forest(file).n_nodes == tree.tree_.node_count
    assert sc.as_forest(str(file)).n_nodes == tree.tree_.node_count


def booster(library):
    """Return a small model of a library, and rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    if library == "xgboost":
        xgboost = pytest.importorskip("xgboost")
        model = xgboost.train({"max_depth": 3, "objective": "binary:logistic"}, xgboost.DMatrix(X, y), 4)
    elif library == "lightgbm":
        lightgbm = pytest.importorskip("lightgbm")
        model = lightgbm.train({"verbose": -1, "objective": "binary"}, lightgbm.Dataset(X, y), 4)
    else:
        catboost = pytest.importorskip("catboost")
        model = catboost.CatBoostClassifier(iterations=4, depth=3, verbose=False, allow_writing_files=False).fit(X, y)
    return model, X


OWN = {"xgboost": [".json", ".ubj"], "lightgbm": [".txt"], "catboost": [".json", ".cbm"]}


@pytest.mark.parametrize(("library", "suffix"), [(library, suffix) for library in OWN for suffix in OWN[library]])
def test_a_model_comes_back_from_its_library_s_own_file(library, suffix, tmp_path):
    model, X = booster(library)
    again = load_model(save_model(model, tmp_path / f"model{suffix}"))
    adapter, other = adapt(model), adapt(again)
    assert other.library == library
    raw, found = (raw_scores(a.forest, route(a.forest, a.rows(X))) for a in (adapter, other))
    np.testing.assert_allclose(found, raw, rtol=0 if library != "catboost" else 1e-15)


@pytest.mark.parametrize("library", OWN)
def test_a_file_for_another_library_s_models_is_refused_and_fitting_ones_are_named(library, tmp_path):
    model, _ = booster(library)
    for suffix in sorted({suffix for suffixes in OWN.values() for suffix in suffixes} - set(OWN[library])):
        for attempt in (save_model, lambda m, f: check_model_name(f, m)):
            with pytest.raises(ValueError, match=f"for models of .*Use one of {re.escape(OWN[library][0])}"):
                attempt(model, tmp_path / f"model{suffix}")
    assert suffixes_for(model)[: len(OWN[library])] == OWN[library]
    assert not list(tmp_path.iterdir())


def test_scikit_learn_models_are_not_written_in_other_libraries_files(tree, tmp_path):
    for suffix in (".json", ".ubj", ".txt", ".cbm"):
        with pytest.raises(ValueError, match=r"for models of .*DecisionTreeClassifier.*\.skops, \.joblib"):
            save_model(tree, tmp_path / f"model{suffix}")
    with pytest.raises(ValueError, match="no suffix"):
        check_model_name(tmp_path / "folder", tree)
    check_model_name(tmp_path / "folder")  # a folder, if the model turns out to be Spark's


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"a": 1}', '{"learner": ', '{"oblivious_trees": 3}', '{"version": [3, 0, 0]}', "\x00"],
)
def test_json_without_a_model_is_refused(text, tmp_path):
    (tmp_path / "m.json").write_text(text)
    with pytest.raises(ValueError, match=r"m\.json"):
        load_model(tmp_path / "m.json")


@pytest.mark.parametrize("suffix", [".ubj", ".txt", ".cbm"])
@pytest.mark.parametrize("content", [b"", b"hello", bytes(100)])
def test_native_files_without_a_model_are_refused(suffix, content, tmp_path):
    (tmp_path / f"m{suffix}").write_bytes(content)
    with pytest.raises(ValueError, match=rf"m\{suffix}"):
        load_model(tmp_path / f"m{suffix}")


def test_the_order_in_a_json_file_does_not_matter(tmp_path):
    model, _ = booster("xgboost")
    file = save_model(model, tmp_path / "m.json")
    saved = json.loads(file.read_text())
    file.write_text(json.dumps({"note": 1, **dict(reversed(saved.items()))}))
    assert same_forest(adapt(load_model(file)).forest, adapt(model).forest)


@pytest.mark.parametrize(
    ("library", "extra", "name"),
    [
        ("xgboost", "xgboost", "m.ubj"),
        ("xgboost", "xgboost", "m.json"),
        ("lightgbm", "lightgbm", "m.txt"),
        ("catboost", "catboost", "m.cbm"),
    ],
)
def test_without_a_library_the_extra_is_named(library, extra, name, tmp_path, monkeypatch):
    def without(module):
        raise ModuleNotFoundError(f"No module named '{library}'")

    (tmp_path / name).write_text('{"learner": {}}')
    monkeypatch.setattr("secateur.files.formats.import_module", without)
    with pytest.raises(ImportError, match=rf"{library}.*secateur\[{extra}\]"):
        load_model(tmp_path / name)


def test_any_model_can_be_a_forest_in_a_file(tree, tmp_path):
    again = load_model(save_model(tree, tmp_path / "tree.secateur"))
    assert same_forest(again, adapt(tree).forest)
    smaller = load_model(save_model(again, tmp_path / "again.secateur"))
    assert same_forest(smaller, again)


def test_onnx_is_written_and_not_read(tree, tmp_path):
    pytest.importorskip("onnx")
    file = save_model(tree, tmp_path / "tree.onnx")
    assert file.stat().st_size > 500
    with pytest.raises(ValueError, match="writes but does not read"):
        load_model(file)


def test_models_that_onnx_cannot_hold_are_refused_before_long_work(tmp_path):
    pytest.importorskip("onnx")
    X = np.random.default_rng(0).normal(size=(40, 3))
    model = make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=2)).fit(X, X[:, 0] > 0)
    for attempt in (save_model, lambda m, f: check_model_name(f, m)):
        with pytest.raises(ValueError, match=r"This Pipeline cannot be written as \.onnx: it transforms its columns"):
            attempt(model, tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", [".skops", ".pkl", ".secateur", ".onnx"])
def test_a_pruned_model_is_saved_in_the_format_of_the_suffix(suffix, tree, tmp_path):
    X = np.random.default_rng(1).normal(size=(80, 3))
    small = sc.prune_path(tree, X, X[:, 0] > 0)[1]
    file = small.save(tmp_path / f"small{suffix}")
    if suffix != ".onnx":
        again = load_model(file, trust=True)
        assert adapt(again).forest.n_nodes == small.forest.n_nodes


def test_a_pruned_booster_is_saved_in_its_native_format(tmp_path):
    model, X = booster("xgboost")
    path = sc.prune_path(model, X, (X[:, 0] > 0).astype(int), solver="weakest_link")
    small = path[len(path) // 2]
    again = load_model(small.save(tmp_path / "small.ubj"))
    assert type(again) is type(model)
    assert adapt(again).forest.n_nodes == small.forest.n_nodes
    reloaded = sc.Path.load(path.save(tmp_path / "p.npz"), load_model(save_model(model, tmp_path / "m.ubj")))
    assert len(reloaded) == len(path)


SPARK = sorted((Path(__file__).parents[1] / "models").glob("spark-*-*"))


def test_spark_models_are_folders_of_any_name(tmp_path, tree):
    pytest.importorskip("pyarrow")
    model = load_model(SPARK[0])
    for name in ("small", "small-4.3.0"):
        again = load_model(save_model(model, tmp_path / name))
        assert same_forest(adapt(again).forest, adapt(model).forest)
    with pytest.raises(FileExistsError, match="--force"):
        save_model(model, tmp_path / "small")
    save_model(model, tmp_path / "small", force=True)
    with pytest.raises(ValueError, match=r"for models of xgboost.*\.secateur, or a folder"):
        save_model(model, tmp_path / "m.ubj")
    assert sc.as_forest(save_model(model, tmp_path / "m.secateur")).n_nodes == adapt(model).forest.n_nodes


def test_a_folder_without_a_spark_model_is_refused(tmp_path):
    pytest.importorskip("pyarrow")
    with pytest.raises(ValueError, match="0 tree models of Spark"):
        load_model(tmp_path)
