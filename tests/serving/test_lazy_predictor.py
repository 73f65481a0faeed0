"""Single rows: which features are requested, in which order, at which price, and how unavailable ones are handled."""

import asyncio

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tests.serving.helpers import Recorder, needs, price_of

from secateur.costs import FeatureCost, NodeCost
from secateur.serving import FeatureUnavailableError, LazyPredictor

X, Y = load_breast_cancer(return_X_y=True, as_frame=True)
X = X.iloc[:, :10]
NAMES = list(X.columns)
PRICES = [1.0, 5.0, 1.0, 1.0, 8.0, 2.0, 2.5, 4.0, 0.0, 3.0]
GROUPS = {"microscope": (10.0, [NAMES[1], NAMES[4]])}


@pytest.fixture(scope="module")
def model():
    return RandomForestClassifier(20, max_depth=5, random_state=0).fit(X[:300], Y[:300])


@pytest.fixture(scope="module")
def holes():
    """Return a model trained on rows with missing values, and new rows with missing values."""
    rows = X.mask(np.random.default_rng(0).random(X.shape) < 0.2)
    return RandomForestClassifier(20, max_leaf_nodes=9, random_state=0).fit(rows[:300], Y[:300]), rows[300:]


@pytest.mark.parametrize("same", ["leaves", "value", "label"])
def test_each_feature_is_requested_at_most_once_and_listed_in_the_answer(model, same):
    predictor = LazyPredictor(model, FeatureCost(PRICES, GROUPS))
    for k in range(300, 340):
        get = Recorder(X.iloc[k])
        answer = predictor.predict_one(get, same=same)
        assert len(set(get.requested)) == len(get.requested)
        assert answer.features == tuple(get.requested)
        assert set(get.requested) <= set(np.array(NAMES)[needs(model, X[k : k + 1])[0]])
        assert answer.prediction == model.predict(X[k : k + 1])[0]
        bought = np.isin(NAMES, get.requested)[None]
        assert answer.price == pytest.approx(price_of(bought, PRICES, [(10.0, [1, 4])])[0])


def test_the_price_of_a_row_equals_that_of_feature_cost(model):
    cost = FeatureCost(PRICES, GROUPS)
    for k in (300, 301, 302):
        answer = LazyPredictor(model, cost).predict_one(X.iloc[k].get, same="leaves")
        assert answer.price == pytest.approx(cost.mean_price(model, X[k : k + 1]))


def test_free_features_and_features_of_a_paid_group_are_bought_first():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(600, 4))
    y = (rows.sum(axis=1) > 0).astype(int)
    model = RandomForestClassifier(40, max_depth=4, max_features=1, random_state=0).fit(rows, y)
    cost = FeatureCost([1.0, 0.0, 0.0, 50.0], {"needle": (5.0, [0, 2])})
    answer = LazyPredictor(model, cost).predict_one(rows[0].__getitem__, same="leaves")
    assert answer.features[0] == 1
    assert answer.features[-1] == 3
    assert answer.price == 56.0


def test_the_cheaper_of_two_equal_features_is_bought_first():
    rows = np.repeat(np.random.default_rng(0).normal(size=(300, 1)), 2, axis=1)
    model = RandomForestClassifier(30, max_features=1, random_state=0).fit(rows, rows[:, 0] > 0)
    for prices in ([1.0, 9.0], [9.0, 1.0]):
        answer = LazyPredictor(model, FeatureCost(prices)).predict_one(rows[0].__getitem__, same="leaves")
        assert answer.features[0] == int(np.argmin(prices))


def test_prices_by_row_are_those_of_the_row(model):
    prices = np.random.default_rng(0).uniform(1, 5, (20, 10))
    predictor = LazyPredictor(model, FeatureCost(row_prices=prices))
    answers = predictor.predict(X[300:320], same="leaves", batch_size=7)
    assert answers.price == pytest.approx((needs(model, X[300:320]) * prices).sum(axis=1))
    assert predictor.predict_one(X.iloc[303].get, same="leaves", row=3).price == pytest.approx(answers.price[3])
    with pytest.raises(ValueError, match="row_prices has 20 rows"):
        predictor.predict(X[300:310])
    with pytest.raises(ValueError, match="prices for rows 0 to 19"):
        predictor.predict_one(X.iloc[303].get, row=20)


def test_features_have_names_or_else_numbers(model):
    plain = DecisionTreeClassifier(random_state=0).fit(X.to_numpy(), Y)
    assert LazyPredictor(model).features == tuple(NAMES)
    assert LazyPredictor(plain).features == tuple(range(10))
    assert LazyPredictor(plain, FeatureCost(dict(zip(NAMES, PRICES, strict=True)))).features == tuple(NAMES)
    assert LazyPredictor(plain).predict_one(X.iloc[0].to_numpy().__getitem__).prediction == plain.predict(X[:1].values)
    assert LazyPredictor(model, FeatureCost(PRICES, GROUPS)).full_price()[0] == sum(PRICES) + 10


@pytest.mark.parametrize("at_once", [1, 3, 100])
def test_asynchronous_requests_give_the_same_answer(model, at_once):
    predictor = LazyPredictor(model, FeatureCost(PRICES))
    for same in ("leaves", "label"):
        for k in range(300, 310):
            get, alone = Recorder(X.iloc[k]), predictor.predict_one(X.iloc[k].get, same=same)
            answer = asyncio.run(predictor.predict_one_async(get.wait, same=same, at_once=at_once))
            assert answer.prediction == alone.prediction
            assert len(set(get.requested)) == len(get.requested)
            assert answer.price == pytest.approx(price_of(np.isin(NAMES, get.requested)[None], PRICES)[0])
            if same == "leaves" or at_once == 1:
                assert set(answer.features) == set(alone.features)


def test_at_once_features_are_requested_concurrently(model):
    under_way, most = set(), 0

    async def get(feature):
        nonlocal most
        under_way.add(feature)
        most = max(most, len(under_way))
        await asyncio.sleep(0)
        under_way.remove(feature)
        return X.iloc[300][feature]

    asyncio.run(LazyPredictor(model).predict_one_async(get, at_once=4))
    assert most == 4
    asyncio.run(LazyPredictor(model).predict_one_async(get))
    assert most == 4


def test_max_cost_holds_with_concurrent_requests(model):
    for cap in (3.0, 7.0):
        get = Recorder(X.iloc[300])
        answer = asyncio.run(
            LazyPredictor(model, FeatureCost(PRICES)).predict_one_async(get.wait, max_cost=cap, at_once=5)
        )
        assert answer.price <= cap
        assert answer.stopped == "capped"


@pytest.mark.parametrize("gone", [None, np.nan, pd.NA, TimeoutError("too slow"), "no number"])
def test_an_unavailable_value_is_routed_as_missing_or_reported_or_raised(holes, gone):
    model, rows = holes
    predictor = LazyPredictor(model, FeatureCost(PRICES))
    row = rows.iloc[0].copy()
    first = predictor.predict_one(row.get).features[0]
    row[first] = np.nan
    values = {**row.to_dict(), first: gone}
    answer = predictor.predict_one(Recorder(values), same="leaves")
    expected = model.predict_proba(row.to_frame().T.astype(float))[0]
    assert np.array_equal(answer.probabilities, expected)
    assert first in answer.missing
    broken = isinstance(gone, Exception | str)
    assert (first in answer.features) != broken
    assert answer.price == pytest.approx(price_of(np.isin(NAMES, answer.features)[None], PRICES)[0])
    assert (answer.reason is not None) == broken
    row = {name: 0.0 if value != value else value for name, value in row.to_dict().items()} | {first: gone}
    reported = predictor.predict_one(Recorder(row), missing="report")
    assert reported.prediction is None
    assert reported.stopped == "failed"
    assert repr(first) in reported.reason
    with pytest.raises(FeatureUnavailableError, match=first):
        predictor.predict_one(Recorder(row), missing="raise")


def test_missing_values_are_routed_as_the_model_routes_them(holes):
    model, rows = holes
    answers = LazyPredictor(model).predict(rows)
    assert np.array_equal(answers.probabilities, model.predict_proba(rows))
    assert np.array_equal(answers.missing, answers.bought & rows.isna().to_numpy())
    reported = LazyPredictor(model).predict(rows, missing="report")
    assert np.array_equal(reported.failed, (needs(model, rows) & rows.isna().to_numpy()).any(axis=1))
    assert set(reported.reasons) == set(np.flatnonzero(reported.failed))


def test_a_model_that_rejects_missing_values_fails_these_rows():
    model = GradientBoostingClassifier(n_estimators=5).fit(X, Y)
    rows = X[:50].copy()
    rows.iloc[3:5] = np.nan
    answers = LazyPredictor(model).predict(rows)
    assert np.flatnonzero(answers.failed).tolist() == [3, 4]
    assert "does not support missing values" in answers.reasons[3]
    assert answers.prediction[3] is None
    kept = ~answers.failed
    assert (answers.prediction[kept] == model.predict(rows[kept])).all()
    with pytest.raises(FeatureUnavailableError, match="does not support missing values"):
        LazyPredictor(model).predict_one(rows.iloc[3].get)


def test_counts_below_one_are_refused(model):
    with pytest.raises(ValueError, match="batch_size is 0"):
        LazyPredictor(model).predict(X, batch_size=0)
    with pytest.raises(ValueError, match="at_once is 0"):
        asyncio.run(LazyPredictor(model).predict_one_async(None, at_once=0))


def test_costs_other_than_feature_prices_are_refused(model):
    with pytest.raises(TypeError, match=r"Pass FeatureCost\(prices\)"):
        LazyPredictor(model, NodeCost())
    with pytest.raises(ValueError, match="prices has shape"):
        LazyPredictor(model, FeatureCost([1.0, 2.0]))
    with pytest.raises(ValueError, match="no probabilities"):
        _ = LazyPredictor(DecisionTreeRegressor(max_depth=2).fit(X, Y)).predict_one(X.iloc[0].get).probabilities
