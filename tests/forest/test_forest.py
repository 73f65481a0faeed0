from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from sklearn.ensemble import AdaBoostRegressor
from sklearn.tree import DecisionTreeRegressor
from tests.strategies import (
    everything,
    forests,
    generators,
    raised_keep,
    random_forest,
    random_keep,
    random_rows,
    slow_scores,
    step,
    walk,
)

from secateur import Decision, prune_path, subforest
from secateur.errors import InvalidInputError
from secateur.forest import Categories, check_forest
from secateur.forest.subforest import check_keep


@given(forests(), generators)
def test_subforest_is_a_valid_forest_with_the_kept_nodes(forest, rng):
    keep = random_keep(rng, forest)
    pruned = subforest(forest, Decision(keep))
    check_forest(pruned)
    assert pruned.n_nodes == keep.sum()
    assert pruned.n_trees == keep[forest.root].sum()


@given(forests(), generators)
def test_a_row_reaches_the_deepest_kept_node_of_its_path(forest, rng):
    keep = random_keep(rng, forest)
    pruned = subforest(forest, Decision(keep))
    X = random_rows(rng, 5, forest.n_features)
    # Independent of subforest: replace the values below every kept node without kept children by its own.
    value = forest.value.copy()
    for v in range(forest.n_nodes):
        if keep[v] and forest.is_split[v] and not keep[v + 1]:
            value[v : forest.end[v]] = value[v]
    weight = np.where(keep[forest.root], forest.tree_weight, 0.0)
    divisor = float(weight.sum()) if forest.aggregation == "mean" else 1.0
    expected = slow_scores(replace(forest, value=value, tree_weight=weight, divisor=divisor), X)
    np.testing.assert_allclose(slow_scores(pruned, X), expected, rtol=1e-13, atol=1e-13)


def walk_kept_nodes(forest, keep, tree, x):
    """Return the kept node in which a row ends, read off the definition of keep."""
    v = int(forest.tree_start[tree])
    while True:
        sides = [v + 1, int(forest.right[v])] if forest.is_split[v] else []
        alive = [side for side in sides if keep[side : forest.end[side]].any()]
        if not alive:
            return v
        v = alive[0] if len(alive) == 1 else step(forest, v, x)


@given(forests(), generators)
def test_a_raised_side_takes_the_place_of_its_parent(forest, rng):
    keep = raised_keep(rng, forest)
    pruned = subforest(forest, Decision(keep))
    check_forest(pruned)
    assert pruned.n_nodes == keep.sum()
    standing = [t for t in range(forest.n_trees) if keep[forest.tree_start[t] : forest.tree_start[t + 1]].any()]
    for x in random_rows(rng, 5, forest.n_features):
        for new, old in enumerate(standing):
            expected = forest.value[walk_kept_nodes(forest, keep, old, x)]
            assert np.array_equal(pruned.value[walk(pruned, new, x)], expected)


def test_cutting_below_root_leaves_one_node():
    forest = random_forest(np.random.default_rng(0), n_trees=1, max_splits=9)
    keep = np.zeros(forest.n_nodes, bool)
    keep[0] = True
    pruned = subforest(forest, Decision(keep))
    assert (pruned.n_nodes, pruned.n_leaves, pruned.max_depth, len(pruned.features_used)) == (1, 1, 0, 0)


@given(forests())
def test_keeping_everything_changes_nothing(forest):
    same = subforest(forest, everything(forest))
    for name in ("tree_start", "right", "feature", "value", "weight", "tree_weight", "base"):
        assert np.array_equal(getattr(same, name), getattr(forest, name)), name
    assert same.divisor == forest.divisor


def test_dropping_a_tree_of_a_mean_changes_the_divisor():
    forest = random_forest(np.random.default_rng(1), n_trees=4, link="probability", n_classes=(2,), n_outputs=2)
    keep = np.ones(forest.n_nodes, bool)
    keep[: forest.tree_start[1]] = False
    assert subforest(forest, Decision(keep)).divisor == 3.0


def test_new_values_weights_and_base_are_taken():
    forest = random_forest(np.random.default_rng(2), n_trees=2)
    decision = Decision(np.ones(forest.n_nodes, bool), forest.value + 1, forest.tree_weight * 2, forest.base - 3)
    changed = subforest(forest, decision)
    assert np.array_equal(changed.value, forest.value + 1)
    assert np.array_equal(changed.tree_weight, forest.tree_weight * 2)
    assert np.array_equal(changed.base, forest.base - 3)


def test_orphans_and_lone_siblings_are_refused():
    forest = random_forest(np.random.default_rng(3), n_trees=1, max_splits=9)
    for broken in (1, int(forest.right[0])):
        keep = np.ones(forest.n_nodes, bool)
        keep[broken] = False
        with pytest.raises(InvalidInputError, match="keep is not a pruning: node"):
            check_keep(forest, keep)


def test_masks_of_another_shape_or_type_are_refused():
    forest = random_forest(np.random.default_rng(3), n_trees=1)
    with pytest.raises(InvalidInputError, match="one bool per node"):
        check_keep(forest, np.ones(forest.n_nodes + 1, bool))
    with pytest.raises(InvalidInputError, match="one bool per node"):
        check_keep(forest, np.ones(forest.n_nodes))


def test_a_mean_cannot_lose_its_last_tree_but_a_sum_can():
    mean = random_forest(np.random.default_rng(4), link="probability", n_classes=(2,), n_outputs=2)
    with pytest.raises(InvalidInputError, match="needs at least one"):
        subforest(mean, Decision(np.zeros(mean.n_nodes, bool)))
    total = random_forest(np.random.default_rng(4))
    empty = subforest(total, Decision(np.zeros(total.n_nodes, bool)))
    assert (empty.n_trees, empty.n_nodes) == (0, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tree_start": np.array([0, 2, 9])}, "tree_start"),
        ({"threshold": np.zeros(3)}, "threshold has 3 entries"),
        ({"tree_weight": np.ones(7)}, "Pass one entry per tree"),
        ({"link": "magic"}, "link='magic' is unknown"),
        ({"n_features": 0}, "A split uses feature"),
        ({"tree_output": np.array([-1, 0], np.int32)}, "mixes"),
        ({"tree_output": np.array([3, 4], np.int32)}, "contributes to output 4"),
    ],
)
def test_inconsistent_arrays_are_refused(change, message):
    forest = random_forest(np.random.default_rng(5), n_trees=2, max_splits=9)
    with pytest.raises(InvalidInputError, match=message):
        check_forest(replace(forest, **change))


def test_nan_thresholds_and_bad_value_shapes_are_refused():
    forest = random_forest(np.random.default_rng(5), n_trees=2, max_splits=9)
    with pytest.raises(InvalidInputError, match="threshold is NaN at a split"):
        check_forest(replace(forest, threshold=np.full(forest.n_nodes, np.nan)))
    with pytest.raises(InvalidInputError, match="value has shape"):
        check_forest(replace(forest, value=np.zeros((forest.n_nodes, 2))))


def test_a_category_listed_for_both_sides_is_refused():
    forest = random_forest(np.random.default_rng(5), n_trees=1, max_splits=9)
    twice = Categories(
        row=np.where(np.arange(forest.n_nodes) == 0, 0, -1).astype(np.int32),
        start=np.array([0, 2]),
        code=np.array([3, 3], np.int32),
        left=np.array([True, False]),
        other_left=np.array([False]),
    )
    with pytest.raises(InvalidInputError, match="list of categories is not sorted"):
        check_forest(replace(forest, categories=twice))


def test_a_tree_of_a_median_is_pruned_by_its_loss_like_a_tree_alone():
    X = np.arange(30.0)[:, None]
    y = np.sin(X[:, 0])
    model = AdaBoostRegressor(DecisionTreeRegressor(max_depth=4), n_estimators=1, random_state=0).fit(X, y)
    within, alone = (prune_path(trees, X, y).table for trees in (model, model.estimators_[0]))
    np.testing.assert_allclose(within["penalty"], alone["penalty"])
    np.testing.assert_allclose(within["risk"], alone["risk"])
