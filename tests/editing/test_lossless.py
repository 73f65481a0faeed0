"""simplify changes no prediction, and removes everything that has no effect on predictions."""

import itertools
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import ALL_RECIPES, RECIPES, case
from tests.editing.tangles import MODES, assert_same, edge_rows, predictions, tangled
from tests.in_one_test import for_each
from tests.strategies import forests, generators, random_rows, slow_scores, walk

from secateur.editing import simplify
from secateur.forest import Categories, check_forest
from secateur.libraries import adapt

OTHER_LIBRARIES = [n for n in ALL_RECIPES if n not in RECIPES and not n.startswith("spark")]


@pytest.mark.each_kind(RECIPES)
def test_every_mode_preserves_what_it_promises_and_repeating_it_changes_nothing(name):
    model = case(name).model
    before = pickle.dumps(model)
    check_modes(name, model)
    assert pickle.dumps(model) == before
    model = tangled(name)
    exact = check_modes(name, model)
    if adapt(model).library == "sklearn" and adapt(model).forest.n_nodes > 30:
        assert adapt(exact).forest.n_nodes < adapt(model).forest.n_nodes


def check_modes(name, model):
    """Assert what the modes of `simplify` preserve, and return the model simplified by the exact one."""
    small = {preserve: simplify(model, preserve) for preserve in MODES}
    n_nodes = {preserve: adapt(small[preserve]).forest.n_nodes for preserve in MODES}
    assert type(small["exact"]) is type(model)
    assert n_nodes["exact"] <= adapt(model).forest.n_nodes
    assert max(n_nodes.values()) == n_nodes["exact"]
    check_predictions(model, small, edge_rows(name, adapt(model).forest))
    for preserve, once in small.items():
        assert_equal_forests(adapt(once).forest, adapt(simplify(once, preserve)).forest)
    return small["exact"]


def check_predictions(model, small, X):
    """Assert equal bits of all predictions, probabilities within rounding, and equal labels."""
    assert_same(model, small["exact"], X)
    assert np.array_equal(model.predict(X), small["labels"].predict(X))
    found = predictions(small["probabilities"], X)
    for method, expected in predictions(model, X).items():
        for a, b in zip(expected, found[method], strict=True):
            if a.dtype.kind == "f":
                np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12, err_msg=method)


@for_each("name", OTHER_LIBRARIES)
def test_exact_changes_no_bit_of_models_of_other_libraries(name):
    c = case(name)
    small = simplify(c.model)
    assert type(small) is type(c.model)
    assert adapt(small).forest.n_nodes <= adapt(c.model).forest.n_nodes
    found = c.predictions(small, c.X_new)
    for method, expected in c.predictions(c.model, c.X_new).items():
        np.testing.assert_array_equal(np.asarray(found[method]), np.asarray(expected), err_msg=method)


def constant_levels():
    """Return symmetric trees whose last level has the values of the level above, the nodes of that level, and rows."""
    adapter = adapt(case("catboost regressor").model)
    forest = adapter.forest
    depth = np.repeat(np.maximum.reduceat(forest.depth, forest.root), np.diff(forest.tree_start))
    last = np.flatnonzero((forest.depth == depth) & (depth > 0))
    value = forest.value.copy()
    value[last] = value[forest.parent[last]]
    return replace(forest, value=value), last, adapter.rows(case("catboost regressor").X_new)


def test_a_level_of_symmetric_trees_is_removed_if_all_of_its_leaves_can_be_merged():
    forest, last, rows = constant_levels()
    small = simplify(forest)
    assert forest.n_nodes - small.n_nodes >= len(last)
    np.testing.assert_array_equal(slow_scores(small, rows), slow_scores(forest, rows))


def test_a_level_of_symmetric_trees_is_kept_if_one_leaf_differs():
    forest, last, rows = constant_levels()
    forest.value[last[-1]] = 7.5
    small = simplify(forest)
    in_last_tree = int((last >= forest.root[-1]).sum())
    assert forest.n_nodes - small.n_nodes >= len(last) - in_last_tree
    assert small.tree_start[-1] - small.tree_start[-2] == forest.tree_start[-1] - forest.tree_start[-2]
    np.testing.assert_array_equal(slow_scores(small, rows), slow_scores(forest, rows))


def assert_equal_forests(a, b):
    assert np.array_equal(a.tree_start, b.tree_start)
    assert np.array_equal(a.right, b.right)
    assert np.array_equal(a.threshold[a.is_split], b.threshold[b.is_split])
    assert np.array_equal(a.value[~a.is_split], b.value[~b.is_split])
    assert np.array_equal(a.base, b.base)


def two_features(forest, rng):
    """Return the forest with all splits on two features and thresholds of all sorts, some between two float32."""
    tiny = np.float64(np.finfo(np.float32).tiny)
    choice = [-np.inf, -1.0, -tiny / 3, 0.0, 0.1, np.float32(0.1), np.nextafter(0.1, 1), 1.0, 1e300, np.inf]
    return replace(
        forest,
        feature=np.where(forest.is_split, forest.feature % 2, -1).astype(np.int32),
        threshold=rng.choice(np.array(choice, np.float64), forest.n_nodes),
        n_features=2,
        categories=Categories(),
    )


def grid(forest):
    """Return rows with a value from every interval between thresholds, for both features, and missing ones."""
    cast = forest.threshold.astype(forest.input_dtype)
    ends = np.array([-np.inf, np.inf], forest.input_dtype)
    values = np.unique(np.concatenate([cast, np.nextafter(cast, ends[0]), np.nextafter(cast, ends[1]), ends]))
    return list(itertools.product([*values.tolist(), np.nan], repeat=2))


@given(forests(links=("identity",), max_trees=2), generators)
@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered")
def test_exactly_the_leaves_some_row_reaches_remain(forest, rng):
    forest = two_features(forest, rng)
    reached = {walk(forest, tree, x) for tree in range(forest.n_trees) for x in grid(forest)}
    small = simplify(forest)
    check_forest(small)
    # Random values are distinct: they identify the leaves, and nothing is merged.
    assert set(map(tuple, small.value[~small.is_split])) == {tuple(forest.value[v]) for v in reached}
    assert small.n_leaves == len(reached)


def few_values(forest, rng):
    """Return the forest with no more than two different values."""
    return replace(forest, value=forest.value[rng.integers(0, min(2, forest.n_nodes), forest.n_nodes)])


@given(forests(), generators, st.sampled_from(MODES))
@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered")
def test_random_forests_of_few_values_keep_their_sums(forest, rng, preserve):
    forest = few_values(forest, rng)
    small = simplify(forest, preserve)
    check_forest(small)
    assert small.n_nodes <= forest.n_nodes
    X = random_rows(rng, 30, forest.n_features)
    before, after = slow_scores(forest, X), slow_scores(small, X)
    if preserve == "probabilities":
        np.testing.assert_allclose(before, after, rtol=1e-12, atol=1e-12)
    elif preserve == "labels" and forest.link == "probability" and forest.n_trees == 1:
        label = forest.response.label
        assert np.array_equal(label(before, forest.n_classes), label(after, forest.n_classes))
    else:
        assert np.array_equal(before, after)
    assert_equal_forests(small, simplify(small, preserve))


@given(forests(max_trees=1), generators)
def test_no_siblings_of_equal_value_remain(forest, rng):
    forest = few_values(forest, rng)
    small = simplify(forest)
    for v in np.flatnonzero(small.is_split):
        a, b = v + 1, small.right[v]
        if not (small.is_split[a] or small.is_split[b]):
            assert not np.array_equal(small.value[a], small.value[b])
