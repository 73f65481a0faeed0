"""Make random models of each library with random rows, for checks over many seeds."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from tests.cases.case import Case, by_its_methods
from tests.strategies import LINK_OUTPUTS, random_forest, random_rows, random_target

Rng = np.random.Generator
LABELS = np.array(["ash", "birch", "cedar"])


def random_case(library: str, task: str, rng: Rng) -> Case:
    """Return a fitted model of a library; the task is "numbers" or "classes"."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MAKERS[library](task, rng)


def _rows(task: str, rng: Rng, missing: bool) -> tuple[Any, Any, Any, Any]:
    """Return training rows and other rows with targets; some values are missing and many are equal."""
    n_rows, n_features = int(rng.integers(40, 100)), int(rng.integers(1, 7))
    X = rng.normal(size=(2 * n_rows, n_features)).round(int(rng.integers(0, 4)))
    X = X.astype(np.float32).astype(np.float64)
    signal = X[:, 0] - X[:, -1] * (X[:, n_features // 2] > 0) + rng.normal(size=len(X))
    if missing and rng.random() < 0.5:
        X[rng.random(X.shape) < 0.1] = np.nan
    y: Any = signal * 10.0 ** float(rng.integers(-3, 4))
    if task == "classes":
        n_classes = int(rng.integers(2, 4))
        y = np.digitize(signal, [0.0] if n_classes == 2 else [-0.5, 0.5])
        y[:n_classes] = y[n_rows : n_rows + n_classes] = np.arange(n_classes)
    return X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]


def _fitted(
    model: Any, rows: Any, rng: Rng, predictions: Callable[..., Any] = by_its_methods, words: bool = False
) -> Case:
    """Return a fitted model with new rows instead of its training rows."""
    X, y, X_new, y_new = rows
    if words and y.dtype.kind == "i" and rng.random() < 0.5:
        y, y_new = LABELS[y], LABELS[y_new]
    weight = rng.integers(0, 4, len(X_new)).astype(float) if rng.random() < 0.5 else None
    if weight is not None:
        weight[0] = 1.0
    return Case(model.fit(X, y), X_new, y_new, np.vstack([X, X_new]), weight, predictions)


def _sklearn(task: str, rng: Rng) -> Case:
    from sklearn import ensemble, tree

    end = "Classifier" if task == "classes" else "Regressor"
    few, seed = int(rng.integers(2, 7)), int(rng.integers(1000))
    depth = {"max_depth": int(rng.integers(1, 5)), "random_state": seed}
    kinds: list[tuple[Any, str, dict[str, Any]]] = [
        (tree, "DecisionTree", {**depth, "min_samples_leaf": int(rng.integers(1, 5))}),
        (ensemble, "RandomForest", {**depth, "n_estimators": few}),
        (ensemble, "ExtraTrees", {**depth, "n_estimators": few}),
        (ensemble, "Bagging", {"n_estimators": few, "random_state": seed, "max_samples": 0.3}),
        (ensemble, "GradientBoosting", {**depth, "n_estimators": few}),
        (ensemble, "HistGradientBoosting", {**depth, "max_iter": few, "min_samples_leaf": 3}),
        (ensemble, "AdaBoost", {"n_estimators": few, "random_state": seed}),
    ]
    module, name, settings = kinds[int(rng.integers(len(kinds)))]
    rows = _rows(task, rng, missing=name in ("DecisionTree", "RandomForest", "HistGradientBoosting"))
    return _fitted(getattr(module, name + end)(**settings), rows, rng, words=True)


def _xgboost(task: str, rng: Rng) -> Case:
    import xgboost
    from tests.cases.xgboost import wrapper_predictions

    kind = xgboost.XGBClassifier if task == "classes" else xgboost.XGBRegressor
    settings = {"n_estimators": int(rng.integers(2, 6)), "max_depth": int(rng.integers(1, 5)), "n_jobs": 1}
    settings |= {"learning_rate": float(rng.choice([0.1, 0.3, 1.0])), "num_parallel_tree": int(rng.integers(1, 3))}
    return _fitted(kind(**settings), _rows(task, rng, missing=True), rng, wrapper_predictions)


def _lightgbm(task: str, rng: Rng) -> Case:
    import lightgbm
    from tests.cases.lightgbm import wrapper_predictions

    kind = lightgbm.LGBMClassifier if task == "classes" else lightgbm.LGBMRegressor
    settings = {"n_estimators": int(rng.integers(2, 6)), "num_leaves": int(rng.integers(2, 9)), "n_jobs": 1}
    settings |= {"min_child_samples": int(rng.integers(2, 9)), "verbose": -1}
    if rng.random() < 0.3:
        settings |= {"boosting_type": "rf", "subsample": 0.6, "subsample_freq": 1}
    return _fitted(kind(**settings), _rows(task, rng, missing=True), rng, wrapper_predictions, words=True)


def _catboost(task: str, rng: Rng) -> Case:
    import catboost
    from tests.cases.catboost import predictions

    kind = catboost.CatBoostClassifier if task == "classes" else catboost.CatBoostRegressor
    settings = {"iterations": int(rng.integers(2, 6)), "depth": int(rng.integers(1, 4)), "silent": True}
    settings |= {"grow_policy": str(rng.choice(["SymmetricTree", "Depthwise", "Lossguide"]))}
    settings |= {"allow_writing_files": False, "thread_count": 1}
    return _fitted(kind(**settings), _rows(task, rng, missing=True), rng, predictions, words=True)


def _spark(task: str, rng: Rng) -> Case:
    """Return one of the models that Spark saved; rows and targets are drawn again."""
    from tests.cases.spark import RECIPES

    names = {"classes": ("forest_classes", "boosted_classes", "tree_classes")}
    names["numbers"] = ("forest_regression", "boosted_regression", "tree_regression")
    found = RECIPES[f"spark_{rng.choice(names[task])}"]()
    rows = rng.choice(len(found.X), int(rng.integers(40, 80)))
    return Case(found.model, found.X[rows], np.asarray(found.y)[rows], found.X, None, found.predictions, ulp=1)


def _forest(task: str, rng: Rng) -> Case:
    """Return a forest of random arrays."""
    links = ("probability", "logit", "softmax") if task == "classes" else ("identity",)
    link = str(rng.choice(links))
    n_classes, n_outputs = LINK_OUTPUTS[link][int(rng.integers(len(LINK_OUTPUTS[link])))]
    facts: dict[str, Any] = {"aggregation": "mean"} if task == "numbers" and rng.random() < 0.5 else {}
    model = random_forest(
        rng, int(rng.integers(1, 5)), int(rng.integers(0, 7)), link, n_classes, n_outputs, rng.random() < 0.5, **facts
    )
    X = random_rows(rng, 40, model.n_features)
    return Case(model, X, random_target(rng, model, 40), X, None, lambda model, X: {})


MAKERS: dict[str, Callable[[str, Rng], Case]] = {
    "sklearn": _sklearn,
    "xgboost": _xgboost,
    "lightgbm": _lightgbm,
    "catboost": _catboost,
    "pyspark": _spark,
    "secateur": _forest,
}
"""How to make a random model, by library; "secateur" is the neutral Forest itself."""
