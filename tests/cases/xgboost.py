"""Fitted XGBoost models of every supported kind and option, and rows to predict."""

from functools import partial
from typing import Any

import numpy as np
import xgboost as xgb
from sklearn.datasets import make_classification, make_regression
from tests.cases.case import Case

N_ROWS = 150


def _data(kind):
    rng = np.random.default_rng(0)
    if kind in ("two", "three"):
        classes = 2 if kind == "two" else 3
        X, y = make_classification(N_ROWS, 6, n_informative=4, n_classes=classes, flip_y=0.2, random_state=0)
    elif kind == "labels":
        X, y = make_classification(N_ROWS, 6, n_informative=4, random_state=0)
        y = np.column_stack([y, rng.integers(0, 2, N_ROWS), X[:, 0] > 0]).astype(int)
    elif kind == "targets":
        X, y = make_regression(N_ROWS, 6, n_targets=2, noise=20, random_state=0)
    elif kind in ("counts", "positive", "share"):
        X = rng.normal(size=(N_ROWS, 6))
        y = {
            "counts": rng.poisson(np.exp(X[:, 0])).astype(float),
            "positive": np.exp(X[:, 0] + 0.3 * rng.normal(size=N_ROWS)),
            "share": 1 / (1 + np.exp(-X[:, 0] - rng.normal(size=N_ROWS))),
        }[kind]
    elif kind == "ranks":
        X = rng.normal(size=(N_ROWS, 6))
        y = np.clip(np.round(X[:, 0] + rng.normal(size=N_ROWS) + 1), 0, 3)
    else:
        X, y = make_regression(N_ROWS, 6, noise=20, random_state=0)
    return X.astype(np.float32), y


def _with_nan(X, missing=np.nan):
    X = X.copy()
    X[np.random.default_rng(1).random(X.shape) < 0.15] = missing
    return X


def _thresholds(booster):
    """Return the features and thresholds of splits by a number."""
    import json

    gradient = json.loads(booster.save_raw("json"))["learner"]["gradient_booster"]
    trees = gradient.get("gbtree", gradient)["model"]["trees"]
    return [
        (tree["split_indices"][v], tree["split_conditions"][v])
        for tree in trees
        for v in range(len(tree["left_children"]))
        if tree["left_children"][v] != -1 and tree["split_type"][v] == 0
    ]


def _hits(X, booster):
    """Return rows in which some values are exactly a threshold or as near to one as float32 allows."""
    X, rng = X.copy(), np.random.default_rng(3)
    found = _thresholds(booster)
    for i in range(len(X) if found else 0):
        feature, threshold = found[rng.integers(len(found))]
        near = np.float32(threshold)
        X[i, feature] = [near, np.nextafter(near, np.float32(-np.inf)), np.nextafter(near, np.float32(np.inf))][i % 3]
    return X


def _new_rows(X, booster, missing=np.nan):
    rng = np.random.default_rng(4)
    new = _hits(rng.permuted(X, axis=0).astype(np.float32), booster)
    new[rng.random(new.shape) < 0.05] = np.nan
    new[rng.random(new.shape) < 0.05] = missing
    new[0], new[1], new[2] = 3e38, -3e38, 0.0
    return new


def booster_predictions(model, X):
    matrix = xgb.DMatrix(
        X, feature_names=model.feature_names, feature_types=model.feature_types, enable_categorical=True
    )
    raw = model.predict(matrix, output_margin=True)
    return {"raw": raw.reshape(len(X), -1), "predict": model.predict(matrix)}


def wrapper_predictions(model, X):
    raw = model.predict(X, output_margin=True)
    found = {"raw": raw.reshape(X.shape[0], -1), "predict": model.predict(X)}
    if hasattr(model, "predict_proba"):
        found["predict_proba"] = model.predict_proba(X)
    return found


def _bytes(model):
    booster = model if isinstance(model, xgb.Booster) else model.get_booster()
    return bytes(booster.save_raw("ubj")) + booster.save_config().encode() + str(vars(model).keys()).encode()


SMALL = {"n_estimators": 6, "max_depth": 3, "n_jobs": 1, "random_state": 0}
QUICK = {"max_depth": 3, "nthread": 1, "eta": 0.5}

# name: (model, kind of data, options)
# nan: with missing values; weight: with sample weights, some 0; stop: trained with early stopping
_WRAPPERS: dict[str, tuple[Any, str, set[str]]] = {
    "classifier_two": (xgb.XGBClassifier(**SMALL), "two", {"nan"}),
    "classifier_three": (xgb.XGBClassifier(**SMALL), "three", {"weight"}),
    "classifier_softmax": (xgb.XGBClassifier(**SMALL, objective="multi:softmax"), "three", set()),
    "classifier_base": (xgb.XGBClassifier(**SMALL, base_score=0.3), "three", set()),
    "classifier_labels": (xgb.XGBClassifier(**SMALL), "labels", set()),
    "classifier_logitraw": (xgb.XGBClassifier(**SMALL, objective="binary:logitraw"), "two", set()),
    "classifier_hinge": (xgb.XGBClassifier(**SMALL, objective="binary:hinge"), "two", set()),
    "classifier_stopped": (xgb.XGBClassifier(**SMALL | {"n_estimators": 40}, learning_rate=0.6), "three", {"stop"}),
    "regressor": (xgb.XGBRegressor(**SMALL), "values", {"nan", "weight"}),
    "regressor_stopped": (xgb.XGBRegressor(**SMALL | {"n_estimators": 40}, learning_rate=0.8), "values", {"stop"}),
    "regressor_missing": (xgb.XGBRegressor(**SMALL, missing=-999.0), "values", {"nan"}),
    "regressor_targets": (xgb.XGBRegressor(**SMALL), "targets", set()),
    "regressor_dart": (xgb.XGBRegressor(**SMALL, booster="dart", rate_drop=0.4), "values", {"nan"}),
    "classifier_dart": (xgb.XGBClassifier(**SMALL, booster="dart", rate_drop=0.4), "three", {"nan"}),
    "regressor_leafwise": (xgb.XGBRegressor(**SMALL, grow_policy="lossguide", max_leaves=7), "values", set()),
    "regressor_exact": (xgb.XGBRegressor(**SMALL, tree_method="exact", gamma=3000.0), "values", set()),
    "regressor_base": (xgb.XGBRegressor(**SMALL, base_score=12.3), "values", set()),
    "regressor_stumps_gone": (xgb.XGBRegressor(**SMALL, gamma=1e9), "values", set()),
    "forest_classifier": (xgb.XGBRFClassifier(**SMALL), "three", set()),
    "forest_regressor": (xgb.XGBRFRegressor(**SMALL), "values", {"nan"}),
    "rounds_of_trees": (xgb.XGBClassifier(**SMALL | {"n_estimators": 3}, num_parallel_tree=2), "three", set()),
}

# name: (parameters, kind of data)
_BOOSTERS: dict[str, tuple[dict[str, Any], str]] = {
    "booster": ({}, "values"),
    "booster_logistic": ({"objective": "binary:logistic"}, "two"),
    "booster_logitraw": ({"objective": "binary:logitraw"}, "two"),
    "booster_hinge": ({"objective": "binary:hinge"}, "two"),
    "booster_share": ({"objective": "reg:logistic"}, "share"),
    "booster_softprob": ({"objective": "multi:softprob", "num_class": 3}, "three"),
    "booster_softmax": ({"objective": "multi:softmax", "num_class": 3}, "three"),
    "booster_absolute": ({"objective": "reg:absoluteerror"}, "values"),
    "booster_log_error": ({"objective": "reg:squaredlogerror"}, "positive"),
    "booster_huber": ({"objective": "reg:pseudohubererror", "huber_slope": 20.0}, "values"),
    "booster_quantile": ({"objective": "reg:quantileerror", "quantile_alpha": 0.9}, "values"),
    "booster_quantiles": ({"objective": "reg:quantileerror", "quantile_alpha": [0.1, 0.5, 0.9]}, "values"),
    "booster_poisson": ({"objective": "count:poisson"}, "counts"),
    "booster_gamma": ({"objective": "reg:gamma"}, "positive"),
    "booster_tweedie": ({"objective": "reg:tweedie", "tweedie_variance_power": 1.3}, "counts"),
    "booster_cox": ({"objective": "survival:cox"}, "positive"),
    "booster_aft": ({"objective": "survival:aft"}, "positive"),
    "booster_rank": ({"objective": "rank:ndcg"}, "ranks"),
    "booster_pairwise": ({"objective": "rank:pairwise"}, "ranks"),
    "booster_dart": ({"booster": "dart", "rate_drop": 0.4, "objective": "multi:softprob", "num_class": 3}, "three"),
    "booster_no_trees": ({"objective": "binary:logistic", "rounds": 0}, "two"),
}


def _fit(model, kind, options) -> Case:
    from sklearn.base import clone

    X, y = _data(kind)
    missing = model.missing
    if "nan" in options:
        X = _with_nan(X, missing)
    weight = np.random.default_rng(2).integers(0, 3, len(X)).astype(float) if "weight" in options else None
    model = clone(model)
    if "stop" in options:
        model.set_params(early_stopping_rounds=2).fit(X[:100], y[:100], eval_set=[(X[100:], y[100:])], verbose=False)
    else:
        model.fit(X, y, sample_weight=weight)
    return Case(model, X, y, _new_rows(X, model.get_booster(), missing), weight, wrapper_predictions, _bytes)


def _train(params, kind) -> Case:
    X, y = _data(kind)
    matrix = xgb.DMatrix(X, y)
    params = QUICK | params
    if params.get("objective") == "survival:aft":
        matrix.set_float_info("label_lower_bound", y)
        matrix.set_float_info("label_upper_bound", np.where(y > 1, np.inf, y))
    if str(params.get("objective")).startswith("rank"):
        matrix.set_group([50, 50, 50])
    rounds = params.pop("rounds", 6)
    model = xgb.train(params, matrix, rounds)
    return Case(model, X, y, _new_rows(X, model), None, booster_predictions, _bytes)


def _ranker() -> Case:
    X, y = _data("ranks")
    model = xgb.XGBRanker(**SMALL).fit(X, y, qid=np.repeat([0, 1, 2], 50))
    return Case(model, X, y, _new_rows(X, model.get_booster()), None, wrapper_predictions, _bytes)


def fair_loss(y, prediction):
    """Return gradient and Hessian of an objective XGBoost does not have."""
    residual = prediction - y
    return residual / (1 + np.abs(residual) / 20), 1 / (1 + np.abs(residual) / 20) ** 2


def _own_objective() -> Case:
    X, y = _data("values")
    model = xgb.XGBRegressor(**SMALL, objective=fair_loss).fit(X, y)
    return Case(model, X, y, _new_rows(X, model.get_booster()), None, wrapper_predictions, _bytes)


def frame():
    """Return a table with categories of two kinds, some missing, and a target that depends on them."""
    import pandas as pd

    X, y = _data("three")
    table = pd.DataFrame(X[:, :3], columns=["a", "b", "c"])
    rng = np.random.default_rng(2)
    table.insert(1, "colour", pd.Categorical(rng.choice(["red", "green", "blue", "grey"], N_ROWS)))
    table["size"] = pd.Categorical(rng.integers(0, 12, N_ROWS))
    y = (y + (table["colour"] == "red") + table["size"].cat.codes % 2).to_numpy() % 3
    table.loc[::7, "colour"] = None
    return table, y


def _categories(onehot) -> Case:
    X, y = frame()
    model = xgb.XGBClassifier(**SMALL, enable_categorical=True, max_cat_to_onehot=onehot).fit(X, y)
    rng = np.random.default_rng(5)
    new = X.iloc[rng.permutation(N_ROWS)].reset_index(drop=True)
    new.loc[::5, "size"] = None
    new["colour"] = new["colour"].cat.reorder_categories(["red", "grey", "green", "blue"])
    return Case(model, X, y, new, None, wrapper_predictions, _bytes)


def _codes(onehot, booster) -> Case:
    table, y = frame()
    X = np.column_stack([table["a"], table["colour"].cat.codes, table["size"].cat.codes]).astype(np.float32)
    X[X == -1] = np.nan
    types = ["q", "c", "c"]
    matrix = xgb.DMatrix(X, y, feature_types=types, feature_names=["a", "colour", "size"], enable_categorical=True)
    params = QUICK | {"max_cat_to_onehot": onehot, "booster": booster, "objective": "multi:softprob", "num_class": 3}
    model = xgb.train(params, matrix, 6)
    rng = np.random.default_rng(6)
    new = rng.permuted(X, axis=0)
    odd = np.array([-0.5, -1, -7, 0.5, 1.7, 11.9, 12, 100, 2**24 - 1, 2**24, 3e9, np.nan], np.float32)
    new[:, 1:] = np.where(rng.random((N_ROWS, 2)) < 0.4, rng.choice(odd, (N_ROWS, 2)), new[:, 1:])
    return Case(model, X, y, new, None, booster_predictions, _bytes)


RECIPES = (
    {f"xgboost_{name}": partial(_fit, *spec) for name, spec in _WRAPPERS.items()}
    | {f"xgboost_{name}": partial(_train, *spec) for name, spec in _BOOSTERS.items()}
    | {
        "xgboost_ranker": _ranker,
        "xgboost_own_objective": _own_objective,
        "xgboost_categories": partial(_categories, 1),
        "xgboost_categories_onehot": partial(_categories, 100),
        "xgboost_codes": partial(_codes, 1, "gbtree"),
        "xgboost_codes_onehot": partial(_codes, 100, "dart"),
    }
)
FOR_SOLVERS = ("xgboost_classifier_three", "xgboost_regressor", "xgboost_categories")
