"""Routing and sums: rows reach their leaves, and sums are made in the order of the libraries."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeRegressor
from tests.strategies import forests, generators, random_forest, random_keep, random_rows, slow_scores, walk

from secateur import Decision, as_forest, subforest
from secateur.errors import InvalidInputError
from secateur.forest.routing import raw_scores, route
from secateur.forest.subforest import split_kept


@given(forests(), generators, st.sampled_from([1, 2, 7, 63, 64, 65, 130]))
def test_rows_reach_the_leaf_the_definition_says(forest, rng, n_rows):
    X = random_rows(rng, n_rows, forest.n_features)
    leaves = route(forest, X)
    expected = [[walk(forest, t, x) - forest.tree_start[t] for x in X] for t in range(forest.n_trees)]
    assert np.array_equal(leaves, expected)


@given(forests(), generators)
def test_sums_are_those_of_the_definition_to_the_last_bit(forest, rng):
    X = random_rows(rng, 6, forest.n_features)
    assert np.array_equal(raw_scores(forest, route(forest, X)), slow_scores(forest, X))


@given(forests(), generators)
def test_sums_under_a_decision_are_those_of_the_pruned_forest(forest, rng):
    decision = Decision(random_keep(rng, forest), value=rng.normal(size=forest.value.shape))
    X = random_rows(rng, 6, forest.n_features)
    pruned = subforest(forest, decision)
    assert np.array_equal(raw_scores(forest, route(forest, X), decision), raw_scores(pruned, route(pruned, X)))


@given(forests(), generators)
def test_sums_of_kept_values_are_those_of_the_pruned_forest(forest, rng):
    keep, value = random_keep(rng, forest), rng.normal(size=forest.value.shape)
    X = random_rows(rng, 6, forest.n_features)
    pruned = subforest(forest, Decision(keep, value=value))
    found = raw_scores(forest, route(forest, X), Decision(keep), kept_value=value[keep])
    assert np.array_equal(found, raw_scores(pruned, route(pruned, X)))


@given(forests(), generators)
def test_kept_nodes_are_split_as_in_the_pruned_forest(forest, rng):
    keep = random_keep(rng, forest)
    nodes, split = split_kept(forest, keep)
    assert np.array_equal(nodes, np.flatnonzero(keep))
    assert np.array_equal(split, subforest(forest, Decision(keep)).is_split)


def test_a_mask_with_one_of_two_siblings_is_refused():
    rng = np.random.default_rng(0)
    forest = random_forest(rng, n_trees=1, max_splits=1)
    while forest.n_nodes != 3:
        forest = random_forest(rng, n_trees=1, max_splits=1)
    with pytest.raises(InvalidInputError, match="one child only"):
        split_kept(forest, np.array([True, True, False]))


def test_leaf_ids_take_the_smallest_type():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), rng.normal(size=300)
    for n_leaves, kind in ((128, np.uint8), (129, np.uint16)):  # 255 and 257 nodes
        tree = DecisionTreeRegressor(max_leaf_nodes=n_leaves, random_state=0).fit(X, y)
        leaves = route(as_forest(tree), X)
        assert leaves.dtype == kind
        assert np.unique(leaves).size == n_leaves


def test_a_value_equal_to_the_threshold_goes_left_unless_the_comparison_is_strict():
    rng = np.random.default_rng(0)
    for comparison, leaf in [("<=", 1), ("<", 2)]:
        forest = random_forest(rng, n_trees=1, max_splits=1, comparison=comparison)
        while forest.n_nodes != 3 or np.isinf(forest.threshold[0]):
            forest = random_forest(rng, n_trees=1, max_splits=1, comparison=comparison)
        row = np.full((1, forest.n_features), forest.threshold[0])
        assert route(forest, row)[0, 0] == leaf


def test_zeros_that_count_as_missing_are_still_zeros_in_the_rows_given():
    forest = random_forest(np.random.default_rng(0), n_trees=1, max_splits=9, zero_is_missing=(0,))
    X = np.zeros((2, forest.n_features))
    leaves = route(forest, X)
    assert (X == 0).all()
    X[:, 0] = np.nan
    assert np.array_equal(leaves, route(forest, X))


def test_an_offset_per_row_is_where_the_sums_start():
    forest = random_forest(np.random.default_rng(0))
    X = np.zeros((3, forest.n_features))
    offset = np.array([[0.0], [1.0], [5.0]])
    plain, moved = raw_scores(forest, route(forest, X)), raw_scores(forest, route(forest, X), offset=offset)
    np.testing.assert_allclose(moved - plain, offset, rtol=1e-12)


def test_the_weighted_median_is_the_value_at_half_the_weight():
    forest = random_forest(np.random.default_rng(3), n_trees=5, max_splits=0, aggregation="median")
    order = np.argsort(forest.value[:, 0])
    weight = np.cumsum(forest.tree_weight[order])
    expected = forest.value[order[np.searchsorted(weight, 0.5 * weight[-1])], 0]
    assert raw_scores(forest, route(forest, np.zeros((1, forest.n_features))))[0, 0] == expected


@given(rng=generators, n_trees=st.integers(1, 13))
def test_four_sums_take_turns_and_products_are_not_rounded(rng, n_trees):
    forest = random_forest(rng, n_trees=n_trees, max_splits=3, aggregation="sum", addition="fours")
    X = random_rows(rng, 5, forest.n_features)
    leaves = route(forest, X)
    keep = random_keep(rng, forest)
    raw = raw_scores(forest, leaves, Decision(keep))
    for i in range(len(X)):
        standing = [t for t in range(n_trees) if keep[forest.root[t]]]
        terms = []
        for tree in standing:
            v = forest.root[tree] + int(leaves[tree, i])
            while not keep[v]:
                v = forest.parent[v]
            terms.append((float(forest.value[v, 0]), float(forest.tree_weight[tree])))
        fours, rest = len(terms) // 4 * 4, 0.0
        sums = [0.0] * 4
        for place, (x, w) in enumerate(terms[:fours]):
            sums[place % 4] = float(Fraction(x) * Fraction(w) + Fraction(sums[place % 4]))
        rest = sums[0] + sums[1] + sums[2] + sums[3]
        for x, w in terms[fours:]:
            rest += x * w
        assert raw[i, 0] == forest.base[0] + rest
