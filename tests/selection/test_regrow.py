"""Regrowing: clones on fewer features, on one path with the model's own prunings."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import secateur as sc
from secateur.api import prune_point
from secateur.costs import FeatureCost
from secateur.data.rows import read_sample
from secateur.libraries import adapt
from secateur.path.combine import JoinedPath
from secateur.selection.regrow import importance, only
from secateur.solvers import CostDescent


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X_train, X_rest, y_train, y_rest = train_test_split(X, y, test_size=0.5, random_state=0)
    return RandomForestClassifier(15, random_state=0).fit(X_train, y_train), X_train, y_train, X_rest, y_rest


@pytest.fixture(scope="module")
def path(cancer):
    model, X, y, *_ = cancer
    return sc.prune_path(model, X, y, cost=FeatureCost(), solver=CostDescent(penalties=5), regrow=True)


def test_points_come_from_the_model_and_from_clones(path, cancer):
    model, X, *_ = cancer
    origins = set(path.table["origin"])
    assert {"anneal", "eliminate", "regrow anneal", "top_k anneal"} <= origins
    assert (np.diff(path.table["cost"][1:]) <= 1e-9).all()
    assert isinstance(path, JoinedPath)
    for point in np.unique(np.linspace(0, len(path) - 1, 12).astype(int)).tolist():
        chosen = path[point]
        native = chosen.to_model()
        assert type(native) is RandomForestClassifier
        assert FeatureCost().mean_price(native, X) == pytest.approx(path.table["cost"][point], abs=1e-9)
        assert np.array_equal(native.predict_proba(X), chosen.predict_proba(X))
        summary = chosen.summary()
        assert summary["after"]["nodes"] == path.table["n_nodes"][point]
        assert summary["before"]["nodes"] == sc.as_forest(model).n_nodes
        assert summary["clone"] == path.table["origin"][point].startswith(("regrow", "top_k"))
    assert np.array_equal(path[0].to_model().predict_proba(X), model.predict_proba(X))


def test_losses_are_those_of_the_native_models(path, cancer):
    *_, X, y = cancer
    judged = path.evaluate(X, y, loss=sc.losses.ZeroOne())
    for point in np.unique(np.linspace(0, len(path) - 1, 8).astype(int)).tolist():
        wrong = (path[point].to_model().predict(X) != y).mean()
        assert judged.table["loss"][point] == pytest.approx(wrong)
    assert judged.table["changed"][0] == 0


def test_a_path_evaluated_again_judges_clones_by_the_new_rows(path, cancer):
    *_, X, y = cancer
    clone = int(np.flatnonzero([name.startswith("regrow") for name in path.table["origin"]])[0])
    for rows in (slice(0, 140), slice(140, 280)):
        judged = path.take(np.array([clone])).evaluate(X[rows], y[rows], loss=sc.losses.Brier())
        miss = path[clone].to_model().predict_proba(X[rows]) - np.eye(2)[y[rows]]
        assert judged.table["loss"][1] == pytest.approx((miss**2).sum(axis=1).mean())


def test_the_best_point_within_a_budget_may_be_a_clone_and_the_model_is_not_touched(cancer):
    model, X, y, X_val, y_val = cancer
    before = model.predict_proba(X)
    cost = FeatureCost()
    chosen = prune_point(model, X, y, cost=cost, validation=(X_val, y_val), max_cost=3.0, regrow=True)
    assert cost.mean_price(chosen.to_model(), X) <= 3.0
    plain = prune_point(model, X, y, cost=cost, validation=(X_val, y_val), max_cost=3.0)
    assert chosen.row["loss"] <= plain.row["loss"]
    assert np.array_equal(model.predict_proba(X), before)


def test_held_out_rows_do_not_train_the_clones_that_judge():
    X, y = load_diabetes(return_X_y=True)
    model = GradientBoostingRegressor(n_estimators=20, random_state=0).fit(X, y)
    noise = np.random.default_rng(0).permutation(y)
    model.fit(X, noise)
    chosen = prune_point(model, X, noise, cost=FeatureCost(), validation="cv", regrow=True, max_cost=4.0)
    assert chosen.row["loss"] > 0.9 * noise.var()  # no clone that saw a row speaks for it


def test_a_column_that_is_left_out_has_one_value():
    X = np.arange(12.0).reshape(4, 3)
    assert only(X, frozenset({1})).tolist() == [[0, k, 2] for k in (1, 4, 7, 10)]
    frame = pd.DataFrame({"a": [1, 2], "b": pd.Categorical(["x", "y"]), "c": [0.5, 1.5]}, index=[7, 3])
    kept = only(frame, frozenset({2}))
    assert kept.dtypes.tolist() == frame.dtypes.tolist()
    assert kept["a"].tolist() == [1, 1]
    assert kept["b"].tolist() == ["x", "x"]
    assert kept["c"].tolist() == [0.5, 1.5]


def test_what_matters_is_found_important():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = (X[:, 2] > 0).astype(int)
    model = RandomForestClassifier(10, random_state=0).fit(X, y)
    adapter = adapt(model)
    assert importance(adapter.forest, read_sample(adapter, X, y)).argmax() == 2


def test_what_cannot_be_regrown_is_refused(cancer, tmp_path, path):
    model, X, y, *_ = cancer
    with pytest.raises(ValueError, match="but the cost is nodes"):
        sc.prune_path(model, X, y, regrow=True)
    with pytest.raises(ValueError, match="cannot be trained again"):
        sc.prune_path(sc.as_forest(model), X.to_numpy(), y, cost=FeatureCost(), regrow=True)
    wide = make_pipeline(OneHotEncoder(), RandomForestClassifier(3, max_depth=3, random_state=0))
    coarse = (X.mean() < X).iloc[:, :4]
    with pytest.raises(ValueError, match="columns of X"):
        sc.prune_path(wide.fit(coarse, y), coarse, y, cost=FeatureCost(), regrow=True)
    with pytest.raises(ValueError, match="a file holds those of one"):
        path.save(tmp_path / "path.npz")
    scaled = make_pipeline(StandardScaler(), RandomForestClassifier(4, max_depth=4, random_state=0)).fit(X, y)
    assert len(sc.prune_path(scaled, X, y, cost=FeatureCost(), solver=CostDescent(penalties=3), regrow=True)) > 10
