"""simplify on trees small enough to derive the result by hand, and on models built for one case."""

import copy
from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tests.cases import case
from tests.editing.tangles import MODES, assert_same, tangled

from secateur.editing import prune_nodes, simplify
from secateur.forest import Forest
from secateur.libraries import adapt


def tree_forest(right, feature, threshold, value, default_left=False, link="identity", **facts):
    """Return a Forest of one tree with values of one column."""
    n = len(right)
    return Forest(
        tree_start=np.array([0, n]),
        right=np.array(right, np.int32),
        feature=np.array(feature, np.int32),
        threshold=np.array(threshold, np.float64),
        default_left=np.full(n, default_left) if np.ndim(default_left) == 0 else np.array(default_left),
        value=np.array(value, np.float64).reshape(n, -1),
        weight=np.ones(n),
        tree_weight=np.ones(1),
        tree_output=np.full(1, -1, np.int32),
        base=np.zeros(np.array(value).reshape(n, -1).shape[1]),
        link=link,
        n_features=1,
        **facts,
    )


def chain(first, second, **facts):
    """Return x <= first, and on its left x <= second."""
    nothing = float("nan")
    return tree_forest(
        [4, 3, -1, -1, -1], [0, 0, -1, -1, -1], [first, second, nothing, nothing, nothing], [0, 0, 1, 2, 3], **facts
    )


def test_a_split_with_one_reachable_side_is_replaced_by_it():
    assert simplify(chain(1.0, 2.0)).value[:, 0].tolist() == [0.0, 1.0, 3.0]
    assert simplify(chain(1.0, 0.5)).n_nodes == 5


def test_equal_thresholds_contradict():
    assert simplify(chain(1.0, 1.0)).n_nodes == 3
    assert simplify(chain(1.0, 1.0, comparison="<")).n_nodes == 3
    assert simplify(chain(1.0, np.nextafter(1.0, 0))).n_nodes == 5


def test_a_missing_value_may_go_where_no_number_can():
    assert simplify(chain(1.0, 2.0, default_left=[True, False, False, False, False])).n_nodes == 5
    assert simplify(chain(1.0, 2.0, default_left=[True, True, False, False, False])).n_nodes == 3
    assert simplify(chain(1.0, 2.0, default_left=[False, False, False, False, False])).n_nodes == 3


def test_an_interval_without_a_number_of_the_input_type_is_empty():
    assert simplify(chain(0.1, 0.0999999999, input_dtype="float64")).n_nodes == 5
    assert simplify(chain(0.1, 0.0999999999, input_dtype="float32")).n_nodes == 3


def test_nothing_is_below_minus_infinity_and_nothing_above_infinity():
    assert simplify(chain(1.0, -np.inf, comparison="<")).n_nodes == 3
    assert simplify(chain(1.0, -np.inf)).n_nodes == 5
    assert simplify(chain(np.inf, 1.0)).n_nodes == 5  # missing values go right at both
    assert simplify(chain(np.inf, 1.0, default_left=True)).n_nodes == 3
    assert simplify(chain(np.inf, 1.0, default_left=True, comparison="<")).n_nodes == 5


def stump(low, high, **facts):
    return tree_forest([2, -1, -1], [0, -1, -1], [0.0, 0.0, 0.0], [7.0, low, high], **facts)


def test_a_stump_of_equal_leaves_becomes_one_leaf_with_their_value():
    small = simplify(stump(1.5, 1.5))
    assert small.value.tolist() == [[1.5]]


def test_equal_values_are_bit_identical_or_within_rounding():
    near, far = 1.0 + 4 * np.spacing(1.0), 1.0 + 5 * np.spacing(1.0)
    assert simplify(stump(0.0, -0.0)).n_nodes == 3
    assert simplify(stump(1.0, near)).n_nodes == 3
    assert simplify(stump(1.0, far), "probabilities").n_nodes == 3
    assert simplify(stump(1.0, near, aggregation="mean"), "probabilities").value.tolist() == [[1.0]]


def test_a_constant_forest_becomes_its_base():
    small = simplify(stump(1.5, 1.5), "probabilities")
    assert small.n_trees == 0
    assert small.base.tolist() == [1.5]
    assert simplify(small, "probabilities").base.tolist() == [1.5]


def test_leaves_of_one_class_are_merged_only_to_preserve_labels():
    X = np.arange(8.0)[:, None]
    y = [0, 0, 0, 1, 0, 0, 0, 0]
    tree = DecisionTreeClassifier(max_depth=1, min_samples_leaf=4).fit(X, y)
    assert [simplify(tree, preserve).tree_.node_count for preserve in MODES] == [3, 3, 1]
    forest = RandomForestClassifier(5, max_depth=1, min_samples_leaf=3, bootstrap=False, random_state=0).fit(X, y)
    assert [adapt(simplify(forest, preserve)).forest.n_nodes for preserve in MODES] == [15, 15, 15]


def test_to_preserve_labels_values_that_nearly_tie_are_not_merged():
    near = np.nextafter(0.5, 1)
    forest = classifier([[0.5, 0.5], [0.5, 0.5], [1 - near, near]])
    assert simplify(forest, "probabilities").n_nodes == 1
    assert simplify(forest, "labels").n_nodes == 3


def classifier(value):
    """Return a stump of class probabilities."""
    facts = {"link": "probability", "n_classes": (2,), "aggregation": "mean"}
    return tree_forest([2, -1, -1], [0, -1, -1], [0.0, 0.0, 0.0], value, **facts)


def test_after_preserving_labels_no_siblings_of_one_class_remain():
    small = simplify(case("tree classifier, best first").model, "labels").tree_
    for v in np.flatnonzero(small.children_left != -1):
        sides = [small.children_left[v], small.children_right[v]]
        if (small.children_left[sides] == -1).all():
            assert len({small.value[side, 0].argmax() for side in sides}) == 2


def test_merged_leaves_of_one_class_get_the_value_of_the_split():
    X = np.arange(8.0)[:, None]
    tree = DecisionTreeClassifier(max_depth=1, min_samples_leaf=4).fit(X, [0, 0, 0, 1, 0, 0, 0, 0])
    assert simplify(tree, "labels").predict_proba([[0.0]]).tolist() == [[0.875, 0.125]]


def test_a_split_of_another_class_takes_the_value_of_its_left_leaf():
    forest = classifier([[0.1, 0.9], [0.6, 0.4], [0.7, 0.3]])
    assert simplify(forest, "labels").value.tolist() == [[0.6, 0.4]]


@pytest.mark.parametrize("name", ["hist boosting regressor", "hist boosting classifier"])
def test_constant_trees_of_hist_gradient_boosting_move_into_the_baseline(name):
    model = prune_nodes(case(name).model, {0: [0], 3: [0]})
    assert simplify(model).n_iter_ == model.n_iter_
    small = simplify(model, "probabilities")
    assert small.n_iter_ == model.n_iter_ - 2
    assert_same(model, small, case(name).X_new, tolerance=1e-12)
    assert not np.array_equal(small._baseline_prediction, model._baseline_prediction)


@pytest.mark.parametrize("name", ["gradient boosting regressor", "gradient boosting classifier, on another model"])
def test_constant_trees_of_gradient_boosting_move_into_another_tree(name):
    model = prune_nodes(case(name).model, {0: [0], 3: [0]})
    assert simplify(model).n_estimators_ == 7
    small = simplify(model, "probabilities")
    assert small.n_estimators_ == len(small.estimators_) == 5
    assert_same(model, small, case(name).X_new, tolerance=1e-12)


def test_of_many_constant_trees_one_stays():
    c = case("gradient boosting regressor")
    model = prune_nodes(c.model, lambda node: True)
    small = simplify(model, "probabilities")
    assert small.n_estimators_ == 1
    assert_same(model, small, c.X_new, tolerance=1e-12)


def test_constant_trees_move_only_within_their_class():
    name = "gradient boosting classifier, three classes"
    model = prune_nodes(case(name).model, {0: [0], 1: [0], 2: [0], 4: [0]})
    small = simplify(model, "probabilities")
    assert small.n_estimators_ == 6
    assert_same(model, small, case(name).X_new, tolerance=1e-12)


def test_constant_trees_of_a_mean_stay():
    model = prune_nodes(case("random forest regressor").model, {0: [0]})
    assert len(simplify(model, "probabilities").estimators_) == 7


def test_an_isolation_forest_is_not_raised():
    model = tangled("isolation forest")
    reached = simplify(replace(adapt(model).forest, link="identity"))
    assert adapt(simplify(model)).forest.n_nodes > reached.n_nodes


def test_if_values_cannot_change_only_siblings_equal_to_their_parent_are_merged():
    model = copy.deepcopy(case("adaboost classifier").model)
    for estimator in model.estimators_:
        tree = estimator.tree_
        leaf = tree.children_left == -1
        tree.value[leaf] = [[0.9, 0.1]]
        tree.value[~leaf] = [[0.1, 0.9]]
    assert adapt(simplify(model)).forest.n_nodes == adapt(model).forest.n_nodes
    for estimator in model.estimators_:
        estimator.tree_.value[:] = [[0.9, 0.1]]
    assert adapt(simplify(model)).forest.n_nodes == len(model.estimators_)


def test_trees_five_thousand_deep_are_simplified():
    depth = 5_000
    right = np.full(2 * depth + 1, -1)
    right[: 2 * depth : 2] = np.arange(2, 2 * depth + 1, 2)
    feature = np.where(right == -1, -1, 0)
    value = np.arange(len(right))
    assert simplify(tree_forest(right, feature, value, value)).n_nodes == len(right)
    assert simplify(tree_forest(right, feature, -value, value)).n_nodes == 3
    assert simplify(tree_forest(right, feature, value, np.ones(len(right)))).n_nodes == 1
    assert prune_nodes(tree_forest(right, feature, value, value), lambda node: node.depth == 4_000).max_depth == 4_000


def test_a_model_that_cannot_be_simplified_comes_back_as_a_copy():
    X = np.arange(20.0)[:, None]
    tree = DecisionTreeRegressor().fit(X, X[:, 0])
    small = simplify(tree)
    assert small is not tree
    assert small.tree_ is not tree.tree_
    assert small.tree_.node_count == tree.tree_.node_count


def test_boosting_that_has_nothing_left_to_learn_shrinks():
    X = np.arange(20.0)[:, None]
    model = GradientBoostingRegressor(learning_rate=1.0, n_estimators=30).fit(X, (X[:, 0] > 9).astype(float))
    assert simplify(model, "probabilities").n_estimators_ < 5


def test_an_unknown_mode_is_refused():
    with pytest.raises(ValueError, match=r"preserve='all' is not supported\. Use one of: exact, probabilities, labels"):
        simplify(stump(0, 1), "all")
