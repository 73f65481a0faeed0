"""Columns that a model library refuses are refused by their name, before anything is computed."""

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from catboost import CatBoostRegressor
from sklearn.ensemble import AdaBoostRegressor, GradientBoostingRegressor, HistGradientBoostingRegressor
from sklearn.tree import DecisionTreeRegressor

from secateur import prune_path
from secateur.errors import InvalidInputError
from secateur.libraries import adapt

X = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=["age", "visit"])
Y = X["age"].to_numpy()
MODELS = {
    "sklearn": DecisionTreeRegressor(max_depth=2),
    "histograms": HistGradientBoostingRegressor(max_iter=2),
    "xgboost": xgb.XGBRegressor(n_estimators=2),
    "lightgbm": lgb.LGBMRegressor(n_estimators=2, verbose=-1),
    "catboost": CatBoostRegressor(iterations=2, verbose=0, allow_writing_files=False),
}
COLUMNS = {
    "dates": pd.date_range("2020-01-01", periods=40),
    "dates with a zone": pd.date_range("2020-01-01", periods=40, tz="UTC"),
    "durations": pd.to_timedelta(np.arange(40), "s"),
    "complex numbers": np.full(40, 1j),
    "text": ["monday"] * 40,
    "integers beyond floats": pd.Series([10**400] * 40, dtype=object),
}


@pytest.fixture(scope="module", params=MODELS)
def adapter(request):
    return adapt(MODELS[request.param].fit(X, Y))


@pytest.mark.parametrize("kind", COLUMNS)
def test_a_column_that_is_not_numeric_is_refused_by_its_name(adapter, kind):
    with pytest.raises(InvalidInputError, match=r"(?s)'visit'.*Encode"):
        adapter.rows(X.assign(visit=COLUMNS[kind]))


def test_a_list_with_a_value_that_is_no_number_is_refused_by_its_position(adapter):
    with pytest.raises(InvalidInputError, match="Column 1 of X"):
        adapter.rows([[0.0, "monday"], [1.0, 2.0]])


@pytest.mark.parametrize("name", ["xgboost", "lightgbm"])
def test_numbers_as_text_are_refused_by_libraries_that_refuse_them(name):
    model = MODELS[name].fit(X, Y)
    rows = X.assign(visit=["1.5"] * 40)
    with pytest.raises(ValueError, match="visit"):
        model.predict(rows)
    with pytest.raises(InvalidInputError, match=r"'visit' of X has text, such as '1\.5'"):
        adapt(model).rows(rows)


@pytest.mark.parametrize("model", [GradientBoostingRegressor(n_estimators=2), AdaBoostRegressor(n_estimators=2)])
def test_missing_values_are_refused_by_name_for_models_that_take_none(model):
    rows = X.assign(visit=[np.nan, *X["visit"][1:]])
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X, Y).predict(rows)
    with pytest.raises(InvalidInputError, match=r"missing values .* in column 'visit'"):
        prune_path(model, rows, Y)
