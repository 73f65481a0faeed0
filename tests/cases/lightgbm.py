"""Fitted LightGBM models of every supported kind and option, and rows to predict."""

import warnings
from functools import partial
from typing import Any

import lightgbm
import numpy as np
from tests.cases.case import Case

N_ROWS = 150
SMALL = {"num_leaves": 7, "min_child_samples": 4, "n_jobs": 1, "verbose": -1, "random_state": 0}
FEW = {"n_estimators": 5, **SMALL}
LABELS = np.array(["ash", "birch", "cedar", "elm"])
ODD_CATEGORIES = [np.nan, -1.0, -0.5, 2.7, 31.0, 32.0, 69.9, 70.0, 1e6, 3e9, 1e300, np.inf, -np.inf]


def _rows():
    """Return numbers with missing values; column 3 has zeros, column 4 categories from 0 to 69, column 5 few."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 6)).round(2)
    X[rng.random(N_ROWS) < 0.4, 3] = 0.0
    X[:, 4] = rng.integers(0, 70, N_ROWS)
    X[:, 5] = rng.integers(0, 4, N_ROWS)
    X[rng.random(X.shape) < 0.08] = np.nan
    X[:, 1] = np.nan_to_num(X[:, 1])  # one column without missing values: NaN is read as 0 there
    return X


def _score(X):
    filled = np.nan_to_num(X)
    return filled[:, 0] - filled[:, 1] * (filled[:, 3] == 0) + 2 * (filled[:, 4] % 3 == 0) + 0.5 * (filled[:, 5] == 2)


def _target(X, kind):
    rng = np.random.default_rng(1)
    score = _score(X) + 0.3 * rng.normal(size=len(X))
    if kind == "two":
        return (score > 0.3).astype(int)
    if kind == "two labels":
        return LABELS[(score > 0.3).astype(int)]
    if kind == "classes":
        return np.digitize(score, [-0.5, 0.8])
    if kind == "labels":
        return LABELS[np.digitize(score, [-0.7, 0.4, 1.2])]
    if kind == "share":
        return 1 / (1 + np.exp(-score))
    return {"number": 10 + 3 * score, "positive": np.exp(score / 2) + 0.1, "count": rng.poisson(np.exp(score / 2))}[
        kind
    ]


def _new_rows(X, model):
    """Return rows between, on and beyond the known ones: NaN, infinities, every threshold, and odd categories."""
    rng = np.random.default_rng(4)
    moved = X[rng.permutation(len(X))] * rng.choice([1.0, 1.0, 1.7, -1.0], size=X.shape)
    moved[rng.random(X.shape) < 0.2] = np.nan
    moved[rng.random(X.shape) < 0.05] = np.inf
    moved[rng.random(X.shape) < 0.05] = -np.inf
    for column in (4, 5):
        moved[: len(ODD_CATEGORIES), column] = ODD_CATEGORIES
    zeros = [0.0, -0.0, 1e-35, float(np.float32(1e-35)), -float(np.float32(1e-35)), 1.1e-35, -1e-40]
    moved[: len(zeros), 3] = moved[10 : 10 + len(zeros), 1] = zeros
    booster = model if isinstance(model, lightgbm.Booster) else model.booster_
    lines = [line.partition("=")[2] for line in booster.model_to_string().split("\n") if line.startswith("threshold=")]
    exact = np.array([float(t) for line in lines for t in line.split()])[: 4 * N_ROWS]
    on = moved[np.arange(len(exact)) % len(moved)]
    on[:, :4] = np.where(rng.random((len(exact), 4)) < 0.6, exact[:, None], on[:, :4])
    return np.vstack([X, moved, on])


def booster_predictions(model, X):
    """Return the predictions of a Booster; sums of a random forest are divided as LightGBM divides them."""
    raw = model.predict(X, raw_score=True)
    if "\naverage_output\n" in model.model_to_string():
        raw = raw / (model.best_iteration if model.best_iteration > 0 else model.current_iteration())
    return {"predict": model.predict(X), "raw": raw.reshape(len(raw), -1)}


def wrapper_predictions(model, X):
    """Return the predictions of a wrapper, and the sums of its Booster."""
    found = {"predict": model.predict(X)}
    if hasattr(model, "predict_proba") and not callable(model.objective):
        found["predict_proba"] = model.predict_proba(X)
    return {**found, "raw": booster_predictions(model.booster_, X)["raw"]}


def _as_bytes(model):
    booster = model if isinstance(model, lightgbm.Booster) else model.booster_
    return booster.model_to_string(num_iteration=-1).encode()


def _train(kind: str, rounds: int = 5, weight: bool = False, data: Any = None, ulp: int = 0, **params: Any) -> Case:
    X = _rows()
    y = _target(X, kind)
    w = np.random.default_rng(3).integers(0, 4, N_ROWS).astype(float) if weight else None
    names = {"min_child_samples": "min_data_in_leaf", "n_jobs": "num_threads", "random_state": "seed"}
    params = {**{names.get(key, key): value for key, value in SMALL.items()}, **params}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = lightgbm.train(params, lightgbm.Dataset(X, y, weight=w, **(data or {})), rounds)
    return Case(model, X, y, _new_rows(X, model), w, booster_predictions, _as_bytes, ulp)


def _fit(estimator: Any, kind: str, weight: bool = False, **fit: Any) -> Case:
    X = _rows()
    y = _target(X, kind)
    w = np.random.default_rng(3).integers(0, 4, N_ROWS).astype(float) if weight else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = estimator.fit(X, y, sample_weight=w, **fit)
    return Case(model, X, y, _new_rows(X, model), w, wrapper_predictions, _as_bytes)


def _stopped_early() -> Case:
    """Return a wrapper with a best iteration; later trees are dropped after training."""
    X = _rows()
    y = _target(X, "two labels")
    model = lightgbm.LGBMClassifier(n_estimators=12, learning_rate=0.15, early_stopping_round=12, **SMALL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer versions name eval_set differently
        model.fit(X[:75], y[:75], eval_set=[(X[75:], y[75:])])
    assert model.best_iteration_ > 1
    return Case(model, X, y, _new_rows(X, model), None, wrapper_predictions, _as_bytes)


def _best_iteration() -> Case:
    """Return a Booster with more trees than it predicts with."""
    X = _rows()
    y = _target(X, "number")
    train = lightgbm.Dataset(X[:75], y[:75])
    params = {"num_leaves": 6, "min_data_in_leaf": 4, "num_threads": 1, "verbose": -1, "learning_rate": 0.5}
    valid = [train.create_valid(X[75:], y[75:])]
    stop = [lightgbm.early_stopping(3, verbose=False)]
    model = lightgbm.train(params, train, 30, valid_sets=valid, callbacks=stop, keep_training_booster=True)
    assert 1 < model.best_iteration < model.num_trees()
    return Case(model, X, y, _new_rows(X, model), None, booster_predictions, _as_bytes)


def _table(estimator: Any) -> Case:
    import pandas as pd

    X = _rows()
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(X[:, :4], columns=["a", "b b", "c", "d"])
    frame.insert(1, "colour", pd.Categorical(rng.choice(["red", "green", "blue", "grey"], N_ROWS)))
    frame["size"] = pd.Categorical(rng.integers(0, 40, N_ROWS) * 10)
    frame["whole"] = rng.integers(-5, 2**30, N_ROWS)
    frame.loc[::7, "colour"] = None
    y = (_target(X, "classes") + (frame["colour"] == "red")) % 3
    new = frame.sample(frac=1, random_state=0, ignore_index=True)
    new["colour"] = pd.Categorical(new["colour"].astype(object).where(new.index % 5 > 0, "mauve"))
    new["size"] = new["size"].cat.set_categories([*range(0, 200, 10), 1234])
    new["a"] = new["a"].where(new.index % 3 > 0, np.inf)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = estimator.fit(frame, y)
    return Case(model, frame, y, new, None, wrapper_predictions, _as_bytes)


def _rank() -> Case:
    X = _rows()
    y = _target(X, "classes")
    model = lightgbm.LGBMRanker(**FEW).fit(X, y, group=[50, 50, 50])
    return Case(model, X, y, _new_rows(X, model), None, wrapper_predictions, _as_bytes)


def _further() -> Case:
    """Return a model trained further on rows without missing values, so that its splits treat NaN differently."""
    X = _rows()
    y = _target(X, "number")
    params = {"num_leaves": 6, "min_data_in_leaf": 4, "num_threads": 1, "verbose": -1}
    first = lightgbm.train(params, lightgbm.Dataset(X, y), 3)
    model = lightgbm.train(params, lightgbm.Dataset(np.nan_to_num(X), y), 3, init_model=first)
    return Case(model, X, y, _new_rows(X, model), None, booster_predictions, _as_bytes)


def _reloaded() -> Case:
    """Return a Booster made from text, with tree sizes left out."""
    case = _train("two", objective="binary")
    text = "\n".join(line for line in case.model.model_to_string().split("\n") if not line.startswith("tree_sizes="))
    model = lightgbm.Booster(model_str=text)
    return Case(model, case.X, case.y, case.X_new, None, booster_predictions, _as_bytes)


def _own_squares(y, raw):
    return raw - y, np.ones_like(y)


def _own_classes(y, raw):
    p = np.exp(raw - raw.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return p - np.eye(3)[y.astype(int)], 2 * p * (1 - p)


CATEGORIES = {"categorical_feature": [4, 5]}
GROUPS = {"min_data_per_group": 1, "cat_smooth": 0.1, "cat_l2": 0.1, "max_cat_to_onehot": 3}

RECIPES = {
    f"lightgbm {name}": recipe
    for name, recipe in {
        "booster, binary": partial(_train, "two", objective="binary"),
        "booster, binary, slope": partial(_train, "two", objective="binary", sigmoid=0.7),
        "booster, multiclass": partial(_train, "classes", 3, objective="multiclass", num_class=3),
        "booster, multiclass, a class that never occurs": partial(
            _train, "classes", 3, objective="multiclass", num_class=4
        ),
        "booster, one against all": partial(
            _train, "classes", 3, objective="multiclassova", num_class=3, sigmoid=1.3, weight=True
        ),
        "booster, cross entropy": partial(_train, "share", objective="cross_entropy"),
        "booster, cross entropy lambda": partial(_train, "share", objective="cross_entropy_lambda"),
        "booster, regression": partial(_train, "number", objective="regression"),
        "booster, roots": partial(_train, "number", objective="regression", reg_sqrt=True),
        "booster, absolute error": partial(_train, "number", objective="regression_l1"),
        "booster, huber": partial(_train, "number", objective="huber"),
        "booster, fair": partial(_train, "number", objective="fair"),
        "booster, quantile": partial(_train, "number", objective="quantile", alpha=0.8),
        "booster, mape": partial(_train, "number", objective="mape"),
        "booster, poisson": partial(_train, "count", objective="poisson"),
        "booster, gamma": partial(_train, "positive", objective="gamma"),
        "booster, tweedie": partial(_train, "positive", objective="tweedie", tweedie_variance_power=1.2),
        "booster, zero as missing": partial(_train, "number", objective="regression", zero_as_missing=True),
        "booster, missing values unused": partial(_train, "number", objective="regression", use_missing=False),
        "booster, categories": partial(_train, "number", data=CATEGORIES, **GROUPS),
        "booster, categories, zero as missing": partial(
            _train, "number", data=CATEGORIES, zero_as_missing=True, **GROUPS
        ),
        "booster, dart": partial(_train, "two", 8, objective="binary", boosting="dart", drop_rate=0.5),
        "booster, goss": partial(_train, "number", boosting="goss", learning_rate=0.5),
        "booster, bagging": partial(_train, "number", bagging_fraction=0.6, bagging_freq=1, feature_fraction=0.5),
        "booster, random forest": partial(
            _train, "number", boosting="rf", bagging_fraction=0.6, bagging_freq=1, objective="regression"
        ),
        "booster, random forest, binary": partial(
            _train, "two", boosting="rf", bagging_fraction=0.6, bagging_freq=1, objective="binary"
        ),
        "booster, random forest, multiclass": partial(
            _train,
            "classes",
            objective="multiclass",
            num_class=3,
            boosting="rf",
            bagging_fraction=0.6,
            bagging_freq=1,
        ),
        "booster, monotone": partial(_train, "number", monotone_constraints=[1, -1, 0, 0, 0, 0], max_bin=15),
        "booster, constant": partial(_train, "number", min_data_in_leaf=100),
        "booster, trained further": _further,
        "booster, best iteration": _best_iteration,
        "booster, from text": _reloaded,
        "classifier": partial(_fit, lightgbm.LGBMClassifier(**FEW), "two labels"),
        "classifier, class weights": partial(
            _fit, lightgbm.LGBMClassifier(class_weight="balanced", **FEW), "labels", weight=True
        ),
        "classifier, cross entropy": partial(_fit, lightgbm.LGBMClassifier(objective="cross_entropy", **FEW), "two"),
        "classifier, two classes as many": partial(
            _fit, lightgbm.LGBMClassifier(objective="multiclass", num_class=2, **FEW), "two labels"
        ),
        "classifier, categories": partial(
            _fit, lightgbm.LGBMClassifier(**FEW, **GROUPS), "labels", categorical_feature=[4, 5]
        ),
        "classifier, table": partial(_table, lightgbm.LGBMClassifier(**FEW, **GROUPS)),
        "classifier, stopped early": _stopped_early,
        "classifier, own objective": partial(_fit, lightgbm.LGBMClassifier(objective=_own_classes, **FEW), "classes"),
        "regressor": partial(_fit, lightgbm.LGBMRegressor(subsample=0.7, subsample_freq=1, **FEW), "number"),
        "regressor, poisson": partial(_fit, lightgbm.LGBMRegressor(objective="poisson", **FEW), "count", weight=True),
        "regressor, own objective": partial(_fit, lightgbm.LGBMRegressor(objective=_own_squares, **FEW), "number"),
        "ranker": _rank,
    }.items()
}
FOR_SOLVERS = (
    "lightgbm booster, multiclass",
    "lightgbm booster, categories",
    "lightgbm booster, random forest",
    "lightgbm ranker",
)
