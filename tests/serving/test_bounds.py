"""Buying stops early only if no remaining column can change the answer, also with ties."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.tree import DecisionTreeClassifier
from tests.strategies import examples, forests, random_forest, random_rows, step, walk

from secateur.costs import FeatureCost
from secateur.forest import Forest
from secateur.forest.routing import raw_scores, route
from secateur.libraries import adapt
from secateur.serving import LazyPredictor

seeds = st.integers(0, 2**32 - 1)


def coarse(rng, forest):
    """Return the forest with few distinct values, so that scores tie and many subtrees are constant."""
    value = rng.choice([-1.0, 0.0, 0.5, 1.0], forest.value.shape)
    if forest.link == "probability":
        value = np.abs(value)
    return replace(forest, value=value, base=np.round(forest.base), tree_weight=np.ones(forest.n_trees))


@examples(150)
@given(forests(links=("probability", "logit", "softmax"), max_trees=6), seeds, st.booleans(), st.booleans())
def test_the_label_never_changes(forest, seed, ties, single):
    rng = np.random.default_rng(seed)
    if ties:
        forest = coarse(rng, forest)
    if single:
        forest = replace(forest, sum_dtype="float32")
    X = random_rows(rng, 12, forest.n_features)
    cost = FeatureCost(rng.integers(0, 4, forest.n_features).astype(float))
    expected = adapt(forest).predict(raw_scores(forest, route(forest, X)))
    predictor = LazyPredictor(forest, cost)
    assert predictor.why_not_label is None
    answers = predictor.predict(X, same="label")
    assert np.array_equal(answers.prediction, expected)
    assert answers.certain.all()


@examples(100)
@given(forests(max_trees=6), seeds, st.booleans())
def test_values_are_bit_identical_and_no_unneeded_column_is_bought(forest, seed, ties):
    rng = np.random.default_rng(seed)
    forest = coarse(rng, forest) if ties else forest
    X = random_rows(rng, 8, forest.n_features)
    full = LazyPredictor(forest).predict(X, same="leaves")
    lean = LazyPredictor(forest).predict(X, same="value")
    expected = raw_scores(forest, route(forest, X))
    assert np.array_equal(full.raw, expected)
    assert np.array_equal(lean.raw, expected)
    assert np.array_equal(full.bought, [needed(forest, x) for x in X])
    assert np.array_equal(lean.bought, [needed(forest, x, lean=True) for x in X])


def needed(forest, x, lean=False):
    """Return the columns on the paths of a row; with `lean`, a path ends where all leaves below have the same value."""
    columns = np.zeros(forest.n_features, bool)
    for tree in range(forest.n_trees):
        v, last = int(forest.tree_start[tree]), walk(forest, tree, x)
        while v != last:
            below = forest.value[v : forest.end[v]][~forest.is_split[v : forest.end[v]]]
            if lean and len({leaf.tobytes() for leaf in below}) == 1:
                break
            columns[forest.feature[v]] = True
            v = step(forest, v, x)
    return columns


@examples(60)
@given(forests(links=("probability", "logit", "softmax"), max_trees=5), seeds)
def test_a_decided_label_holds_for_all_values_of_the_columns_not_bought(forest, seed):
    rng = np.random.default_rng(seed)
    X = random_rows(rng, 6, forest.n_features)
    answers = LazyPredictor(forest).predict(X, same="label")
    others = np.repeat(random_rows(rng, 40, forest.n_features)[None], len(X), axis=0)
    for rows, x, bought, label in zip(others, X, answers.bought, answers.prediction, strict=True):
        rows[:, bought] = x[bought]
        found = adapt(forest).predict(raw_scores(forest, route(forest, rows)))
        assert (found == label).all()


def test_rounding_of_float32_sums_does_not_change_the_label():
    big = 2.0**24  # in single precision, big + 1 − big is 0 and big + 3 − big is 4
    forest = Forest(
        tree_start=np.array([0, 1, 4, 5]),
        right=np.array([-1, 3, -1, -1, -1], np.int32),
        feature=np.array([-1, 0, -1, -1, -1], np.int32),
        threshold=np.zeros(5),
        default_left=np.zeros(5, bool),
        value=np.array([[big], [1.0], [1.0], [3.0], [-big]]),
        weight=np.ones(5),
        tree_weight=np.ones(3),
        tree_output=np.full(3, -1, np.int32),
        base=np.zeros(1),
        link="logit",
        n_features=1,
        n_classes=(2,),
        sum_dtype="float32",
    )
    answers = LazyPredictor(forest).predict(np.array([[-1.0], [1.0]]), same="label")
    assert answers.prediction.tolist() == [0, 1]


@examples(60)
@given(forests(links=("identity",), max_trees=5), seeds, st.floats(0.01, 3))
def test_predictions_differ_by_at_most_the_tolerance(forest, seed, tolerance):
    rng = np.random.default_rng(seed)
    X = random_rows(rng, 10, forest.n_features)
    answers = LazyPredictor(forest).predict(X, tolerance=tolerance)
    full = raw_scores(forest, route(forest, X))
    assert (np.abs(answers.raw - full) <= tolerance).all()
    assert answers.certain.all()


def test_a_tolerance_saves_features_and_requires_a_linear_model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    model = GradientBoostingRegressor(n_estimators=30, max_depth=2).fit(X, X[:, 0] + 0.2 * X[:, 1] * X[:, 2])
    predictor = LazyPredictor(model)
    near, full = predictor.predict(X, tolerance=0.5), predictor.predict(X)
    assert np.abs(near.prediction - full.prediction).max() <= 0.5
    assert near.price.mean() < 0.8 * full.price.mean()
    logit = random_forest(rng, link="logit", n_classes=(2,))
    with pytest.raises(ValueError, match="link 'logit' of this model is not linear"):
        LazyPredictor(logit).predict(X, tolerance=0.5)
    with pytest.raises(ValueError, match="Use same='value'"):
        predictor.predict(X, same="label", tolerance=0.5)


def test_prices_stay_within_max_cost_and_certain_answers_equal_the_full_model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6))
    y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
    model = RandomForestClassifier(25, max_depth=5, random_state=0).fit(X, y)
    prices = np.array([3.0, 1.0, 2.0, 0.0, 1.5, 4.0])
    predictor = LazyPredictor(model, FeatureCost(prices))
    right = []
    for cap in (0, 2.5, 5, 8, 20):
        answers = predictor.predict(X, same="label", max_cost=cap)
        assert (answers.price <= cap).all()
        assert set(answers.stopped) <= {"complete", "decided", "capped"}
        same = answers.prediction == model.predict(X)
        assert same[answers.certain].all()
        right.append(same.mean())
    assert answers.certain.all()
    assert right == sorted(right)
    assert 0.5 < right[1] < 1


@pytest.mark.parametrize("price", [0.0, 2.0])
def test_a_feature_whose_price_equals_the_remaining_budget_is_bought(price):
    X = np.array([[0.0], [1.0]])
    tree = DecisionTreeClassifier().fit(X, [0, 1])
    answers = LazyPredictor(tree, FeatureCost([price])).predict(X, max_cost=price)
    assert answers.price.tolist() == [price, price]
    assert answers.prediction.tolist() == [0, 1]
    assert answers.certain.all()


def test_with_max_cost_zero_the_prediction_is_that_of_the_roots():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 3))
    model = RandomForestRegressor(9, random_state=0).fit(X, X[:, 0])
    answer = LazyPredictor(model).predict_one(None, max_cost=0)
    assert answer.features == ()
    assert answer.stopped == "capped"
    assert answer.prediction == pytest.approx(np.mean([tree.tree_.value[0, 0, 0] for tree in model.estimators_]))


@pytest.mark.parametrize(("same", "word"), [("lable", "same='lable' is not supported"), ("label", "missing='skip'")])
def test_unknown_options_are_refused(same, word):
    forest = random_forest(np.random.default_rng(0))
    with pytest.raises(ValueError, match=word):
        LazyPredictor(forest).predict_one(None, same=same, missing="skip" if same == "label" else "model")


@pytest.mark.parametrize("max_cost", [-1, np.nan])
def test_a_negative_or_nan_max_cost_is_refused(max_cost):
    with pytest.raises(ValueError, match="at least 0"):
        LazyPredictor(random_forest(np.random.default_rng(0))).predict_one(None, max_cost=max_cost)
