"""Test `sc.prune` on boosters: the type, the loss and the attributes of the model are kept."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import secateur as sc
from secateur.api import prune_point
from secateur.libraries import adapt


def split(load):
    return train_test_split(*load(return_X_y=True), test_size=0.4, random_state=0)


def boosters():
    """Return a fitted model for each library and task."""
    from catboost import CatBoostClassifier, CatBoostRegressor
    from lightgbm import LGBMClassifier, LGBMRegressor
    from xgboost import XGBClassifier, XGBRegressor

    lgbm = {"n_estimators": 60, "verbose": -1, "n_jobs": 1}
    cat = {"iterations": 60, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
    return {
        "xgboost, two classes": (XGBClassifier(n_estimators=60, n_jobs=1), load_breast_cancer),
        "xgboost, three classes": (XGBClassifier(n_estimators=30, n_jobs=1), load_wine),
        "xgboost, numbers": (XGBRegressor(n_estimators=60, max_depth=3, n_jobs=1), load_diabetes),
        "lightgbm, two classes": (LGBMClassifier(**lgbm), load_breast_cancer),
        "lightgbm, three classes": (LGBMClassifier(**lgbm), load_wine),
        "lightgbm, numbers": (LGBMRegressor(**lgbm), load_diabetes),
        "catboost, two classes": (CatBoostClassifier(**cat), load_breast_cancer),
        "catboost, three classes": (CatBoostClassifier(**cat), load_wine),
        "catboost, numbers": (CatBoostRegressor(**cat, grow_policy="Lossguide"), load_diabetes),
    }


@pytest.fixture(scope="module")
def fitted():
    made = {}
    for name, (model, load) in boosters().items():
        X_train, X, y_train, y = split(load)
        made[name] = (model.fit(X_train, y_train), X, y)
    return made


@pytest.mark.parametrize("name", list(boosters()))
def test_prune_shrinks_a_booster_within_its_own_loss(name, fitted):
    model, X, y = fitted[name]
    # A quarter of the rows, 18 to 57, cannot show it.
    chosen = prune_point(model, X, y, max_loss_increase=0.5, validation=0.5)
    small = sc.prune(model, X, y, max_loss_increase=0.5, validation=0.5)
    assert type(small) is type(model)
    assert sc.as_forest(small).n_nodes < sc.as_forest(model).n_nodes
    assert chosen.info.loss == ("squared_error" if "numbers" in name else "log_loss")
    assert chosen.row["loss"] <= 1.5 * chosen.info.unpruned_loss
    assert small.predict(X).dtype == model.predict(X).dtype
    assert small.predict(X).shape == model.predict(X).shape


@pytest.mark.parametrize("name", list(boosters()))
def test_a_node_budget_is_met_by_the_native_model(name, fitted):
    model, X, y = fitted[name]
    budget = sc.as_forest(model).n_nodes // 4
    small = sc.prune(model, X, y, max_nodes=budget)
    assert 10 < sc.as_forest(small).n_nodes <= budget


@pytest.mark.parametrize("name", ["xgboost, two classes", "lightgbm, three classes", "catboost, two classes"])
def test_early_stopping_names_and_classes_survive(name):
    pd = pytest.importorskip("pandas")
    model, load = boosters()[name]
    X_train, X, y_train, y = split(load)
    columns = [f"measure {i}" for i in range(X.shape[1])]
    X_train, X = pd.DataFrame(X_train, columns=columns), pd.DataFrame(X, columns=columns)
    labels = np.array(["ash", "birch", "cedar"])
    stop = {"xgboost": {}, "lightgbm": {}, "catboost": {"early_stopping_rounds": 5}}[name.split(",")[0]]
    if name.startswith("xgboost"):
        model.set_params(early_stopping_rounds=5)
        stop = {"verbose": False}
    if name.startswith("lightgbm"):
        from lightgbm import early_stopping

        stop = {"callbacks": [early_stopping(5, verbose=False)]}
    target = y_train if name.startswith("xgboost") else labels[y_train]  # XGBoost takes nothing but numbers
    held_out = y if name.startswith("xgboost") else labels[y]
    model.fit(X_train, target, eval_set=[(X, held_out)], **stop)
    small = sc.prune(model, X, held_out, max_loss_increase=0.02)
    assert np.array_equal(small.classes_, model.classes_)
    assert small.n_features_in_ == model.n_features_in_
    names = "feature_names_" if name.startswith("catboost") else "feature_names_in_"
    assert name.startswith("lightgbm") or list(getattr(small, names)) == list(getattr(model, names)) == columns
    assert small.get_params() == model.get_params()
    again = adapt(small)
    assert np.array_equal(again.predict(_raw(again, X)), small.predict(X))


def _raw(adapter, X):
    from tests.strategies import everything

    from secateur.path import Pruned

    return Pruned(adapter, everything(adapter.forest), 0, {}, "", {}).raw(X)


@pytest.mark.parametrize("name", ["xgboost, two classes", "lightgbm, numbers", "catboost, numbers"])
def test_a_booster_at_the_end_of_a_pipeline_is_pruned_there(name):
    model, load = boosters()[name]
    X_train, X, y_train, y = split(load)
    pipeline = make_pipeline(StandardScaler(), model).fit(X_train, y_train)
    small = sc.prune(pipeline, X, y, max_nodes=200)
    assert type(small) is type(pipeline)
    assert sc.as_forest(small).n_nodes <= 200
    assert sc.as_forest(pipeline).n_nodes > 200


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["xgboost, numbers", "lightgbm, numbers", "catboost, two classes"])
def test_every_solver_prunes_a_booster_or_gives_a_reason(name, fitted):
    model, X, y = fitted[name]
    some = 0
    for solver in sc.solvers.SOLVERS:
        try:
            path = sc.prune_path(model, X[:100], y[:100], solver=solver)
        except ValueError as error:
            if "cannot prune this" not in str(error) and "loss" not in str(error):
                raise
            continue
        some += 1
        assert type(path[len(path) - 1].to_model()) is type(model)
    assert some >= 2


@pytest.mark.parametrize("name", ["xgboost, three classes", "lightgbm, numbers"])
def test_training_rows_are_recognised_and_evaluated_by_refitted_clones(name):
    model, load = boosters()[name]
    X_train, _, y_train, _ = split(load)
    chosen = prune_point(model.set_params(n_estimators=10).fit(X_train, y_train), X_train, y_train, max_nodes=100)
    assert "refitted clones" in chosen.summary()["rows"]["chosen_on"]
