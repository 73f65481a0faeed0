"""Predictions are bit-identical to those of the native model, for every library."""

import json

import numpy as np
import pytest
from tests.cases import FOR_SOLVERS, case
from tests.cases.spark import MODELS
from tests.serving.helpers import needs, price_of

from secateur.costs import FeatureCost
from secateur.files.models import load_model
from secateur.libraries import adapt
from secateur.serving import LazyPredictor

MORE = (
    "lightgbm classifier",
    "lightgbm classifier, table",
    "lightgbm booster, zero as missing",
    "lightgbm booster, categories, zero as missing",
    "xgboost_classifier_two",
    "xgboost_classifier_labels",
    "xgboost_classifier_logitraw",
    "xgboost_regressor_missing",
    "xgboost_booster_poisson",
    "xgboost_codes",
    "catboost categories",
    "catboost classifier, threshold",
    "catboost classes, one against all",
    "catboost embedding",
)
ON_ANOTHER = [name for name in FOR_SOLVERS if "on another model" in name]
NAMES = [name for name in (*FOR_SOLVERS, *MORE) if "spark" not in name and name not in ON_ANOTHER]


def predictor_of(name, cost=None):
    X = case(name).X
    return LazyPredictor(case(name).model, cost, example=X.iloc[:1] if hasattr(X, "iloc") else None)


def as_trained(name):
    """Return the new rows with categories in the order of training: XGBoost 2 identifies them by position."""
    X, new = case(name).X, case(name).X_new
    known = {column: dtype for column, dtype in getattr(X, "dtypes", {}).items() if dtype == "category"}
    for column, dtype in known.items():
        strange = new[column].cat.categories.difference(dtype.categories)
        new = new.assign(**{column: new[column].cat.set_categories([*dtype.categories, *strange])})
    return new


@pytest.mark.parametrize("name", NAMES)
def test_predictions_equal_those_of_the_library_at_the_price_of_the_features_on_the_paths(name):
    check_predictions(name)
    check_purchases(name)


def check_predictions(name):
    """Assert that values and early labels equal those of the library."""
    c, predictor = case(name), predictor_of(name)
    expected = c.predictions(c.model, as_trained(name))
    for same in ("leaves", "value"):
        answers = predictor.predict(c.X_new, same=same)
        assert not answers.reasons
        assert answers.certain.all()
        assert c.same(answers.prediction, expected["predict"])
        if "predict_proba" in expected:
            assert c.same(answers.probabilities, expected["predict_proba"])
    early = predictor.predict(c.X_new, same="label")
    assert early.certain.all()
    assert (early.price <= answers.price).all()
    if predictor.why_not_label is None:
        assert np.array_equal(early.prediction, expected["predict"])
    else:
        assert c.same(early.prediction, expected["predict"])


def check_purchases(name):
    """Assert that the features on the paths are bought at their price."""
    c = case(name)
    n_columns = c.X.shape[1]
    rng = np.random.default_rng(0)
    prices, group = rng.integers(0, 5, n_columns).astype(float), [0, n_columns - 1]
    cost = FeatureCost(prices, {"together": (2.5, group)})
    answers = predictor_of(name, cost).predict(c.X_new, same="leaves")
    if adapt(c.model).forest.n_features == n_columns:  # CatBoost has columns of its own behind these
        assert np.array_equal(answers.bought, needs(c.model, as_trained(name)))
        assert answers.price.mean() == pytest.approx(cost.mean_price(c.model, as_trained(name)))
    assert answers.price == pytest.approx(price_of(answers.bought, prices, [(2.5, group)]))


@pytest.mark.parametrize("name", ON_ANOTHER)
def test_a_model_that_starts_from_another_one_is_refused(name):
    with pytest.raises(ValueError, match="Pass a model trained without init="):
        LazyPredictor(case(name).model)


@pytest.mark.parametrize("kind", ["forest_classes", "forest_regression", "boosted_classes", "tree_classes"])
def test_saved_models_are_served_as_recorded_by_spark(kind):
    facts = json.loads((MODELS / "spark-4.3.0.json").read_text())
    X = np.array(facts["rows"], float)
    expected = {name: np.array(values) for name, values in facts["answers"][kind].items()}
    model = load_model(MODELS / f"spark-4.3.0-{kind}")
    predictor = LazyPredictor(model)
    answers = predictor.predict(X, same="leaves")
    assert np.array_equal(answers.prediction, expected["prediction"])
    assert np.array_equal(answers.bought, needs(model, X))
    if "probability" in expected:
        assert np.array_equal(answers.probabilities, expected["probability"])
        assert predictor.why_not_label is None
    assert np.array_equal(predictor.predict(X, same="label").prediction, expected["prediction"])


@pytest.mark.parametrize(
    "name", ["random forest classifier", "xgboost_classifier_two", "lightgbm classifier, table", "catboost categories"]
)
def test_one_row_at_a_time_gives_what_a_batch_gives(name):
    c, predictor = case(name), predictor_of(name)
    batch = predictor.predict(c.X_new, same="label")
    for row in range(0, len(c.X_new), 29):
        values = dict(zip(predictor.features, np.asarray(c.X_new, object)[row], strict=True))
        answer = predictor.predict_one(values.__getitem__, same="label")
        assert answer.prediction == batch.prediction[row]
        assert answer.features == batch[row].features
        assert answer.price == batch.price[row]
        assert np.array_equal(answer.raw, batch.raw[row])


def test_early_labels_need_fewer_features():
    names = ["random forest classifier", "gradient boosting classifier", "isolation forest", "xgboost_classifier_two"]
    for name in [*names, "lightgbm classifier", "catboost classes", "adaboost classifier, three classes"]:
        predictor = predictor_of(name)
        early, full = (predictor.predict(case(name).X_new, same=same) for same in ("label", "leaves"))
        assert early.price.mean() < full.price.mean(), name
        assert (early.stopped == "decided").any(), name
