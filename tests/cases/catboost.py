"""Fitted CatBoost models of every supported kind and option, and rows to predict."""

from functools import partial
from typing import Any

import numpy as np
from catboost import CatBoost, CatBoostClassifier, CatBoostRanker, CatBoostRegressor, Pool
from tests.cases.case import Case

N_ROWS = 150
_PARAMS = {"iterations": 6, "depth": 3, "verbose": 0, "allow_writing_files": False, "thread_count": 1, "random_seed": 0}


def _numbers() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 5)).round(1)
    y = X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=N_ROWS)
    X[::7, 1] = np.nan
    return X, y


def _new_numbers(X: Any) -> Any:
    """Return rows with thresholds hit exactly, missing, infinite and huge values."""
    rng = np.random.default_rng(1)
    new = X[rng.permutation(len(X))] * rng.choice([1.0, 1.3, -1.0], size=X.shape)
    strange = np.array([np.nan, np.inf, -np.inf, 1e300, -1e300, 3.4028234663852886e38, -3.4028234663852886e38, 0.0])
    new[: len(strange)] = strange[:, None]
    return np.vstack([X, new, np.float32(X + 0.05)])


def _frame(embedding: bool = False) -> Any:
    import pandas as pd

    X, _ = _numbers()
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(5)])
    frame.insert(1, "colour", rng.choice(["red", "green", "blue"], N_ROWS))
    frame["side"] = rng.choice(["left", "right"], N_ROWS)
    frame["code"] = rng.integers(0, 20, N_ROWS)
    if embedding:
        frame["vector"] = list(rng.normal(size=(N_ROWS, 3)))
    return frame


def _new_frame(frame: Any) -> Any:
    new = frame.sample(frac=1, random_state=0, ignore_index=True)
    new.loc[::5, "colour"] = "never seen"
    new.loc[::6, "code"] = -7
    new.loc[::4, "x0"] = np.nan
    return new


def _target(kind: str, y: Any) -> Any:
    if kind == "two":
        return (y > 0).astype(int)
    if kind == "strings":
        return np.array(["no", "yes"])[(y > 0).astype(int)]
    if kind == "three":
        return np.array(["ash", "birch", "cedar"])[np.digitize(y, [-0.5, 0.5])]
    if kind == "targets":
        return np.column_stack([y, y**2])
    if kind == "labels":
        return np.column_stack([y > 0, y > 1]).astype(int)
    return np.exp(y).round() if kind == "counts" else y


def predictions(model: Any, X: Any) -> dict[str, Any]:
    """Return the predictions of CatBoost, including its sums."""
    raw = CatBoost.predict(model, X, prediction_type="RawFormulaVal")  # a ranker's own predict has no such option
    found = {"predict": model.predict(X), "raw": raw.reshape(len(raw), -1)}
    if isinstance(model, CatBoostClassifier) and model.get_param("loss_function") != "MultiLogloss":
        found["predict_proba"] = model.predict_proba(X)
    return found


def _serialise(model: Any) -> bytes:
    blob: bytes = model._serialize_model()
    return blob + repr(sorted(model.get_params().items(), key=str)).encode()


def _fit(kind: Any, target: str, ulp: int, **options: Any) -> Case:
    data = options.pop("data", "numbers")
    X, y = _numbers()
    y = _target(target, y)
    weight = np.random.default_rng(3).uniform(0.1, 2, N_ROWS) if options.pop("weight", False) else None
    threshold, scale = options.pop("threshold", None), options.pop("scale", None)
    columns: dict[str, Any] = {}
    if data != "numbers":
        X = _frame(embedding=data == "embedding")
        columns = {"cat_features": ["colour", "side", "code"]}
        if data == "embedding":
            columns["embedding_features"] = ["vector"]
    group = np.arange(N_ROWS) // 10 if kind is CatBoostRanker else None
    params = {**_PARAMS, **options}
    model = (CatBoost(params) if kind is CatBoost else kind(**params)).fit(
        Pool(X, y, weight=weight, group_id=group, **columns)
    )
    if threshold is not None:
        model.set_probability_threshold(threshold)
    if scale is not None:
        model.set_scale_and_bias(*scale)
    X_new = _new_numbers(X) if data == "numbers" else _new_frame(X)
    return Case(model, X, y, X_new, weight, predictions, _serialise, ulp)


_C, _R = CatBoostClassifier, CatBoostRegressor
_FREE, _LEAFWISE = {"grow_policy": "Depthwise"}, {"grow_policy": "Lossguide", "max_leaves": 7, "depth": 5}
_MODELS: dict[str, tuple[Any, str, int, dict[str, Any]]] = {
    "catboost classifier": (_C, "strings", 0, {}),
    "catboost classifier, weights": (_C, "two", 0, {"weight": True}),
    "catboost classifier, threshold": (_C, "strings", 0, {"threshold": 0.7}),
    "catboost classifier, by leaf": (_C, "strings", 0, _LEAFWISE),
    "catboost classifier, focal": (_C, "two", 0, {"loss_function": "Focal:focal_alpha=0.5;focal_gamma=1"}),
    "catboost classifier, cross entropy": (_C, "two", 0, {"loss_function": "CrossEntropy"}),
    "catboost classes": (_C, "three", 0, {}),
    "catboost classes, by depth": (_C, "three", 0, _FREE),
    "catboost classes, one against all": (_C, "three", 0, {"loss_function": "MultiClassOneVsAll"}),
    "catboost labels": (_C, "labels", 0, {"loss_function": "MultiLogloss"}),
    "catboost categories": (_C, "strings", 0, {"data": "frame"}),
    "catboost categories, by depth": (_C, "strings", 0, {"data": "frame", **_FREE}),
    "catboost categories, combined": (_C, "three", 0, {"data": "frame", "one_hot_max_size": 1, "depth": 5}),
    "catboost embedding": (_C, "strings", 0, {"data": "embedding"}),
    "catboost regressor": (_R, "number", 0, {}),
    "catboost regressor, no bias": (_R, "number", 0, {"boost_from_average": False}),
    "catboost regressor, by leaf": (_R, "number", 0, {**_LEAFWISE, "nan_mode": "Max"}),
    "catboost regressor, by depth": (_R, "number", 0, {**_FREE, "weight": True}),
    "catboost regressor, missing high": (_R, "number", 0, {"nan_mode": "Max"}),
    "catboost regressor, scale": (_R, "number", 0, {"scale": (0.7, 3.0)}),
    "catboost regressor, absolute": (_R, "number", 0, {"loss_function": "MAE"}),
    "catboost regressor, quantile": (_R, "number", 0, {"loss_function": "Quantile:alpha=0.9"}),
    "catboost regressor, poisson": (_R, "counts", 0, {"loss_function": "Poisson"}),
    "catboost regressor, tweedie": (_R, "counts", 0, {"loss_function": "Tweedie:variance_power=1.5"}),
    "catboost regressor, two targets": (_R, "targets", 0, {"loss_function": "MultiRMSE"}),
    "catboost regressor, uncertainty": (_R, "number", 0, {"loss_function": "RMSEWithUncertainty"}),
    "catboost plain": (CatBoost, "two", 0, {"loss_function": "Logloss"}),
    "catboost ranker": (CatBoostRanker, "counts", 0, {"loss_function": "YetiRank"}),
}

RECIPES = {name: partial(_fit, kind, target, ulp, **options) for name, (kind, target, ulp, options) in _MODELS.items()}
FOR_SOLVERS = ("catboost regressor", "catboost classes", "catboost classifier, by leaf")
