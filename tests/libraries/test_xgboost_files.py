"""Test XGBoost files of all versions: reading, writing again, and refusing damaged ones."""

import json
from pathlib import Path

import numpy as np
import pytest
import xgboost as xgb
from tests.cases import case
from tests.cases.xgboost import RECIPES
from tests.libraries.boosters import booster_of, raw_of, saved_json
from tests.strategies import random_keep

from secateur import Decision
from secateur.errors import DamagedFileError, UnsupportedFileError
from secateur.files.models import load_model
from secateur.libraries import adapt
from secateur.libraries.xgboost import dump, load
from secateur.libraries.xgboost.ubjson import decode, encode

MODELS = Path(__file__).parent.parent / "models"


FILES = [file for file in MODELS.glob("xgboost-?.?.?.json") if file.stem[8:] <= xgb.__version__]  # not newer ones
EXPECTED = {name: expected for file in FILES for name, expected in json.loads(file.read_text()).items()}


stored = pytest.mark.parametrize("name", sorted(EXPECTED))


@stored
def test_stored_models_of_all_versions_predict_the_same(name):
    expected = EXPECTED[name]
    adapter = adapt(load(MODELS / name))
    X = np.array(expected["rows"], float).astype(np.float32)
    raw = raw_of(adapter, X)
    assert np.array_equal(raw, np.array(expected["raw"], np.float32).reshape(raw.shape))
    assert np.array_equal(adapter.predict(raw), np.array(expected["predict"], np.float32))


@stored
def test_stored_models_can_be_pruned_and_written(name, tmp_path):
    expected = EXPECTED[name]
    adapter = adapt(load(MODELS / name))
    X = np.array(expected["rows"], float).astype(np.float32)
    decision = Decision(random_keep(np.random.default_rng(0), adapter.forest))
    for suffix in (".json", ".ubj"):
        file = tmp_path / f"pruned{suffix}"
        file.write_bytes(dump(adapter.write(decision), suffix))
        matrix = xgb.DMatrix(X, feature_types=expected["feature_types"], enable_categorical=True)
        found = load(file).predict(matrix, output_margin=True, validate_features=False)
        assert np.array_equal(found.reshape(len(X), -1), raw_of(adapter, X, decision))


@pytest.mark.parametrize(("name", "suffix"), [(n, (".json", ".ubj")[i % 2]) for i, n in enumerate(RECIPES)])
def test_a_file_gives_the_same_booster(name, suffix, tmp_path):
    file = tmp_path / f"model{suffix}"
    file.write_bytes(dump(case(name).model, suffix))
    assert load(file).save_raw("ubj") == booster_of(case(name).model).save_raw("ubj")


def test_ubjson_is_written_as_xgboost_writes_it():
    held = booster_of(case("xgboost_categories").model).__getstate__()["handle"]
    assert encode(decode(held)) == held


def at(saved, *path):
    for key in path:
        saved = saved[key]
    return saved


def spoil_a_threshold(trees):
    tree, v = next(
        (tree, v)
        for tree in trees
        for v, left in enumerate(tree["left_children"])
        if left != -1 and tree["split_type"][v] == 0
    )
    tree["split_conditions"][v] = float("nan")


TREES = ("learner", "gradient_booster", "model", "trees")


_DAMAGE = {
    "no learner": lambda s: s.pop("learner"),
    "no version": lambda s: s.pop("version"),
    "child out of range": lambda s: at(s, *TREES, 0, "left_children").__setitem__(0, 99),
    "negative child": lambda s: at(s, *TREES, 0, "left_children").__setitem__(0, -7),
    "a loop": lambda s: at(s, *TREES, 0, "right_children").__setitem__(0, 0),
    "one child": lambda s: at(s, *TREES, 0, "left_children").__setitem__(0, -1),
    "wrong parent": lambda s: at(s, *TREES, 0, "parents").__setitem__(1, 5),
    "feature out of range": lambda s: at(s, *TREES, 0, "split_indices").__setitem__(0, 77),
    "short array": lambda s: at(s, *TREES, 0, "default_left").pop(),
    "text among numbers": lambda s: at(s, *TREES, 0, "split_conditions").__setitem__(0, "x"),
    "NaN threshold": lambda s: spoil_a_threshold(at(s, *TREES)),
    "infinite leaf": lambda s: at(s, *TREES, 0, "split_conditions").__setitem__(-1, float("inf")),
    "fractional child": lambda s: at(s, *TREES, 0, "left_children").__setitem__(0, 1.5),
    "empty tree": lambda s: at(s, *TREES, 0).update({k: [] for k in ("left_children", "right_children")}),
    "tree missing": lambda s: at(s, *TREES).pop(),
    "trees swapped": lambda s: at(s, *TREES).reverse(),
    "no list of categories": lambda s: [tree["categories_nodes"].clear() for tree in at(s, *TREES)],
    "category out of range": lambda s: [tree.update(categories=[2**30] * 9) for tree in at(s, *TREES)],
    "leaf by category": lambda s: at(s, *TREES, 0, "split_type").__setitem__(-1, 1),
    "output out of range": lambda s: at(s, *TREES[:-1], "tree_info").__setitem__(0, 9),
    "rounds out of order": lambda s: at(s, *TREES[:-1], "iteration_indptr").__setitem__(1, 1000),
    "names of features": lambda s: at(s, "learner", "feature_names").append("more"),
    "base": lambda s: at(s, "learner", "learner_model_param").update(base_score="[1,2,3,4,5]"),
    "features": lambda s: at(s, "learner", "learner_model_param").update(num_feature="-1"),
    "objective": lambda s: at(s, "learner", "objective").update(name="reg:nothing"),
}


@pytest.mark.parametrize("damage", list(_DAMAGE))
def test_a_damaged_file_is_refused(damage, tmp_path):
    saved = saved_json(case("xgboost_codes").model)
    _DAMAGE[damage](saved)
    (tmp_path / "model.json").write_text(json.dumps(saved))
    with pytest.raises(ValueError, match=r"secateur needs|upgrade XGBoost"):
        load(tmp_path / "model.json")


@pytest.mark.parametrize("suffix", [".json", ".ubj"])
def test_a_truncated_file_is_refused(suffix, tmp_path):
    data = dump(case("xgboost_codes").model, suffix)
    for length in [0, 1, 2, 10, len(data) // 3, len(data) // 2, len(data) - 1]:
        (tmp_path / f"model{suffix}").write_bytes(data[:length])
        with pytest.raises((DamagedFileError, UnsupportedFileError), match=r"cannot be read\. |neither an XGBoost"):
            load_model(tmp_path / f"model{suffix}")


def test_random_ubjson_is_read_or_refused():
    data = bytearray(dump(case("xgboost_codes").model, ".ubj"))
    rng = np.random.default_rng(0)
    for _ in range(300):
        broken = data.copy()
        broken[rng.integers(len(data))] = rng.integers(256)
        try:
            decode(broken)
        except ValueError:
            continue
    with pytest.raises(ValueError, match="nested"):
        decode(b"[" * 1000)
    with pytest.raises(ValueError, match="left"):
        decode(b"[$d#L\x7f" + b"\xff" * 7)


@pytest.mark.parametrize(
    ("place", "found", "reason"),
    [
        ("feature_types", ["float", "sound", "float"], "type 'sound', not one of c, float"),
        ("feature_names", ["a", "b[1]", "c"], "which XGBoost does not allow"),
        ("feature_names", ["a", "b", "\ud800"], "feature_names contains bytes that are not UTF-8"),
        ("attributes", {"note": "\ud800"}, "not UTF-8"),
        ("learner_model_param", {"num_feature": "9" * 5000}, "has 5000 digits"),
    ],
)
def test_entries_that_xgboost_cannot_save_are_refused_with_a_reason(place, found, reason, tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 3))
    model = xgb.train({"max_depth": 2}, xgb.DMatrix(X, X[:, 0], feature_names=["a", "b", "c"]), 2)
    model.save_model(tmp_path / "sound.json")
    saved = json.loads((tmp_path / "sound.json").read_text())
    whole = saved["learner"][place]
    saved["learner"][place] = {**whole, **found} if isinstance(found, dict) else found
    (tmp_path / "damaged.json").write_text(json.dumps(saved))
    with pytest.raises(ValueError, match=reason) as caught:
        load(tmp_path / "damaged.json")
    assert not isinstance(caught.value, UnicodeError)
