"""Small models of every library that has files of its own, saved: what the tables of damaged files begin with."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from secateur.forest import Forest
from secateur.io import adapt
from secateur.io.files import load_model, save_model


def save_small_models(folder: Path) -> dict[str, Path]:
    """Write one model for each kind of file and return where they are, by a name for the kind."""
    files = {}
    for kind, suffix, make in _MODELS:
        files[kind] = save_model(make(), folder / f"{kind}{suffix}")
    return files


def _data(n_classes: int = 2) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    X[rng.random(X.shape) < 0.1] = np.nan
    score = np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) * np.nan_to_num(X[:, 2])
    return X, (score + 0.3 * rng.normal(size=200) > 0).astype(int) if n_classes else score


def _xgboost() -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(n_estimators=4, max_depth=3, n_jobs=1).fit(*_data()).get_booster()


def _lightgbm() -> Any:
    from lightgbm import LGBMClassifier

    model = LGBMClassifier(n_estimators=4, num_leaves=6, min_child_samples=5, n_jobs=1, verbose=-1)
    return model.fit(*_data()).booster_


def _catboost(policy: str) -> Callable[[], Any]:
    def make() -> Any:
        from catboost import CatBoost

        options = {"iterations": 4, "depth": 3, "loss_function": "RMSE", "grow_policy": policy}
        return CatBoost({**options, "thread_count": 1, "verbose": 0, "allow_writing_files": False}).fit(*_data(0))

    return make


def _forest() -> Forest:
    from sklearn.ensemble import RandomForestRegressor

    X, y = _data(0)
    return adapt(RandomForestRegressor(4, max_depth=3, random_state=0).fit(X, y)).forest


def _spark() -> Any:
    """Return a model Spark saved, so that no JVM is needed here."""
    return load_model(Path(__file__).parents[1] / "tests/models/spark-4.3.0-boosted_regression")


_MODELS: tuple[tuple[str, str, Callable[[], Any]], ...] = (
    ("xgboost_json", ".json", _xgboost),
    ("xgboost_ubj", ".ubj", _xgboost),
    ("lightgbm_txt", ".txt", _lightgbm),
    ("catboost_json", ".json", _catboost("SymmetricTree")),
    ("catboost_cbm", ".cbm", _catboost("Depthwise")),
    ("spark_folder", "", _spark),
    ("secateur", ".secateur", _forest),
)
