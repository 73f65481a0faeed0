"""Input columns are bought, also if the trees split on features derived from them."""

import numpy as np
import pandas as pd
import pytest
from catboost import CatBoostClassifier
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder, OrdinalEncoder, StandardScaler
from tests.serving.helpers import Recorder

from secateur.costs import FeatureCost
from secateur.libraries import adapt
from secateur.serving import LazyPredictor

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "colour": RNG.choice(["red", "green", "blue"], 300),
        "a": RNG.normal(size=300),
        "size": RNG.choice(["S", "M", "L"], 300),
        "b": np.where(RNG.random(300) < 0.2, np.nan, RNG.normal(size=300)),
        "c": RNG.normal(size=300),
    }
)
Y = ((FRAME.colour == "red") + FRAME.a + (FRAME["size"] == "M") * FRAME.b.fillna(0.5) > 0.5).astype(int)
FOREST = RandomForestClassifier(15, max_depth=6, random_state=0)
PREPARATIONS = {
    "one-hot": ColumnTransformer(
        [
            ("words", OneHotEncoder(drop="first"), ["size", "colour"]),
            ("holes", make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), ["b"]),
        ],
        remainder="passthrough",
    ),
    "codes": ColumnTransformer(
        [("words", OrdinalEncoder(), [0, 2]), ("holes", SimpleImputer(), slice(3, 4))], remainder="passthrough"
    ),
    "some dropped": ColumnTransformer(
        [("words", OneHotEncoder(max_categories=2), ["colour"]), ("no", "drop", ["size"]), ("a", "passthrough", ["a"])]
    ),
}


@pytest.fixture(scope="module", params=PREPARATIONS)
def pipeline(request):
    return make_pipeline(PREPARATIONS[request.param], FOREST).fit(FRAME, Y)


def columns_behind(pipeline, row):
    """Return the columns behind the features on the paths of a row, found by replacing the values of each column."""
    inner = adapt(pipeline[-1])
    trial = pd.concat([row] * 60, ignore_index=True)
    encoded = [pipeline[:-1].transform(row)]
    origin = {}
    for name in FRAME.columns:
        other = trial.assign(**{name: FRAME[name][:60].to_numpy()})
        differs = (np.asarray(pipeline[:-1].transform(other)) != np.asarray(encoded[0])).any(axis=0)
        origin.update(dict.fromkeys(np.flatnonzero(differs).tolist(), name))
    forest, x = inner.forest, inner.rows(np.asarray(encoded[0]))[0]
    needed = set()
    for v in forest.root.tolist():
        while forest.right[v] != -1:
            needed.add(origin[int(forest.feature[v])])
            v = v + 1 if x[forest.feature[v]] <= forest.threshold[v] else int(forest.right[v])
    return needed


def test_columns_before_the_steps_are_bought(pipeline):
    predictor = LazyPredictor(pipeline, example=FRAME[:1])
    assert predictor.features == tuple(FRAME.columns)
    answers = predictor.predict(FRAME, same="leaves")
    assert not answers.failed.any()
    assert np.array_equal(answers.probabilities, pipeline.predict_proba(FRAME))
    assert np.array_equal(predictor.predict(FRAME, same="label").prediction, pipeline.predict(FRAME))
    for row in (0, 7, 19):
        get = Recorder(FRAME.iloc[row])
        answer = predictor.predict_one(get, same="leaves")
        assert set(get.requested) == columns_behind(pipeline, FRAME[row : row + 1])
        assert answer.prediction == pipeline.predict(FRAME[row : row + 1])[0]


def test_prices_are_those_of_the_columns_before_the_steps():
    pipeline = make_pipeline(PREPARATIONS["one-hot"], FOREST).fit(FRAME, Y)
    prices = {"c": 1.0, "colour": 2.0, "b": 4.0, "a": 8.0, "size": 16.0}
    answers = LazyPredictor(pipeline, FeatureCost(prices), example=FRAME[:1]).predict(FRAME[:40], same="leaves")
    assert np.array_equal(answers.price, answers.bought @ [prices[name] for name in FRAME.columns])
    assert answers.price.max() <= 31


def test_inside_a_search_and_with_nothing_to_encode():
    numbers = FRAME[["a", "c"]].to_numpy()
    search = GridSearchCV(
        make_pipeline(StandardScaler(), FOREST), {"randomforestclassifier__max_depth": [2, 3]}, cv=2
    ).fit(numbers, Y)
    predictor = LazyPredictor(search)
    assert predictor.features == (0, 1)
    assert np.array_equal(predictor.predict(numbers).probabilities, search.predict_proba(numbers))


@pytest.mark.parametrize("step", [PCA(2), Normalizer(), FunctionTransformer(np.abs)])
def test_steps_that_mix_columns_are_refused(step):
    pipeline = make_pipeline(step, FOREST).fit(FRAME[["a", "c"]], Y)
    with pytest.raises(ValueError, match=f"{type(step).__name__}.*model\\[-1\\]"):
        LazyPredictor(pipeline)
    encoded = pipeline[:-1].transform(FRAME[["a", "c"]])
    assert np.array_equal(
        LazyPredictor(pipeline[-1]).predict(np.asarray(encoded)).prediction, pipeline.predict(FRAME[["a", "c"]])
    )


def test_a_value_that_a_step_rejects_fails_only_its_row():
    pipeline = make_pipeline(PREPARATIONS["codes"], FOREST).fit(FRAME, Y)
    rows = FRAME[:30].copy()
    rows.loc[[4, 21], "colour"] = "mauve"
    answers = LazyPredictor(pipeline, example=FRAME[:1]).predict(rows)
    bought = answers.failed
    assert set(np.flatnonzero(bought)) <= {4, 21}
    assert bought.any()
    assert all("mauve" in reason for reason in answers.reasons.values())
    assert np.array_equal(answers.probabilities[~bought], pipeline.predict_proba(FRAME[:30])[~bought])


def test_where_text_is_encoded_an_example_is_needed():
    pipeline = make_pipeline(PREPARATIONS["codes"], FOREST).fit(FRAME, Y)
    with pytest.raises(ValueError, match=r"cannot preprocess a row of missing values .* Pass example=X\[:1\]"):
        LazyPredictor(pipeline)
    with pytest.raises(ValueError, match="cannot preprocess the example"):
        LazyPredictor(pipeline, example=FRAME[["a", "b"]][:1])
    numbers = FRAME[["a", "b"]]
    scaled = make_pipeline(StandardScaler(), FOREST).fit(numbers, Y)
    assert np.array_equal(LazyPredictor(scaled).predict(numbers).probabilities, scaled.predict_proba(numbers))


def test_unknown_categories_are_routed_as_the_library_routes_them():
    frame = FRAME[["colour", "a"]].astype({"colour": "category"})
    model = HistGradientBoostingClassifier(categorical_features="from_dtype", max_iter=2, random_state=0).fit(frame, Y)
    rows = frame[:20].copy()
    rows["colour"] = rows["colour"].cat.add_categories("mauve")
    rows.loc[3, "colour"] = "mauve"
    answers = LazyPredictor(model, example=frame[:1]).predict(rows)
    assert np.array_equal(answers.probabilities, model.predict_proba(rows))


def test_statistics_of_one_category_are_bought_with_it_and_of_several_refused():
    options = {"iterations": 12, "depth": 4, "verbose": 0, "allow_writing_files": False, "one_hot_max_size": 1}
    frame = FRAME.assign(other=FRAME.colour + FRAME["size"]).drop(columns=["b", "c"])
    y = ((frame.colour == "red") ^ (frame["size"] == "M")).astype(int)
    words = ["colour", "size", "other"]
    single = CatBoostClassifier(**options, cat_features=words, max_ctr_complexity=1).fit(frame, y)
    answers = LazyPredictor(single, example=frame[:1]).predict(frame)
    assert np.array_equal(answers.probabilities, single.predict_proba(frame))
    both = CatBoostClassifier(**options, cat_features=words[:2], max_ctr_complexity=3).fit(
        frame.drop(columns="other"), y
    )
    with pytest.raises(ValueError, match=r"derived from several columns.*max_ctr_complexity=1"):
        LazyPredictor(both, example=frame[:1])
