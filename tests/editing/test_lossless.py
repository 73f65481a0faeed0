"""What simplify takes out nobody misses, and all that nobody would miss is taken out."""

import copy
import itertools
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tests.models import RECIPES, case
from tests.strategies import forests, generators, random_rows, slow_scores, walk

from secateur.editing import prune_nodes, simplify
from secateur.forest import Categories, Forest, check_forest
from secateur.io import adapt

METHODS = ("predict", "predict_proba", "score_samples", "decision_function")
MODES = ("exact", "probabilities", "labels")
cases = pytest.mark.parametrize("name", list(RECIPES))
modes = pytest.mark.parametrize("preserve", MODES)


def answers(model, X):
    """Return all the arrays a model predicts, by method."""
    found = {method: getattr(model, method)(X) for method in METHODS if hasattr(model, method)}
    return {method: answer if isinstance(answer, list) else [answer] for method, answer in found.items()}


def assert_same(model, other, X, tolerance=None):
    for method, expected in answers(model, X).items():
        for a, b in zip(expected, answers(other, X)[method], strict=True):
            if tolerance is None or a.dtype.kind not in "f":
                assert np.array_equal(a, b), method
            else:
                np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=method)


def trying_rows(name, forest):
    """Return rows that hit thresholds, and are infinite where the model allows it."""
    X = case(name).X_new
    if hasattr(X, "iloc"):
        return X
    rng = np.random.default_rng(6)
    X = X.copy()
    for v in rng.permutation(np.flatnonzero(forest.is_split & np.isfinite(forest.threshold)))[:200]:
        X[rng.integers(len(X)), forest.feature[v]] = forest.threshold[v]
    if name.startswith("hist"):
        X[rng.random(X.shape) < 0.05] = np.inf
        X[rng.random(X.shape) < 0.05] = -np.inf
    return X


def tangled(name):
    """Return a copy of the model with so few features, thresholds and values that splits contradict each other."""
    model = copy.deepcopy(case(name).model)
    rng = np.random.default_rng(7)
    inner = getattr(model, "best_estimator_", model)
    inner = inner.steps[-1][1] if hasattr(inner, "steps") else inner
    for predictor in np.ravel(getattr(inner, "_predictors", [])):
        nodes = predictor.nodes
        nodes["num_threshold"] = rng.choice([-1.0, 0.0, 0.5], len(nodes))
        nodes["value"] = rng.choice([-0.2, 0.1], len(nodes))
    for tree in [e.tree_ for e in np.ravel(getattr(inner, "estimators_", [inner])) if hasattr(e, "tree_")]:
        split = np.flatnonzero(tree.children_left != -1)
        tree.feature[split] = rng.integers(0, 2, len(split))
        tree.threshold[split] = rng.choice([-1.0, 0.0, 0.1, 0.5], len(split))
        tree.value[:] = tree.value.round(1) if tree.value.shape[2] > 1 else rng.choice([1.0, 2.0], tree.value.shape)
    return model


@cases
def test_exact_changes_no_bit_and_does_not_grow(name):
    model = case(name).model
    before = pickle.dumps(model)
    small = simplify(model)
    assert type(small) is type(model)
    assert adapt(small).forest.n_nodes <= adapt(model).forest.n_nodes
    assert_same(model, small, trying_rows(name, adapt(model).forest))
    assert pickle.dumps(model) == before


@cases
def test_exact_changes_no_bit_of_a_tangled_model_and_makes_it_smaller(name):
    model = tangled(name)
    small = simplify(model)
    assert_same(model, small, trying_rows(name, adapt(model).forest))
    if adapt(model).library == "sklearn" and adapt(model).forest.n_nodes > 30:
        assert adapt(small).forest.n_nodes < adapt(model).forest.n_nodes


@cases
def test_probabilities_stay_within_rounding(name):
    for model in (case(name).model, tangled(name)):
        small = simplify(model, "probabilities")
        assert adapt(small).forest.n_nodes <= adapt(simplify(model)).forest.n_nodes
        X = trying_rows(name, adapt(model).forest)
        for method, expected in answers(model, X).items():
            for a, b in zip(expected, answers(small, X)[method], strict=True):
                if a.dtype.kind == "f":
                    np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12, err_msg=method)


@cases
def test_labels_stay(name):
    for model in (case(name).model, tangled(name)):
        small = simplify(model, "labels")
        assert adapt(small).forest.n_nodes <= adapt(simplify(model)).forest.n_nodes
        X = trying_rows(name, adapt(model).forest)
        assert np.array_equal(model.predict(X), small.predict(X))


@cases
@modes
def test_twice_is_once(name, preserve):
    for model in (case(name).model, tangled(name)):
        once = simplify(model, preserve)
        assert_equal_forests(adapt(once).forest, adapt(simplify(once, preserve)).forest)


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
    # random values are all different: they name the leaves, and nothing is merged
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


def test_a_split_decided_above_gives_way_to_its_only_side():
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


def test_equal_is_bit_by_bit_unless_rounding_may_differ():
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


def test_merged_leaves_of_one_class_get_what_the_split_said():
    X = np.arange(8.0)[:, None]
    tree = DecisionTreeClassifier(max_depth=1, min_samples_leaf=4).fit(X, [0, 0, 0, 1, 0, 0, 0, 0])
    assert simplify(tree, "labels").predict_proba([[0.0]]).tolist() == [[0.875, 0.125]]


def test_a_split_that_would_say_another_class_takes_its_leaves_value():
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


def test_where_values_cannot_be_written_only_what_needs_none_is_merged():
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
    with pytest.raises(ValueError, match="preserve='all' is unknown; known are exact, probabilities, labels"):
        simplify(stump(0, 1), "all")
