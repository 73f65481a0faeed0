"""Test LightGBM beyond the contracts: files, damaged text, dropped trees and attributes of pruned models."""

import json
import pickle
import re
from pathlib import Path

import lightgbm
import numpy as np
import pytest
from tests.cases import case
from tests.strategies import everything, random_keep

from secateur import Decision
from secateur.errors import UnsupportedModelError
from secateur.libraries import adapt
from secateur.libraries.lightgbm import dump, load
from secateur.path import Pruned

MODELS = Path(__file__).parents[1] / "models"
FILES = sorted(MODELS.glob("lightgbm-*.txt"))


def only_trees(forest, trees):
    """Return a decision that keeps some trees whole."""
    keep = np.repeat(np.isin(np.arange(forest.n_trees), trees), np.diff(forest.tree_start))
    return Decision(keep)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_files_of_every_version_predict_what_they_did_and_can_be_pruned(file, tmp_path):
    _, version, kind = file.stem.split("-")
    stored = json.loads((MODELS / f"lightgbm-{version}.json").read_text())
    rows = np.array([[float(x) for x in row] for row in stored["rows"]])
    adapter = adapt(load(file))
    assert np.array_equal(adapter.model.predict(rows), np.array(stored["predict"][kind]))
    assert np.array_equal(
        Pruned(adapter, everything(adapter.forest), 0, {}, "", {}).predict(rows), stored["predict"][kind]
    )
    decision = Decision(random_keep(np.random.default_rng(0), adapter.forest))
    small = adapter.write(decision)
    (tmp_path / "small.txt").write_bytes(dump(small, ".txt"))
    assert np.array_equal(load(tmp_path / "small.txt").predict(rows), small.predict(rows))


def test_there_are_files_of_the_oldest_and_the_newest_version():
    assert {file.stem.split("-")[1] for file in FILES} >= {"3.3.5", "4.7.0"}


def text_of(name):
    return case(f"lightgbm {name}").model.model_to_string()


def loaded(text, tmp_path):
    (tmp_path / "model.txt").write_text(text)
    return load(tmp_path / "model.txt")


DAMAGES = {
    "child out of range": (r"left_child=\S+", "left_child=77"),
    "leaf out of range": (r"right_child=\S+", "right_child=-77"),
    "a loop": (r"left_child=\S+", "left_child=0"),
    "feature out of range": (r"split_feature=\S+", "split_feature=6"),
    "negative feature": (r"split_feature=\S+", "split_feature=-1"),
    "threshold no number": (r"threshold=\S+", "threshold=abc"),
    "threshold NaN": (r"\nthreshold=\S+", "\nthreshold=nan"),
    "too few thresholds": (r"\nthreshold=\S+ ", "\nthreshold="),
    "too many leaf values": (r"leaf_value=", "leaf_value=1 "),
    "two spaces": (r"leaf_value=(\S+) ", r"leaf_value=\1  "),
    "a tab": (r"leaf_value=(\S+) ", "leaf_value=\\1\t"),
    "leaf value infinite": (r"leaf_value=\S+", "leaf_value=inf"),
    "more leaves than there are": (r"num_leaves=7", "num_leaves=700000000"),
    "no leaves": (r"num_leaves=7", "num_leaves=0"),
    "more sets than there are": (r"num_cat=\d+", "num_cat=400000000"),
    "bounds that fall": (r"cat_boundaries=0 ", "cat_boundaries=9 "),
    "a word too large": (r"cat_threshold=\S+", "cat_threshold=99999999999"),
    "a word missing": (r"cat_threshold=\S+ ", "cat_threshold="),
    "unknown decision": (r"decision_type=\S+", "decision_type=12"),
    "classes": (r"num_class=1", "num_class=3"),
    "trees per iteration": (r"num_tree_per_iteration=1", "num_tree_per_iteration=2"),
    "no trees per iteration": (r"num_tree_per_iteration=1", "num_tree_per_iteration=0"),
    "features": (r"max_feature_idx=5", "max_feature_idx=500000"),
    "objective": (r"objective=regression", "objective=multiclass num_class:9"),
    "objective unknown": (r"objective=regression", "objective=resignation"),
    "objective options": (r"objective=regression", "objective=binary sigmoid:-1"),
    "version": (r"version=v4", "version=v9"),
    "a tree missing": (r"Tree=1\n(.*\n)+?\n\n(?=Tree=2)", ""),
    "trees swapped": (r"Tree=1\n", "Tree=2\n"),
    "a line twice": (r"\nnum_cat=", "\nnum_cat=0\nnum_cat="),
    "an unknown line": (r"\nnum_cat=", "\nleaf_colour=red\nnum_cat="),
    "no line of leaf values": (r"\nleaf_value=.*", ""),
    "parameters": (r"\[num_leaves: 7\]", "num_leaves 7"),
    "categories": (r"pandas_categorical:null", "pandas_categorical:[[1"),
    "categories of another kind": (r"pandas_categorical:null", "pandas_categorical:7"),
    "categories misspelt": (r"pandas_categorical:null", "pandas_categorial:null"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_text_is_refused_before_the_library_sees_it(damage, tmp_path):
    text, n = re.subn(*DAMAGES[damage], text_of("booster, categories"), count=1)
    assert n == 1
    with pytest.raises(ValueError, match=r"(needs|supports|reads|must) .*\. \w"):
        loaded(text, tmp_path)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9])
def test_truncated_text_is_refused(share, tmp_path):
    text = text_of("booster, categories")
    with pytest.raises(ValueError, match=r"end of trees|parameters|first line"):
        loaded(text[: int(share * len(text))], tmp_path)


def test_a_binary_file_is_refused(tmp_path):
    (tmp_path / "model.txt").write_bytes(b"tree\n\xff\xfe")
    with pytest.raises(ValueError, match="is not a text file"):
        load(tmp_path / "model.txt")


def test_one_changed_byte_gives_an_error_or_the_model_in_the_file(tmp_path):
    c = case("lightgbm booster, categories")
    text, rng = c.model.model_to_string(), np.random.default_rng(0)
    end = text.index("feature_importances:")
    refused = 0
    for _ in range(150):
        place = int(rng.integers(end))
        changed = text[:place] + chr(int(rng.integers(10, 127))) + text[place + 1 :]
        try:
            adapter = adapt(loaded(changed, tmp_path))
        except ValueError:
            refused += 1
            continue
        ours = Pruned(adapter, everything(adapter.forest), 0, {}, "", {}).raw(c.X_new)[:, 0]
        assert np.array_equal(ours, adapter.model.predict(c.X_new, raw_score=True))
    assert 20 < refused < 150


def test_wrong_tree_sizes_are_ignored(tmp_path):
    c = case("lightgbm booster, categories")
    text = re.sub(r"tree_sizes=.*", "tree_sizes=1 2 3 4 5", c.model.model_to_string())
    assert np.array_equal(loaded(text, tmp_path).predict(c.X_new), c.model.predict(c.X_new))


def test_windows_line_ends_are_read(tmp_path):
    c = case("lightgbm booster, categories")
    (tmp_path / "model.txt").write_bytes(c.model.model_to_string().replace("\n", "\r\n").encode())
    assert np.array_equal(load(tmp_path / "model.txt").predict(c.X_new), c.model.predict(c.X_new))


def test_tree_sizes_are_those_of_the_pruned_trees():
    c = case("lightgbm booster, categories")
    forest = adapt(c.model).forest
    small = adapt(c.model).write(Decision(random_keep(np.random.default_rng(3), forest)))
    text = small.model_to_string()
    sizes = re.search(r"tree_sizes=(.*)", text)[1]
    blocks = re.split(r"(?=Tree=\d)", text.partition("end of trees")[0])[1:]
    assert [int(size) for size in sizes.split()] == [len(block) for block in blocks]


def test_dropped_trees_of_kept_iterations_become_zero_leaves():
    c = case("lightgbm booster, multiclass")
    adapter = adapt(c.model)
    decision = only_trees(adapter.forest, [0, 4])  # class 0 of iteration 0, class 1 of iteration 1; iteration 2 goes
    small = adapter.write(decision)
    assert small.num_trees() == 6
    ours = Pruned(adapter, decision, 0, {}, "", {})
    assert np.array_equal(small.predict(c.X_new), ours.predict(c.X_new))
    assert np.array_equal(small.predict(c.X_new, raw_score=True), ours.raw(c.X_new))


@pytest.mark.parametrize("name", ["booster, multiclass", "classifier", "booster, categories"])
def test_without_any_tree_the_model_still_predicts(name):
    c = case(f"lightgbm {name}")
    adapter = adapt(c.model)
    decision = Decision(np.zeros(adapter.forest.n_nodes, bool))
    small = pickle.loads(pickle.dumps(adapter.write(decision)))
    assert np.array_equal(small.predict(c.X_new), Pruned(adapter, decision, 0, {}, "", {}).predict(c.X_new))


@pytest.mark.parametrize("name", ["booster, best iteration", "classifier, stopped early"])
def test_the_best_iteration_is_that_of_the_pruned_trees(name):
    c = case(f"lightgbm {name}")
    adapter = adapt(c.model)
    small = adapter.write(only_trees(adapter.forest, [0, 1]))
    booster = getattr(small, "booster_", small)
    assert booster.num_trees() == booster.best_iteration == booster.current_iteration() == 2
    assert getattr(small, "best_iteration_", 2) == 2
    assert np.array_equal(booster.predict(c.X_new), booster.predict(c.X_new, num_iteration=-1))


def test_base_and_tree_weights_are_written_exactly():
    c = case("lightgbm booster, multiclass")
    adapter, rng = adapt(c.model), np.random.default_rng(0)
    forest = adapter.forest
    keep = random_keep(rng, forest)
    decision = Decision(keep, tree_weight=rng.normal(size=forest.n_trees), base=rng.normal(size=3))
    small = adapter.write(decision)
    assert np.array_equal(small.predict(c.X_new, raw_score=True), Pruned(adapter, decision, 0, {}, "", {}).raw(c.X_new))


def test_a_random_forest_cannot_store_tree_weights():
    adapter = adapt(case("lightgbm booster, random forest").model)
    with pytest.raises(ValueError, match="unweighted mean"):
        adapter.write(Decision(np.ones(adapter.forest.n_nodes, bool), tree_weight=np.full(adapter.forest.n_trees, 2.0)))


def test_the_pruned_wrapper_keeps_attributes():
    c = case("lightgbm classifier, table")
    adapter = adapt(c.model)
    small = adapter.write(Decision(random_keep(np.random.default_rng(0), adapter.forest)))
    assert small.get_params() == c.model.get_params()
    assert small.booster_.params == c.model.booster_.params
    assert small.booster_.pandas_categorical == c.model.booster_.pandas_categorical
    assert list(small.classes_) == list(c.model.classes_)
    assert small.n_features_in_ == c.model.n_features_in_
    assert small.feature_name_ == c.model.feature_name_
    assert small.feature_importances_.sum() == adapt(small).forest.is_split.sum()
    assert small.predict(c.X_new, pred_contrib=True).shape == (len(c.X_new), 3 * 8)


def test_unchanged_trees_keep_their_leaf_ids():
    c = case("lightgbm booster, categories")
    adapter = adapt(c.model)
    small = adapter.write(only_trees(adapter.forest, [1, 3]))
    before = c.model.predict(c.X_new, pred_leaf=True)
    assert np.array_equal(small.predict(c.X_new, pred_leaf=True), before[:, [1, 3]])


def test_training_rows_are_recognised_unless_rows_were_subsampled():
    from secateur.forest.routing import route

    for name, expected in [("booster, regression", True), ("booster, bagging", False)]:
        c = case(f"lightgbm {name}")
        adapter = adapt(c.model)
        assert adapter.grown_on(route(adapter.forest, adapter.rows(c.X))) is expected
        assert not adapter.grown_on(route(adapter.forest, adapter.rows(c.X[::-1] + 1.0)))


def test_refitting_keeps_categories_and_the_number_of_iterations():
    c = case("lightgbm classifier, categories")
    again = adapt(c.model).refit(c.X, c.y, None)
    assert np.array_equal(again.predict_proba(c.X_new), c.model.predict_proba(c.X_new))
    c = case("lightgbm classifier, stopped early")
    again = adapt(c.model).refit(c.X[:75], c.y[:75], None)
    assert np.array_equal(again.predict_proba(c.X_new), c.model.predict_proba(c.X_new))


def test_integers_are_cast_to_float32_as_lightgbm_does():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2**30, (150, 2))
    y = (X[:, 0] % 2**28).astype(float)
    model = lightgbm.train({"verbose": -1, "num_threads": 1, "min_data_in_leaf": 2}, lightgbm.Dataset(X, y), 5)
    adapter = adapt(model)
    ours = Pruned(adapter, everything(adapter.forest), 0, {}, "", {})
    for rows in (X, X.tolist(), X.astype(np.float32), X.astype(float)):
        assert np.array_equal(ours.predict(rows), model.predict(rows))


def test_the_training_loss_is_read():
    expected = {
        "booster, quantile": "quantile:0.8",
        "booster, tweedie": "tweedie:1.2",
        "booster, absolute error": "absolute_error",
        "booster, poisson": "poisson",
        "booster, binary": None,
    }
    assert {name: adapt(case(f"lightgbm {name}").model).objective for name in expected} == expected


def test_linear_trees_are_refused():
    X = np.random.default_rng(0).normal(size=(100, 2))
    params = {"linear_tree": True, "verbose": -1, "num_threads": 1}
    with pytest.raises(UnsupportedModelError, match="linear_tree=True"):
        adapt(lightgbm.train(params, lightgbm.Dataset(X, X[:, 0]), 3))


def test_unfitted_models_and_classifiers_with_regression_objectives_are_refused():
    with pytest.raises(ValueError, match="not fitted"):
        adapt(lightgbm.LGBMRegressor())
    c = case("lightgbm classifier")
    model = lightgbm.LGBMClassifier(objective="regression", n_estimators=2, verbose=-1).fit(c.X, c.y)
    with pytest.raises(ValueError, match="predicts numbers"):
        adapt(model)


def test_a_table_with_other_columns_is_refused():
    c = case("lightgbm classifier, table")
    adapter = adapt(c.model)
    with pytest.raises(ValueError, match="columns of X differ"):
        adapter.rows(c.X.rename(columns={"a": "z"}))
    with pytest.raises(ValueError, match="categorical columns"):
        adapter.rows(c.X.assign(size=0.0))
