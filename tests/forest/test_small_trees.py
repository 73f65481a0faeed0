"""Small trees are applied to blocks of rows by ranks of thresholds; rows reach the leaves they reach singly."""

from dataclasses import replace

import lightgbm
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestRegressor
from tests.strategies import examples, generators, random_forest, random_rows, walk

from secateur import as_forest
from secateur.forest import small_trees
from secateur.forest.routing import route, splits_of
from secateur.libraries import adapt


@given(
    generators,
    st.sampled_from([1023, 1024, 1025, 2050]),
    st.sampled_from(["<=", "<"]),
    st.sampled_from(["float32", "float64"]),
    st.sampled_from([None, 0, -3, 70]),
)
@examples(20)
def test_blocks_of_rows_reach_the_leaves_the_definition_says(rng, n_rows, comparison, dtype, first_code):
    categorical = first_code is not None
    facts = {"comparison": comparison, "input_dtype": dtype, "categorical": categorical}
    forest = random_forest(rng, n_trees=9, max_splits=12, **facts)
    if categorical:  # codes from `first_code` on
        forest = replace(forest, categories=replace(forest.categories, code=forest.categories.code + first_code))
    X = random_rows(rng, n_rows, forest.n_features).astype(dtype)
    X[::2] += first_code or 0
    if forest.is_split.any():
        assert small_trees.rank_splits(forest, splits_of(forest), n_rows) is not None
    expected = [[walk(forest, t, x) - forest.tree_start[t] for x in X] for t in range(forest.n_trees)]
    assert np.array_equal(route(forest, X), expected)


def test_leaves_of_many_rows_are_those_of_scikit_learn_up_to_the_largest_tree_of_bytes():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6000, 5)), rng.normal(size=6000)
    X[rng.random(X.shape) < 0.1] = np.nan
    for depth in (1, 4, 7):  # 3, 31 and 255 nodes
        model = RandomForestRegressor(8, max_depth=depth, random_state=0).fit(X, y)
        forest = as_forest(model)
        assert small_trees.rank_splits(forest, splits_of(forest), len(X)) is not None
        # Trees grown by depth are numbered in preorder.
        assert np.array_equal(route(forest, X).T, model.apply(X))


def test_leaves_of_many_rows_are_those_of_lightgbm():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 12)).round(1)
    X[:, 0], X[:, 1] = rng.integers(0, 5, 3000), rng.integers(0, 200, 3000)  # flags of one word, and of several
    y = np.nan_to_num(X) @ rng.normal(size=12) + X[:, 0] % 2 + np.sin(X[:, 1])
    X[rng.random(X.shape) < 0.1] = np.nan
    for categories in ([], [0, 1]):
        model = lightgbm.LGBMRegressor(n_estimators=40, min_data_per_group=5, verbose=-1, n_jobs=1)
        adapter = adapt(model.fit(X, y, categorical_feature=categories))
        forest = adapter.forest
        assert len(np.unique(forest.feature[: len(forest.categories.row)][forest.categories.row != -1])) == len(
            categories
        )
        assert small_trees.rank_splits(forest, splits_of(forest), len(X)) is not None
        nodes = forest.root[:, None] + route(forest, adapter.rows(X))
        assert np.array_equal(~adapter.native_ids()[nodes].T, model.predict(X, pred_leaf=True))


def test_rows_are_followed_singly_where_ranks_do_not_pay_or_do_not_fit(monkeypatch):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(2000, 9)), rng.normal(size=2000)
    forest = as_forest(RandomForestRegressor(9, max_depth=4, random_state=0).fit(X, y))
    splits, leaves = splits_of(forest), route(forest, X)
    assert small_trees.rank_splits(forest, splits, 2000) is not None
    assert small_trees.rank_splits(forest, splits, 9) is None
    few = as_forest(RandomForestRegressor(2, max_depth=4, random_state=0).fit(X, y))
    assert small_trees.rank_splits(few, splits_of(few), 2000) is None
    monkeypatch.setattr(small_trees, "_MOST_CUTS", 3)
    assert small_trees.rank_splits(forest, splits, 2000) is None
    assert np.array_equal(route(forest, X), leaves)


def test_rows_are_followed_singly_where_a_split_has_too_many_categories(monkeypatch):
    rng = np.random.default_rng(0)
    forest = random_forest(rng, n_trees=9, max_splits=12, categorical=True)
    X = random_rows(rng, 2000, forest.n_features)
    leaves = route(forest, X)
    assert small_trees.rank_splits(forest, splits_of(forest), 2000) is not None
    monkeypatch.setattr(small_trees, "_MOST_WORDS", 0)
    assert small_trees.rank_splits(forest, splits_of(forest), 2000) is None
    assert np.array_equal(route(forest, X), leaves)
