"""Define the kinds of model files: valid files, their changes, and the reader they are compared with."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.hardening.mutating.changes import (
    change_archive,
    change_cbm,
    change_json,
    change_lightgbm,
    change_skops,
    change_spark,
    change_ubj,
)
from tests.hardening.mutating.judging import judge, read
from tests.hardening.mutating.kind import Kind, copy_folder
from tests.hardening.mutating.sound import (
    boosting_in_pipeline,
    catboost_trees,
    forest,
    forest_of_classes,
    histogram_boosting,
    lightgbm_classes,
    saved,
    xgboost_classes,
    xgboost_numbers,
)

_SPARK = Path(__file__).parents[2] / "models/spark-4.3.0-boosted_regression"


def _kind(suffix: str, change: Any, *makes: Callable[[], Any]) -> Kind:
    return Kind(suffix, tuple(saved(make) for make in makes), change, read, judge)


MODELS = {
    "XGBoost .json": _kind(".json", change_json, xgboost_numbers, xgboost_classes),
    "XGBoost .ubj": _kind(".ubj", change_ubj, xgboost_numbers, xgboost_classes),
    "LightGBM .txt": _kind(".txt", change_lightgbm, lightgbm_classes(2), lightgbm_classes(3)),
    "CatBoost .json": _kind(".json", change_json, catboost_trees("SymmetricTree"), catboost_trees("Lossguide")),
    "CatBoost .cbm": _kind(
        ".cbm",
        change_cbm,
        catboost_trees("Depthwise"),
        catboost_trees("SymmetricTree", 3),
        catboost_trees("Lossguide", 2, threshold=0.3),
    ),
    "Spark folder": Kind("", (lambda folder: copy_folder(_SPARK, folder),), change_spark, read, judge),
    ".skops": _kind(".skops", change_skops, forest_of_classes, histogram_boosting, boosting_in_pipeline),
    ".secateur": _kind(".secateur", change_archive, forest),
}
