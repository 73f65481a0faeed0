import numpy as np
import pytest

from secateur import as_forest
from secateur._util.text import shortened
from secateur.forest import Categories, Forest
from secateur.libraries import adapt
from secateur.plotting.split_labels import categories_of, class_names, feature_name, split_text


def stump(comparison="<=", names=None, categories=None, n_classes=()):
    """One split at 2.5 of feature 1, and two leaves."""
    return Forest(
        tree_start=np.array([0, 3]),
        right=np.array([2, -1, -1], np.int32),
        feature=np.array([1, -1, -1], np.int32),
        threshold=np.array([2.5, 0, 0]),
        default_left=np.zeros(3, bool),
        value=np.array([[0.0], [1.0], [2.0]]),
        weight=np.ones(3),
        tree_weight=np.ones(1),
        tree_output=np.zeros(1, np.int32),
        base=np.zeros(1),
        link="identity",
        n_features=2,
        comparison=comparison,
        feature_names=names,
        categories=categories or Categories(),
        n_classes=n_classes,
    )


def lists(left, right, other_left=False):
    codes = np.array(sorted([*left, *right]), np.int32)
    return Categories(
        row=np.array([0, -1, -1], np.int32),
        start=np.array([0, len(codes)]),
        code=codes,
        left=np.isin(codes, left),
        other_left=np.array([other_left]),
    )


def test_a_split_says_what_it_compares():
    assert split_text(stump(), 0) == "x[1] ≤ 2.5"
    assert split_text(stump("<", names=("a", "b")), 0) == "b < 2.5"
    assert categories_of(stump(), 0) is None


def test_a_categorical_split_names_the_categories_that_go_left():
    forest = stump(categories=lists([3, 0], [1]))
    assert categories_of(forest, 0) == (0, 3)
    assert categories_of(forest, 0, left=False) == (1,)
    assert split_text(forest, 0) == "x[1] in {0, 3}"


def test_where_unlisted_categories_go_left_the_others_are_named():
    assert split_text(stump(categories=lists([3, 0], [1], other_left=True)), 0) == "x[1] not in {1}"


def test_many_categories_are_not_all_listed():
    assert split_text(stump(categories=lists(list(range(9)), [])), 0) == "x[1] in {0, 1, 2, 3, 4, 5, …}"


def test_a_numeric_split_beside_categorical_ones_compares():
    both = Categories(np.array([-1, -1, -1], np.int32))
    assert categories_of(stump(categories=both), 0) is None


def test_features_have_names_or_numbers():
    assert feature_name(stump(), 1) == "x[1]"
    assert feature_name(stump(names=("a", "b")), 1) == "b"


def test_long_names_end_in_dots():
    assert shortened("abcd", 4) == "abcd"
    assert shortened("abcde", 4) == "abc…"


def test_the_categories_are_those_lightgbm_sends_left():
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    X = rng.integers(0, 8, (400, 2)).astype(float)
    y = np.isin(X[:, 1], (2, 5, 6)) + 0.01 * rng.normal(size=400)
    params = {"verbose": -1, "num_leaves": 2, "min_data_per_group": 1, "cat_smooth": 0, "max_cat_to_onehot": 1}
    booster = lightgbm.train(params, lightgbm.Dataset(X, y, categorical_feature=[1]), 1)
    root = booster.dump_model()["tree_info"][0]["tree_structure"]
    forest = as_forest(booster)
    assert sorted(categories_of(forest, 0)) == sorted(map(int, root["threshold"].split("||")))
    assert set(categories_of(forest, 0)) in ({2, 5, 6}, {0, 1, 3, 4, 7})


def test_classes_have_the_models_names():
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    X = np.arange(4.0)[:, None]
    assert class_names(adapt(DecisionTreeClassifier().fit(X, ["b", "a", "b", "c"]))) == ["a", "b", "c"]
    assert class_names(adapt(DecisionTreeClassifier().fit(X, np.eye(4, 2, dtype=int)))) == []
    assert class_names(adapt(DecisionTreeRegressor().fit(X, X[:, 0]))) == []
    assert class_names(adapt(stump(n_classes=(2,)))) == ["0", "1"]
