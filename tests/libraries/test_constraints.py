"""Monotonic constraints are read in every form in which a library accepts them, and its models keep them."""

import pickle
from dataclasses import replace

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeRegressor
from tests.strategies import walk

import secateur as sc
from secateur.files.models import load_model, save_model
from secateur.forest.promises import monotone_signs
from secateur.forest.subforest import Decision
from secateur.libraries import adapt

NAMES = ["a", "b b", "c", "d"]
SIGNS = [1, 0, -1, 0]
XGB = {"n_estimators": 10, "max_depth": 4, "n_jobs": 1}
LGB = {"n_estimators": 10, "verbose": -1, "n_jobs": 1, "min_child_samples": 5}
CAT = {"iterations": 10, "verbose": 0, "allow_writing_files": False, "thread_count": 1}


def rows(missing=True):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = X[:, 0] + np.sin(3 * X[:, 0]) - X[:, 2] + X[:, 1] * X[:, 3] + rng.normal(size=300)
    if missing:
        X[rng.random(X.shape) < 0.1] = np.nan
    return pd.DataFrame(X, columns=NAMES), y


FRAME, Y = rows()
X, CLASSES, THREE = FRAME.to_numpy(), (Y > 0).astype(int), np.digitize(Y, [-1, 1])


def signs_of(model):
    signs = sc.as_forest(model).monotone
    return None if signs is None else signs.tolist()


MODELS = {
    "tree": (DecisionTreeRegressor(monotonic_cst=SIGNS), Y),
    "tree of classes": (DecisionTreeClassifier(monotonic_cst=SIGNS), CLASSES),
    "extra tree": (ExtraTreeRegressor(monotonic_cst=SIGNS, random_state=0), Y),
    "forest": (RandomForestRegressor(5, monotonic_cst=SIGNS, random_state=0), Y),
    "forest of classes": (RandomForestClassifier(5, monotonic_cst=SIGNS, random_state=0), CLASSES),
    "extra trees": (ExtraTreesRegressor(5, monotonic_cst=SIGNS, random_state=0), Y),
    "extra trees of classes": (ExtraTreesClassifier(5, monotonic_cst=SIGNS, random_state=0), CLASSES),
    "histograms": (HistGradientBoostingRegressor(max_iter=10, monotonic_cst=SIGNS), Y),
    "histograms of classes": (HistGradientBoostingClassifier(max_iter=10, monotonic_cst=SIGNS), CLASSES),
    "bagging": (BaggingRegressor(DecisionTreeRegressor(monotonic_cst=SIGNS), 3, random_state=0), Y),
    "bagging of classes": (BaggingClassifier(DecisionTreeClassifier(monotonic_cst=SIGNS), 3, random_state=0), CLASSES),
    "pipeline": (make_pipeline(StandardScaler(), RandomForestRegressor(3, monotonic_cst=SIGNS, random_state=0)), Y),
    "search": (GridSearchCV(DecisionTreeRegressor(monotonic_cst=SIGNS), {"max_depth": [3]}, cv=2), Y),
    "xgboost": (xgboost.XGBRegressor(**XGB, monotone_constraints=tuple(SIGNS)), Y),
    "xgboost, dart": (xgboost.XGBRegressor(**XGB, booster="dart", monotone_constraints=tuple(SIGNS)), Y),
    "xgboost, two classes": (xgboost.XGBClassifier(**XGB, monotone_constraints=tuple(SIGNS)), CLASSES),
    "xgboost, three classes": (xgboost.XGBClassifier(**XGB, monotone_constraints=tuple(SIGNS)), THREE),
    "xgboost, forest": (xgboost.XGBRFRegressor(**XGB, monotone_constraints=tuple(SIGNS)), Y),
    "lightgbm": (lightgbm.LGBMRegressor(**LGB, monotone_constraints=SIGNS), Y),
    "lightgbm, two classes": (lightgbm.LGBMClassifier(**LGB, monotone_constraints=SIGNS), CLASSES),
    "lightgbm, three classes": (lightgbm.LGBMClassifier(**LGB, monotone_constraints=SIGNS), THREE),
    "catboost": (catboost.CatBoostRegressor(**CAT, monotone_constraints=SIGNS), Y),
    "catboost, two classes": (catboost.CatBoostClassifier(**CAT, monotone_constraints=SIGNS), CLASSES),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_with_constraints_and_their_pruned_copies_have_the_signs_of_the_constraints(name):
    model, y = MODELS[name]
    model.fit(X, y)
    check = sc.check_monotonic(model)
    assert signs_of(model) == SIGNS
    assert check.features == (0, 2)
    assert check.holds
    against = sc.check_monotonic(replace(sc.as_forest(model), monotone=-np.array(SIGNS, np.int8)))
    assert not against.holds
    adapter = adapt(model)
    forest = adapter.forest
    small = adapter.write(Decision(forest.depth < (2 if forest.symmetric else 3)))
    assert signs_of(small) == SIGNS


@pytest.mark.parametrize("method", ["basic", "intermediate", "advanced"])
def test_lightgbm_keeps_constraints_by_every_method_without_missing_values(method):
    model = lightgbm.LGBMRegressor(**LGB, monotone_constraints=SIGNS, monotone_constraints_method=method)
    frame, y = rows(missing=False)
    assert sc.check_monotonic(model.fit(frame, y)).holds


def test_adaboost_has_the_constraints_of_its_trees():
    frame, y = rows(missing=False)
    for kind, tree, target in (
        (AdaBoostRegressor, DecisionTreeRegressor, y),
        (AdaBoostClassifier, DecisionTreeClassifier, (y > 0).astype(int)),
    ):
        model = kind(tree(max_depth=4, monotonic_cst=SIGNS), n_estimators=5, random_state=0).fit(frame, target)
        assert signs_of(model) == SIGNS
        assert sc.check_monotonic(model).holds


def test_bagged_trees_of_other_columns_have_no_common_constraints():
    model = BaggingRegressor(DecisionTreeRegressor(monotonic_cst=[1, 0]), 3, max_features=2, random_state=0)
    assert signs_of(model.fit(X, Y)) is None


def tree_on_first(forest):
    """Return a tree whose root splits on feature 0, and the leaf of infinite numbers, which no other is above."""
    tree = int(np.flatnonzero(forest.feature[forest.root] == 0)[0])
    return tree, walk(forest, tree, np.full(forest.n_features, np.inf))


@pytest.mark.parametrize("name", ["histograms", "xgboost", "lightgbm", "catboost"])
def test_a_broken_leaf_is_found_with_its_feature_and_size(name):
    model, y = MODELS[name]
    adapter = adapt(model.fit(X, y))
    forest = adapter.forest
    tree, leaf = tree_on_first(forest)
    nodes = slice(forest.tree_start[tree], forest.tree_start[tree + 1])
    value = forest.value.copy()
    value[nodes] = 0.0
    value[leaf] = -2.0
    check = sc.check_monotonic(adapter.write(Decision(np.ones(forest.n_nodes, bool), value)))
    assert not check.holds
    found = {violation.feature: violation for violation in check.violations}
    assert found[0].tree == tree
    assert found[0].size == 2.0
    assert all(violation.tree == tree for violation in check.violations)


def test_a_broken_leaf_of_a_scikit_learn_tree_is_found():
    model = DecisionTreeClassifier(max_depth=1, monotonic_cst=[0, 0, -1, 0]).fit(X[:, [0, 1, 2, 3]], X[:, 2] < 0.3)
    assert sc.check_monotonic(model).holds
    model.tree_.value[1:] = model.tree_.value[1:][::-1].copy()
    (violation,) = sc.check_monotonic(model).violations
    assert (violation.feature, violation.tree) == (2, 0)
    assert violation.size == pytest.approx(model.tree_.value[2, 0, 1] - model.tree_.value[1, 0, 1])


def xgb_trained(params, data):
    return xgboost.train(params, xgboost.DMatrix(data, Y), 3)


CAT_WITH_TEXT = FRAME.assign(b=np.where(Y > 0, "x", "y"))[["a", "b", "b b", "c", "d"]]
READ = {
    "scikit-learn, array": lambda: DecisionTreeRegressor(monotonic_cst=np.array(SIGNS)).fit(X, Y),
    "scikit-learn, names": lambda: HistGradientBoostingRegressor(max_iter=2, monotonic_cst={"c": -1, "a": 1}).fit(
        FRAME, Y
    ),
    "xgboost, names": lambda: xgboost.XGBRegressor(**XGB, monotone_constraints={"c": -1, "a": 1}).fit(FRAME, Y),
    "xgboost, text": lambda: xgboost.XGBRegressor(**XGB, monotone_constraints="(1,0,-1,0)").fit(X, Y),
    "xgboost, fewer": lambda: xgboost.XGBRegressor(**XGB, monotone_constraints=(1, 0, -1)).fit(X, Y),
    "xgboost, booster": lambda: xgboost.XGBRegressor(**XGB, monotone_constraints=tuple(SIGNS)).fit(X, Y).get_booster(),
    "xgboost, trained by text": lambda: xgb_trained({"monotone_constraints": "(1,0,-1,0)"}, X),
    "xgboost, trained by names": lambda: xgb_trained({"monotone_constraints": {"a": 1, "c": -1}}, FRAME),
    "xgboost, trained by dart": lambda: xgb_trained({"monotone_constraints": "(1,0,-1,0)", "booster": "dart"}, X),
    "xgboost, pickled": lambda: pickle.loads(pickle.dumps(xgb_trained({"monotone_constraints": "(1,0,-1,0)"}, X))),
    "lightgbm, text": lambda: lightgbm.LGBMRegressor(**LGB, monotone_constraints="1,0,-1,0").fit(X, Y),
    "lightgbm, booster": lambda: lightgbm.LGBMRegressor(**LGB, monotone_constraints=SIGNS).fit(X, Y).booster_,
    "catboost, text": lambda: catboost.CatBoostRegressor(**CAT, monotone_constraints="(1,0,-1,0)").fit(X, Y),
    "catboost, text of pairs": lambda: catboost.CatBoostRegressor(**CAT, monotone_constraints="a:1,c:-1").fit(FRAME, Y),
    "catboost, fewer": lambda: catboost.CatBoostRegressor(**CAT, monotone_constraints=[1, 0, -1]).fit(X, Y),
    "catboost, numbers": lambda: catboost.CatBoostRegressor(**CAT, monotone_constraints={0: 1, 2: -1}).fit(X, Y),
    "catboost, names": lambda: catboost.CatBoostRegressor(**CAT, monotone_constraints={"a": 1, "c": -1}).fit(FRAME, Y),
}


@pytest.mark.parametrize("name", READ)
def test_constraints_are_read_in_every_form(name):
    assert signs_of(READ[name]()) == SIGNS


def test_catboost_counts_numeric_columns_and_the_forest_all_of_them():
    model = catboost.CatBoostRegressor(
        **CAT, cat_features=["b"], ignored_features=["d"], monotone_constraints={"a": 1, "c": -1}
    )
    forest = sc.as_forest(model.fit(CAT_WITH_TEXT, Y))
    signs = dict(zip(forest.feature_names, forest.monotone.tolist(), strict=True))
    assert {name: sign for name, sign in signs.items() if sign} == {"a": 1, "c": -1}
    assert len(signs) > 5  # hidden columns
    assert sc.check_monotonic(forest).holds


def test_histograms_with_categories_have_the_signs_of_the_users_columns():
    frame = CAT_WITH_TEXT.assign(b=CAT_WITH_TEXT["b"].astype("category"))
    model = HistGradientBoostingRegressor(
        max_iter=5, categorical_features="from_dtype", monotonic_cst={"a": 1, "c": -1}
    )
    forest = sc.as_forest(model.fit(frame, Y))
    assert forest.monotone.tolist() == [1, 0, 0, -1, 0]
    assert sc.check_monotonic(forest).holds


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeRegressor(),
        DecisionTreeRegressor(monotonic_cst=[0, 0, 0, 0]),
        HistGradientBoostingRegressor(max_iter=2),
        xgboost.XGBRegressor(**XGB),
        xgboost.XGBRegressor(**XGB, monotone_constraints=(0, 0, 0, 0)),
        lightgbm.LGBMRegressor(**LGB),
        lightgbm.LGBMRegressor(**LGB, monotone_constraints=[0, 0, 0, 0]),
        catboost.CatBoostRegressor(**CAT),
        catboost.CatBoostRegressor(**CAT, grow_policy="Depthwise"),
    ],
    ids=str,
)
def test_a_model_without_constraints_has_none(model):
    assert signs_of(model.fit(X, Y)) is None


@pytest.mark.parametrize(
    ("name", "suffix", "kept"),
    [
        ("xgboost", ".ubj", False),
        ("xgboost", ".json", False),
        ("lightgbm", ".txt", True),
        ("catboost", ".cbm", True),
        ("catboost", ".json", True),
        ("histograms", ".skops", True),
    ],
)
def test_files_keep_constraints_except_those_of_xgboost(name, suffix, kept, tmp_path):
    model, y = MODELS[name]
    save_model(model.fit(X, y), tmp_path / f"model{suffix}")
    assert signs_of(load_model(tmp_path / f"model{suffix}")) == (SIGNS if kept else None)


def test_a_path_file_fits_a_model_that_has_lost_its_constraints(tmp_path):
    model = xgb_trained({"monotone_constraints": "(1,0,-1,0)"}, X)
    file = sc.prune_path(model, X, Y, solver="weakest_link").save(tmp_path / "path.npz")
    assert sc.Path.load(file).forest.monotone.tolist() == SIGNS
    again = xgboost.Booster()
    again.load_model(model.save_raw("ubj"))
    assert sc.Path.load(file, again).source.forest.monotone is None


def test_an_xgboost_wrapper_has_its_own_constraints_after_loading(tmp_path):
    xgboost.XGBRegressor(**XGB, monotone_constraints=tuple(SIGNS)).fit(FRAME, Y).save_model(tmp_path / "m.ubj")
    for constraints in (tuple(SIGNS), {"a": 1, "c": -1}, "(1,0,-1)"):
        loaded = xgboost.XGBRegressor(monotone_constraints=constraints)
        loaded.load_model(tmp_path / "m.ubj")
        assert signs_of(loaded) == SIGNS
    loaded.monotone_constraints = {"other": 1}
    with pytest.raises(ValueError, match="do not fit its 4 features"):
        sc.as_forest(loaded)


@pytest.mark.parametrize(
    ("model", "constraints"),
    [
        (DecisionTreeRegressor(), {"monotonic_cst": [1, 0, -1, 0, 0]}),
        (DecisionTreeRegressor(), {"monotonic_cst": ["up", "down"]}),
        (HistGradientBoostingRegressor(max_iter=2), {"monotonic_cst": {"other": 1}}),
        (xgboost.XGBRegressor(**XGB), {"monotone_constraints": "(1,0,-1,0,1)"}),
    ],
)
def test_constraints_that_do_not_fit_are_refused(model, constraints):
    model.fit(FRAME, Y).set_params(**constraints)
    with pytest.raises(ValueError, match="do not fit its 4 features"):
        sc.as_forest(model)


def test_only_the_signs_of_numbers_count():
    assert monotone_signs("(2,0,-7)", 3).tolist() == [1, 0, -1]
    assert monotone_signs("", 3) is None
    assert monotone_signs({}, 3) is None
