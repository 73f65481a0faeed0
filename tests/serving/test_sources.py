"""Batches: every source gives the same answers, and a failure affects only its rows."""

import sqlite3

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tests.in_one_test import for_each
from tests.serving.helpers import needs
from tests.strategies import random_forest, random_rows

from secateur.costs import FeatureCost
from secateur.forest.routing import raw_scores, route
from secateur.libraries import adapt
from secateur.serving import Calls, Columns, FeatureSource, FeatureUnavailableError, LazyPredictor, Sql, as_source

N_ROWS = 100_000
NAMES = ["age", "blood pressure", 'the "last" one', "insulin", "weight"]


@pytest.fixture(scope="module")
def rows():
    values = np.random.default_rng(0).normal(size=(N_ROWS, len(NAMES))).round(2)
    return pd.DataFrame(np.where(np.random.default_rng(1).random(values.shape) < 0.02, np.nan, values), columns=NAMES)


@pytest.fixture(scope="module")
def model(rows):
    some = rows[:2000]
    y = (some.fillna(0).to_numpy() @ [1, 2, 0.5, 0, -1] > 0).astype(int)
    return RandomForestClassifier(20, max_leaf_nodes=8, random_state=0).fit(some, y)


@pytest.fixture(scope="module")
def database(rows):
    connection = sqlite3.connect(":memory:")
    fill(connection, rows)
    yield connection
    connection.close()


def fill(connection, rows):
    columns = ", ".join('"{}" REAL'.format(name.replace('"', '""')) for name in NAMES)
    connection.execute(f"CREATE TABLE people (id INTEGER PRIMARY KEY, {columns})")
    marks = ", ".join("?" * (1 + len(NAMES)))
    values = [(7 * k, *row) for k, row in enumerate(rows.to_numpy().tolist())]  # SQLite stores NaN as NULL
    connection.executemany(f"INSERT INTO people VALUES ({marks})", values)


class Shaky:
    """A source that fails at random for single values and whole calls, and records its requests."""

    def __init__(self, source, seed):
        self.source, self.rng = source, np.random.default_rng(seed)
        self.requested, self.lost = [], set()

    def fetch(self, feature, rows):
        self.requested += [(feature, row) for row in rows.tolist()]
        if self.rng.random() < 0.1:
            self.lost |= set(rows.tolist())
            raise ConnectionError("the line is dead")
        values = list(self.source.fetch(feature, rows))
        for k in np.flatnonzero(self.rng.random(len(values)) < 0.01):
            values[k] = TimeoutError("too slow")
            self.lost.add(rows[k].item())
        return values


def test_a_hundred_thousand_rows_of_a_database_that_fails_at_random(model, rows, database):
    source = Shaky(Sql(database, "people"), 0)
    keys = 7 * np.arange(N_ROWS)
    answers = LazyPredictor(model).predict(source, keys, missing="report", batch_size=30_000)
    gone = np.isin(keys, list(source.lost))
    hole = (needs(model, rows) & rows.isna().to_numpy()).any(axis=1)
    assert 0.01 < gone.mean() < 0.9
    assert np.array_equal(answers.failed[~hole], gone[~hole])
    assert answers.failed[hole].all()
    assert set(answers.reasons) == set(np.flatnonzero(answers.failed).tolist())
    assert all(prediction is None for prediction in answers.prediction[answers.failed])
    expected = model.predict_proba(rows)
    assert np.array_equal(answers.probabilities[~answers.failed], expected[~answers.failed])
    assert len(set(source.requested)) == len(source.requested)
    reasons = " ".join(set(answers.reasons.values()))
    assert "ConnectionError: the line is dead" in reasons
    assert "TimeoutError: too slow" in reasons


def test_lost_values_are_routed_as_missing(model, rows, database):
    source = Shaky(Sql(database, "people"), 1)
    keys = 7 * np.arange(5000)
    answers = LazyPredictor(model).predict(source, keys)
    seen = rows[:5000].mask(answers.missing)
    assert np.array_equal(answers.probabilities, model.predict_proba(seen))
    assert not answers.failed.any()
    assert set(answers.reasons) == {key // 7 for key in source.lost}
    assert np.array_equal(answers.price, answers.bought.sum(axis=1))
    assert np.array_equal(answers.bought | answers.missing, needs(model, seen))


def down(broken):
    """Return a function source in which one feature is down and all others are 0."""

    def get(feature, row):
        if feature == broken:
            raise ConnectionError("down")
        return 0.0

    return get


@pytest.mark.parametrize("same", ["leaves", "value", "label"])
def test_an_answer_that_depends_on_a_feature_that_is_down_is_not_certain(same):
    X = np.array([[-1.0, 0.0], [1.0, 0.0]] * 4)
    predictor = LazyPredictor(DecisionTreeClassifier().fit(X, X[:, 0] > 0))
    answers = predictor.predict(down(0), range(2), same=same)
    assert answers.stopped.tolist() == ["unavailable"] * 2
    assert not answers.certain.any()
    assert predictor.predict(down(1), range(2), same=same).certain.all()


@for_each("seed", range(60))
def test_certain_answers_are_those_on_the_true_values_if_a_feature_is_down(seed):
    rng = np.random.default_rng(seed)
    forest = random_forest(rng, n_trees=3, link="logit", n_classes=(2,))
    X = random_rows(rng, 20, forest.n_features)
    broken = rng.integers(forest.n_features)

    def get(feature, row):
        if feature == broken:
            raise ConnectionError("down")
        return X[row, feature]

    truth = adapt(forest).predict(raw_scores(forest, route(forest, X)))
    for same in ("value", "label"):
        answers = LazyPredictor(forest).predict(get, range(20), same=same)
        assert np.array_equal(answers.prediction[answers.certain], truth[answers.certain])
        # An answer that never looked at the feature is certain.
        assert answers.certain[~answers.missing.any(axis=1)].all()


@pytest.mark.parametrize(
    "value",
    [10**400, "no number", 1j, np.datetime64("2020-01-01"), np.timedelta64(3, "ns"), np.complex128(1j)],
)
def test_a_value_that_is_no_number_affects_only_its_row(model, value):
    columns = {name: [0.0, 0.0, 0.0] for name in NAMES}
    columns |= {name: [0.0, value, 0.0] for name in NAMES[:2]}
    answers = LazyPredictor(model).predict(columns)
    assert answers.certain.tolist() == [True, False, True]
    assert list(answers.reasons) == [1]


@pytest.mark.parametrize("column", [np.zeros(2, "datetime64[ns]"), np.zeros(2, "timedelta64[s]"), np.full(2, 1j)])
def test_columns_of_dates_durations_and_complex_numbers_are_no_numbers(model, column):
    columns = dict.fromkeys(NAMES, column)
    answers = LazyPredictor(model).predict(columns, missing="report")
    assert answers.failed.all()
    assert "is not a number" in answers.reasons[0]


@pytest.fixture(scope="module")
def sources(rows, database):
    duck = duckdb.connect()
    few = rows[:3000]
    duck.register("frame", few.assign(id=7 * np.arange(3000)))
    duck.execute("CREATE TABLE people AS SELECT * FROM frame")
    keys = 7 * np.arange(3000)
    other = {name: name.upper() for name in NAMES}
    duck.execute("CREATE TABLE renamed AS SELECT * FROM frame")
    for name in NAMES:
        old = name.replace('"', '""')
        duck.execute(f'ALTER TABLE renamed RENAME COLUMN "{old}" TO "{old.upper()}_"')
    return {
        "frame": (few, None),
        "some rows of a frame": (rows, range(3000)),
        "arrow": (pa.Table.from_pandas(few), None),
        "matrix": (few.to_numpy(), None),
        "dict of arrays": ({name: few[name].to_numpy() for name in NAMES}, None),
        "dict of lists": ({name: few[name].tolist() for name in NAMES}, None),
        "function": (lambda feature, row: few[feature].iloc[row], range(3000)),
        "SQLite": (Sql(database, "people"), keys),
        "DuckDB": (Sql(duck, "people"), keys),
        "DuckDB, other names": (Sql(duck, "main.renamed", columns={k: f"{v}_" for k, v in other.items()}), keys),
    }


KINDS = ["frame", "some rows of a frame", "arrow", "matrix", "dict of arrays", "dict of lists", "function", "SQLite"]


@pytest.mark.parametrize("kind", [*KINDS, "DuckDB", "DuckDB, other names"])
def test_every_source_gives_the_same_answers(model, rows, sources, kind):
    source, names = sources[kind]
    answers = LazyPredictor(model).predict(source, names)
    assert np.array_equal(answers.probabilities, model.predict_proba(rows[:3000]))
    assert not answers.reasons
    again = LazyPredictor(model).predict(source, names, same="label", batch_size=701)
    assert np.array_equal(again.prediction, model.predict(rows[:3000]))


def test_unknown_keys_are_reported_or_raised(model, database):
    answers = LazyPredictor(model).predict(Sql(database, "people"), [0, 3, 7], missing="report")
    assert answers.failed[1]
    assert "Table people has no row with id 3" in answers.reasons[1]
    with pytest.raises(FeatureUnavailableError, match=r"Row 3: .*no row with id 3"):
        LazyPredictor(model).predict(Sql(database, "people"), [3], missing="raise")


def test_duplicate_keys_fail_only_their_rows(model):
    connection = sqlite3.connect(":memory:")
    pd.DataFrame({"id": [1, 2, 2], **dict.fromkeys(NAMES, 0.5)}).to_sql("people", connection, index=False)
    source = Sql(connection, "people", at_once=1)
    answers = LazyPredictor(model).predict(source, [1, 2], missing="report")
    assert answers.failed.tolist() == [False, True]
    assert "Several rows" in answers.reasons[1]
    connection.close()


def test_invalid_columns_and_rows_are_refused_before_anything_is_bought(model, rows, database):
    with pytest.raises(ValueError, match="has no column 'weight'"):
        LazyPredictor(model).predict(rows.drop(columns="weight"))
    with pytest.raises(ValueError, match="Cannot select feature 'age'"):
        LazyPredictor(model).predict(Sql(database, "people", columns=dict.fromkeys(NAMES, "nothing")), [0])
    for keys in ([N_ROWS], [-1], [0.5], ["x"]):
        with pytest.raises(ValueError, match="positions from 0 to 99999"):
            LazyPredictor(model).predict(rows, keys)
    with pytest.raises(ValueError, match=r"Sql, which has no length.* rows="):
        LazyPredictor(model).predict(Sql(database, "people"))
    with pytest.raises(ValueError, match="rows is empty"):
        LazyPredictor(model).predict(rows, [])
    with pytest.raises(TypeError, match="Cannot fetch features from an object of type int"):
        LazyPredictor(model).predict(3)


@pytest.mark.parametrize("answer", [[1.0], None, 5.0])
def test_rows_fail_if_the_source_returns_too_few_values(model, answer):
    class Broken:
        def fetch(self, feature, rows):
            return answer

    answers = LazyPredictor(model).predict(Broken(), range(3), missing="report")
    assert answers.failed.all()
    assert "one value per row" in answers.reasons[0]


def test_one_call_fetches_one_feature_of_many_rows(model, rows):
    calls = []

    class Counted(Columns):
        def fetch(self, feature, rows):
            calls.append(len(rows))
            return super().fetch(feature, rows)

    LazyPredictor(model).predict(Counted(rows[:5000].to_dict("series")))
    assert len(calls) <= len(NAMES) ** 2
    assert sum(calls) <= 5000 * len(NAMES)


def test_failed_numbers_are_nan():
    X = np.arange(20.0)[:, None]
    model = RandomForestClassifier(3, random_state=0).fit(X, X[:, 0] > 9)
    tree = DecisionTreeRegressor(random_state=0).fit(X, X[:, 0])
    values = {0: [1.0, None, 3.0]}
    assert np.array_equal(LazyPredictor(tree).predict(values, missing="report").prediction, [1, np.nan, 3], True)
    assert LazyPredictor(model).predict(values, missing="report").prediction.tolist() == [False, None, False]


def test_rows_may_be_named_by_anything(model, rows):
    names = [("a", 0), 1, "two", np.int64(3), None]
    source = Calls(lambda feature, row: rows[feature].iloc[[str(name) for name in names].index(str(row))])
    assert np.array_equal(LazyPredictor(model).predict(source, names).prediction, model.predict(rows[:5]))


def test_sources_are_recognised():
    assert isinstance(as_source(Calls(len)), Calls)
    assert isinstance(Sql(None, "t"), FeatureSource)
    assert len(as_source({"a": [1, 2]})) == 2


def test_a_shared_price_is_kept_when_one_of_the_group_is_lost():
    X = np.random.default_rng(0).normal(size=(200, 3))
    model = RandomForestClassifier(5, random_state=0).fit(X, X.sum(axis=1) > 0)
    cost = FeatureCost([1.0, 2.0, 4.0], {"needle": (10.0, [0, 1])})
    broken = {0: X[:, 0].tolist(), 1: [OSError("lost")] * 200, 2: X[:, 2].tolist()}
    source = Calls(lambda feature, row: broken[feature][row])
    answers = LazyPredictor(model, cost).predict(source, range(200), same="leaves")
    expected = answers.bought @ [1.0, 2.0, 4.0] + 10 * answers.bought[:, :2].any(axis=1)
    assert not answers.bought[:, 1].any()
    assert answers.price == pytest.approx(expected)
