"""Train small valid models, whose files are then damaged."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from secateur.files.models import save_model
from secateur.forest import Forest
from secateur.libraries import adapt


def _data(n_classes: int = 2) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    X[rng.random(X.shape) < 0.1] = np.nan
    score = np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) * np.nan_to_num(X[:, 2])
    if not n_classes:
        return X, score
    return X, np.digitize(score + 0.3 * rng.normal(size=200), np.linspace(-0.5, 0.5, n_classes + 1)[1:-1])


def saved(make: Callable[[], Any]) -> Callable[[Path], Any]:
    return lambda file: save_model(make(), file)


def xgboost_numbers() -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(n_estimators=4, max_depth=3, n_jobs=1).fit(*_data()).get_booster()


def xgboost_classes() -> Any:
    import pandas as pd
    from xgboost import XGBClassifier

    X, y = _data(3)
    table = pd.DataFrame(X, columns=list("abcd")).assign(d=pd.Categorical(np.nan_to_num(X[:, 3]).round().astype(int)))
    options = {"n_estimators": 2, "max_depth": 2, "n_jobs": 1, "max_cat_to_onehot": 1}
    return XGBClassifier(**options, enable_categorical=True).fit(table, y).get_booster()


def lightgbm_classes(n_classes: int) -> Callable[[], Any]:
    def make() -> Any:
        from lightgbm import LGBMClassifier

        model = LGBMClassifier(n_estimators=4, num_leaves=6, min_child_samples=5, n_jobs=1, verbose=-1)
        return model.fit(*_data(n_classes)).booster_

    return make


def catboost_trees(policy: str, n_classes: int = 0, threshold: float | None = None) -> Callable[[], Any]:
    def make() -> Any:
        from catboost import CatBoostClassifier, CatBoostRegressor

        kind = CatBoostClassifier if n_classes else CatBoostRegressor
        options = {"iterations": 4, "depth": 3, "grow_policy": policy, "thread_count": 1, "verbose": 0}
        X, y = _data(n_classes)
        names = np.array(["ash", "birch", "cedar"])[y] if n_classes else y
        model = kind(**options, allow_writing_files=False).fit(X, names)
        if threshold is not None:
            model.set_probability_threshold(threshold)
        return model

    return make


def forest() -> Forest:
    from sklearn.ensemble import RandomForestRegressor

    X, y = _data(0)
    return adapt(RandomForestRegressor(4, max_depth=3, random_state=0).fit(X, y)).forest


def forest_of_classes() -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(2, max_depth=3, random_state=0).fit(*_data(3))


def histogram_boosting() -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    options = {"max_iter": 2, "max_leaf_nodes": 5, "early_stopping": False}
    return HistGradientBoostingClassifier(**options, random_state=0).fit(*_data(2))


def boosting_in_pipeline() -> Any:
    from sklearn.ensemble import GradientBoostingRegressor
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline

    boosting = GradientBoostingRegressor(n_estimators=2, max_depth=2, random_state=0)
    return make_pipeline(SimpleImputer(), boosting).fit(*_data(0))
