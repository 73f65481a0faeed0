"""Fitted scikit-learn models of every supported kind and option, and rows to predict."""

import warnings
from functools import partial
from typing import Any

import numpy as np
import sklearn
from sklearn.base import clone
from sklearn.datasets import make_classification, make_regression
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor
from tests.cases.case import Case

N_ROWS = 150


def _data(kind):
    rng = np.random.default_rng(0)
    if kind in ("two", "three"):
        classes = 2 if kind == "two" else 3
        X, y = make_classification(N_ROWS, 6, n_informative=4, n_classes=classes, flip_y=0.2, random_state=0)
    elif kind == "strings":
        X, y = make_classification(N_ROWS, 6, n_informative=4, n_classes=3, flip_y=0.2, random_state=1)
        y = np.array(["ash", "birch", "cedar"])[y]
    elif kind == "targets":
        X, y = make_regression(N_ROWS, 6, n_targets=2, noise=20, random_state=0)
    elif kind == "labels":
        X, first = make_classification(N_ROWS, 6, n_informative=4, n_classes=3, random_state=0)
        y = np.column_stack([first, rng.integers(0, 2, N_ROWS)])
    elif kind == "counts":
        X = rng.normal(size=(N_ROWS, 6))
        y = rng.poisson(np.exp(X[:, 0])).astype(float)
    else:
        X, y = make_regression(N_ROWS, 6, noise=20, random_state=0)
    return X, y


def _with_nan(X):
    X = X.copy()
    X[np.random.default_rng(1).random(X.shape) < 0.15] = np.nan
    return X


def _frame():
    import pandas as pd

    X, y = _data("three")
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(6)])
    rng = np.random.default_rng(2)
    frame.insert(2, "colour", pd.Categorical(rng.choice(["red", "green", "blue", "grey"], N_ROWS)))
    frame["size"] = pd.Categorical(rng.integers(0, 12, N_ROWS))
    frame.loc[::7, "colour"] = None
    return frame, (y + (frame["colour"] == "red")) % 3


TREE, FOREST = {"random_state": 0}, {"n_estimators": 7, "random_state": 0}

# name: (estimator, kind of data, options)
# nan: with missing values; weight: with sample weights, some 0; routing: fitted under scikit-learn's metadata routing,
# which makes bagged trees see only the classes among their own rows.
_MODELS: dict[str, tuple[Any, str, set[str]]] = {
    "tree classifier": (DecisionTreeClassifier(**TREE), "three", set()),
    "tree classifier, entropy, strings": (DecisionTreeClassifier(criterion="entropy", **TREE), "strings", set()),
    "tree classifier, best first": (DecisionTreeClassifier(max_leaf_nodes=12, **TREE), "three", set()),
    "tree classifier, class weights": (DecisionTreeClassifier(class_weight="balanced", **TREE), "two", {"weight"}),
    "tree classifier, missing values": (DecisionTreeClassifier(**TREE), "three", {"nan"}),
    "tree classifier, monotonic": (DecisionTreeClassifier(monotonic_cst=[1, -1, 0, 0, 0, 0], **TREE), "two", set()),
    "tree classifier, several targets": (DecisionTreeClassifier(**TREE), "labels", set()),
    "tree classifier, one leaf": (DecisionTreeClassifier(max_depth=1, min_samples_leaf=100, **TREE), "two", set()),
    "tree regressor": (DecisionTreeRegressor(**TREE), "number", set()),
    "tree regressor, absolute error": (
        DecisionTreeRegressor(criterion="absolute_error", max_depth=5, **TREE),
        "number",
        set(),
    ),
    "tree regressor, several targets": (DecisionTreeRegressor(max_leaf_nodes=20, **TREE), "targets", {"weight"}),
    "tree regressor, missing values": (DecisionTreeRegressor(**TREE), "number", {"nan"}),
    "extra tree classifier": (ExtraTreeClassifier(**TREE), "three", set()),
    "extra tree regressor": (ExtraTreeRegressor(**TREE), "number", {"nan"}),
    "random forest classifier": (RandomForestClassifier(**FOREST), "strings", set()),
    "random forest classifier, missing values": (RandomForestClassifier(max_depth=5, **FOREST), "two", {"nan"}),
    "random forest classifier, several targets": (RandomForestClassifier(**FOREST), "labels", set()),
    "random forest classifier, subsample weights": (
        RandomForestClassifier(class_weight="balanced_subsample", max_samples=0.5, **FOREST),
        "three",
        {"weight"},
    ),
    "random forest regressor": (RandomForestRegressor(**FOREST), "number", set()),
    "random forest regressor, several targets": (RandomForestRegressor(**FOREST), "targets", set()),
    "random forest regressor, monotonic": (
        RandomForestRegressor(monotonic_cst=[1, 0, 0, 0, 0, -1], **FOREST),
        "number",
        set(),
    ),
    "extra trees classifier": (ExtraTreesClassifier(**FOREST), "three", {"nan"}),
    "extra trees regressor": (ExtraTreesRegressor(bootstrap=True, **FOREST), "number", set()),
    "bagging classifier, some columns": (
        BaggingClassifier(DecisionTreeClassifier(), max_features=0.5, max_samples=0.6, **FOREST),
        "strings",
        set(),
    ),
    "bagging classifier, few rows": (
        BaggingClassifier(DecisionTreeClassifier(), max_samples=4, **FOREST),
        "three",
        {"routing"},
    ),
    "bagging regressor, repeated columns": (
        BaggingRegressor(DecisionTreeRegressor(), bootstrap_features=True, **FOREST),
        "number",
        {"nan"},
    ),
    "gradient boosting classifier": (GradientBoostingClassifier(**FOREST), "two", set()),
    "gradient boosting classifier, exponential": (
        GradientBoostingClassifier(loss="exponential", learning_rate=0.3, **FOREST),
        "strings2",
        set(),
    ),
    "gradient boosting classifier, three classes": (
        GradientBoostingClassifier(subsample=0.7, **FOREST),
        "strings",
        {"weight"},
    ),
    "gradient boosting classifier, on another model": (
        GradientBoostingClassifier(init=LogisticRegression(), **FOREST),
        "two",
        set(),
    ),
    "gradient boosting classifier, from zero": (
        GradientBoostingClassifier(init="zero", max_leaf_nodes=5, **FOREST),
        "three",
        set(),
    ),
    "gradient boosting regressor": (GradientBoostingRegressor(**FOREST), "number", set()),
    "gradient boosting regressor, huber": (GradientBoostingRegressor(loss="huber", **FOREST), "number", set()),
    "gradient boosting regressor, on another model": (
        GradientBoostingRegressor(init=LinearRegression(), **FOREST),
        "number",
        set(),
    ),
    "adaboost classifier": (AdaBoostClassifier(DecisionTreeClassifier(max_depth=3), **FOREST), "two", set()),
    "adaboost classifier, three classes": (
        AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), **FOREST),
        "strings",
        {"weight"},
    ),
    "adaboost classifier, stopped early": (
        AdaBoostClassifier(DecisionTreeClassifier(max_depth=5), n_estimators=40, random_state=0),
        "easy",
        set(),
    ),
    "adaboost regressor": (AdaBoostRegressor(DecisionTreeRegressor(max_depth=4), **FOREST), "number", set()),
    "isolation forest": (IsolationForest(**FOREST), "number", set()),
    "isolation forest, some columns": (
        IsolationForest(max_features=3, max_samples=60, contamination=0.1, **FOREST),
        "number",
        {"nan"},
    ),
    "hist boosting classifier": (HistGradientBoostingClassifier(max_iter=7, random_state=0), "two", {"nan"}),
    "hist boosting classifier, three classes": (
        HistGradientBoostingClassifier(max_iter=5, max_leaf_nodes=6, class_weight="balanced", random_state=0),
        "strings",
        {"weight"},
    ),
    "hist boosting classifier, categories": (
        HistGradientBoostingClassifier(
            max_iter=6, categorical_features="from_dtype", min_samples_leaf=3, random_state=0
        ),
        "frame",
        set(),
    ),
    "hist boosting regressor": (HistGradientBoostingRegressor(max_iter=7, random_state=0), "number", {"nan"}),
    "hist boosting regressor, monotonic": (
        HistGradientBoostingRegressor(max_iter=7, monotonic_cst=[1, 0, 0, -1, 0, 0], random_state=0),
        "number",
        {"weight"},
    ),
    "hist boosting regressor, poisson": (
        HistGradientBoostingRegressor(loss="poisson", max_iter=7, random_state=0),
        "counts",
        set(),
    ),
    "hist boosting regressor, quantile": (
        HistGradientBoostingRegressor(loss="quantile", quantile=0.8, max_iter=7, random_state=0),
        "number",
        set(),
    ),
    "pipeline": (make_pipeline(StandardScaler(), RandomForestClassifier(**FOREST)), "strings", set()),
    "search": (
        GridSearchCV(
            make_pipeline(StandardScaler(), DecisionTreeRegressor(**TREE)), {"decisiontreeregressor__max_depth": [3, 6]}
        ),
        "number",
        set(),
    ),
}


def _fit(estimator: Any, kind: str, options: set[str]) -> Case:
    if kind == "frame":
        X, y = _frame()
    elif kind == "strings2":
        X, y = _data("two")
        y = np.array(["no", "yes"])[y]
    elif kind == "easy":  # the 22nd tree makes no error, which stops AdaBoost early
        X, y = make_classification(N_ROWS, 6, n_informative=4, n_redundant=0, flip_y=0.05, random_state=16)
    else:
        X, y = _data(kind)
    if "nan" in options:
        X = _with_nan(X)
    weight = np.random.default_rng(3).integers(0, 4, N_ROWS).astype(float) if "weight" in options else None
    with warnings.catch_warnings(), sklearn.config_context(enable_metadata_routing="routing" in options):
        warnings.simplefilter("ignore")
        model = clone(estimator).fit(X, y, **({} if weight is None else {"sample_weight": weight}))
    return Case(model, X, y, _new_rows(X, "nan" in options), weight)


RECIPES = {name: partial(_fit, *model) for name, model in _MODELS.items()}
FOR_SOLVERS = tuple(RECIPES)


def _new_rows(X, nan):
    """Return rows between and beyond the known ones, some equal to them."""
    if hasattr(X, "iloc"):
        X_new = X.sample(frac=1, random_state=0, ignore_index=True)
        for column in ("x0", "x5"):
            X_new[column] = X_new[column] * 1.5
        return X_new
    rng = np.random.default_rng(4)
    new = np.nan_to_num(X[rng.permutation(len(X))]) * rng.choice([1.0, 1.0, 1.7, -1.0], size=X.shape)
    if nan:
        new[rng.random(new.shape) < 0.2] = np.nan
    return np.vstack([X, new])
