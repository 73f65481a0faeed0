"""The check of monotonic constraints finds what all rows of a grid find."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import examples, forests, generators, random_keep

import secateur as sc
from secateur.forest import Categories, Forest, check_forest
from secateur.forest.monotonicity import check_monotonicity
from secateur.forest.routing import ZERO, route
from secateur.forest.subforest import Decision, subforest

GRID = np.array([-np.inf, -3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 2.5, 3, 4, 5, np.inf, np.nan])
"""Every number that thresholds from -2 to 2 and categories from 0 to 4 can tell apart, and a missing one."""


def by_all_rows(forest):
    """Return the largest violation of each feature in each tree, found by routing every row of a grid."""
    rows = np.array(list(product(GRID, repeat=forest.n_features)))
    leaves = route(forest, rows)
    second_class = forest.n_classes == (2,) and forest.value.shape[1] == 2
    found = {}
    for tree, feature in product(range(forest.n_trees), np.flatnonzero(forest.monotone)):
        value = forest.value[forest.root[tree] + leaves[tree].astype(int)][:, 1 if second_class else 0 :]
        grid = (forest.tree_weight[tree] * value).reshape(*[len(GRID)] * forest.n_features, -1)
        numbers = ~np.isnan(GRID) & ~(np.isin(feature, forest.zero_is_missing) & (GRID == 0))
        column = np.moveaxis(grid, feature, 0)[numbers] * forest.monotone[feature]
        drop = (np.maximum.accumulate(column) - column).max()
        if drop > 0:
            found[int(feature), tree] = drop
    return found


def sizes(check):
    return {(violation.feature, violation.tree): violation.size for violation in check.violations}


@given(forests(max_trees=2), generators, st.booleans())
@examples(200)
def test_the_check_equals_brute_force_by_prediction(forest, rng, zeros):
    if forest.n_features == 4:  # a grid of four features has as many rows as all others together
        forest = replace(forest, feature=np.minimum(forest.feature, 2), n_features=3)
    if forest.n_features > 1 and len(forest.categories.row):  # at least one feature has an order
        row = np.where(forest.feature == 0, -1, forest.categories.row).astype(np.int32)
        forest = replace(forest, categories=replace(forest.categories, row=row))
    ordered = np.setdiff1d(np.arange(forest.n_features), forest.feature[splits_by_category(forest)])
    signs = np.zeros(forest.n_features, np.int8)
    signs[ordered] = rng.choice([-1, 0, 1], len(ordered), p=[0.4, 0.2, 0.4])
    value = np.sort(forest.value, axis=0) if rng.random() < 0.3 else forest.value.round(1)
    zero_is_missing = tuple(np.flatnonzero(rng.random(forest.n_features) < 0.5).tolist()) if zeros else ()
    forest = replace(forest, monotone=signs, value=value, zero_is_missing=zero_is_missing)
    check = check_monotonicity(forest)
    assert sizes(check) == by_all_rows(forest)
    assert check.holds == (not check.violations)
    assert check.features == tuple(np.flatnonzero(signs))
    assert [v.size for v in check.violations] == sorted((v.size for v in check.violations), reverse=True)


def splits_by_category(forest):
    return forest.categories.row != -1 if len(forest.categories.row) else np.zeros(forest.n_nodes, bool)


def tree(right, feature, threshold, value, **facts):
    """Return a forest of one tree, with the signs +1 for the first feature and 0 for the second."""
    n = len(right)
    fields = {
        "default_left": np.zeros(n, bool),
        "tree_weight": np.ones(1),
        "n_features": 2,
        "monotone": np.array([1, 0], np.int8),
        **facts,
    }
    forest = Forest(
        tree_start=np.array([0, n]),
        right=np.array(right, np.int32),
        feature=np.array(feature, np.int32),
        threshold=np.array(threshold, np.float64),
        value=np.array(value, np.float64)[:, None],
        weight=np.ones(n),
        tree_output=np.full(1, -1, np.int32),
        base=np.zeros(1),
        link="identity",
        **fields,
    )
    check_forest(forest)
    return forest


def sandwich(value, default_left=(), categories=None, **facts):
    """Return x0 <= 0, and below it x1 <= 0 on the left and x1 <= 1 on the right, with the four leaf values."""
    a, b, c, d = value
    defaults = np.zeros(7, bool)
    defaults[list(default_left)] = True
    more = {} if categories is None else {"categories": categories}
    return tree(
        [4, 3, -1, -1, 6, -1, -1],
        [0, 1, -1, -1, 1, -1, -1],
        [0, 0, 0, 0, 1, 0, 0],
        [0, 0, a, b, 0, c, d],
        default_left=defaults,
        **more,
        **facts,
    )


def test_leaves_that_share_no_value_of_another_feature_need_no_order():
    # x1 <= 0 with value 5 and x1 > 1 with value 3 are never compared
    assert check_monotonicity(sandwich([5, 0, 6, 3])).holds
    assert sizes(check_monotonicity(sandwich([5, 0, 1, 3]))) == {(0, 0): 4.0}


def test_a_missing_value_of_another_feature_can_reach_both_leaves():
    # a missing x1 goes left at x1 <= 0 and right at x1 <= 1, so the outer leaves are compared
    assert sizes(check_monotonicity(sandwich([5, 0, 6, 3], default_left=[1]))) == {(0, 0): 2.0}


def test_a_missing_value_of_the_constrained_feature_has_no_order():
    forest = tree([2, -1, -1], [0, -1, -1], [-np.inf, 0, 0], [0, 1, 0], comparison="<")
    assert check_monotonicity(forest).holds  # no number is below -inf
    assert check_monotonicity(replace(forest, default_left=np.array([True, False, False]))).holds
    assert not check_monotonicity(replace(forest, threshold=np.zeros(3))).holds


def test_categories_of_another_feature_separate_leaves():
    def lists(first, second):
        return Categories(
            row=np.array([-1, 0, -1, -1, 1, -1, -1], np.int32),
            start=np.array([0, len(first), len(first) + len(second)]),
            code=np.array([*first, *second], np.int32),
            left=np.ones(len(first) + len(second), bool),
            other_left=np.zeros(2, bool),
        )

    value = [5, 0, 6, 3]
    assert check_monotonicity(sandwich(value, [1, 4], lists([1, 2], [1, 2, 3]))).holds
    assert not check_monotonicity(sandwich(value, [1, 4], lists([1, 2, 4], [1, 2, 3]))).holds


def test_a_constraint_on_a_feature_with_categorical_splits_is_not_checked():
    categories = Categories(
        np.array([0, -1, -1], np.int32), np.array([0, 1]), np.array([1], np.int32), np.ones(1, bool), np.zeros(1, bool)
    )
    forest = tree([2, -1, -1], [0, -1, -1], [0, 0, 0], [0, 1, 0], categories=categories)
    assert check_monotonicity(forest) == sc.MonotonicityCheck((), ())


@pytest.mark.parametrize(("dtype", "holds"), [("float32", True), ("float64", False)])
def test_a_leaf_between_two_neighbouring_numbers_of_the_input_type_is_unreachable(dtype, holds):
    after = np.nextafter(1.0, 2.0)  # no float32 is in (1, after]
    forest = tree([4, 3, -1, -1, -1], [0, 0, -1, -1, -1], [after, 1, 0, 0, 0], [0, 0, 0, 9, 1], input_dtype=dtype)
    assert check_monotonicity(forest).holds is holds


def test_a_leaf_of_zeros_that_count_as_missing_is_unreachable():
    forest = tree([4, 3, -1, -1, -1], [0, 0, -1, -1, -1], [ZERO, -ZERO, 0, 0, 0], [0, 0, 0, 9, 1])
    below = replace(forest, threshold=np.array([ZERO, np.nextafter(-float(ZERO), -1), 0, 0, 0]))
    assert not check_monotonicity(forest).holds
    for missing in (forest, below):
        assert check_monotonicity(replace(missing, zero_is_missing=(0,))).holds


def test_the_size_of_a_violation_includes_the_weight_of_the_tree():
    forest = tree([2, -1, -1], [0, -1, -1], [0, 0, 0], [0, 1, 0])
    assert sizes(check_monotonicity(replace(forest, tree_weight=np.array([0.5])))) == {(0, 0): 0.5}
    assert check_monotonicity(replace(forest, tree_weight=np.array([-0.5]))).holds
    assert check_monotonicity(replace(forest, monotone=np.array([-1, 0], np.int8))).holds


def test_a_forest_without_constraints_holds():
    forest = tree([2, -1, -1], [0, -1, -1], [0, 0, 0], [0, 1, 0], monotone=None)
    assert sc.check_monotonic(forest) == sc.MonotonicityCheck((), ())
    assert check_monotonicity(replace(forest, monotone=np.zeros(2, np.int8))).holds


@given(forests(), generators)
def test_pruning_keeps_the_constraints(forest, rng):
    signs = rng.integers(-1, 2, forest.n_features).astype(np.int8)
    pruned = subforest(replace(forest, monotone=signs), Decision(random_keep(rng, forest)))
    assert np.array_equal(pruned.monotone, signs)


@pytest.mark.parametrize(
    ("signs", "message"),
    [
        ([1, 0], "must be an int8 array with one sign for each of 2 features"),
        (np.array([1, 0]), "Convert it with np.array"),
        (np.array([1], np.int8), "one sign for each of 2 features"),
        (np.array([1, 2], np.int8), "values from 1 to 2, but each must be -1, 0 or 1"),
        (np.array([-128, 0], np.int8), "values from -128 to 0"),
    ],
)
def test_other_signs_are_refused(signs, message):
    forest = tree([-1], [-1], [0], [0])
    with pytest.raises(ValueError, match=message):
        check_forest(replace(forest, monotone=signs))
