"""Read and write CatBoost models, in memory and in .cbm and .json files."""

import errno
import json
from pathlib import Path
from typing import Any

from catboost import CatBoost, CatBoostClassifier, CatBoostError, CatBoostRanker, CatBoostRegressor, Pool

from secateur.errors import UnsupportedFileError, UnsupportedModelError
from secateur.files.tempdir import scratch_folder
from secateur.libraries.adapter import not_fitted
from secateur.libraries.catboost.adapter import CatBoostAdapter
from secateur.libraries.catboost.cbm import NativeModel, read_cbm
from secateur.libraries.catboost.ctr_checks import check_tail
from secateur.libraries.catboost.flatbuffer import damaged
from secateur.libraries.catboost.json_file import json_to_cbm
from secateur.libraries.catboost.model_info import check_info, class_positions, has_params
from secateur.libraries.catboost.objectives import loss_named
from secateur.libraries.catboost.trees import in_preorder

__all__ = ["adapt", "dump", "load"]


def adapt(model: Any) -> CatBoostAdapter:
    """Return the adapter of a fitted CatBoost model.

    Raises
    ------
    UnsupportedModelError
        If it is not a model, or has text features.
    InvalidInputError
        If the model is not fitted.
    """
    if not isinstance(model, CatBoost):
        raise UnsupportedModelError(
            f"Got catboost.{type(model).__qualname__}, which is not a model. Pass a fitted CatBoost, "
            "CatBoostClassifier, CatBoostRegressor or CatBoostRanker."
        )
    if not model.is_fitted():
        raise not_fitted(model)
    adapter = CatBoostAdapter(model)
    if any(part.startswith("text_process") for part in adapter.native.parts):
        raise UnsupportedModelError(
            f"This {type(model).__name__} uses text features, and CatBoost cannot load a copy of such a model. "
            "secateur needs a model without text_features. Encode texts as numbers or categories and train again."
        )
    return adapter


def load(file: Path) -> CatBoost:
    """Return the model of a .cbm or .json file, as the class that fits its loss.

    Raises
    ------
    DamagedFileError
        If the file is damaged. Everything CatBoost's reader does not validate is checked before CatBoost loads it.
    """
    blob = file.read_bytes()
    if file.suffix.lower() == ".json":
        blob = json_to_cbm(blob)
    native = read_cbm(blob)
    in_preorder(native.trees)
    if not native.plain:
        raise UnsupportedFileError(
            "It contains a CatBoost model with text or embedding features. secateur cannot validate their tables, "
            "and CatBoost may crash on damaged ones. Load the file with CatBoost's load_model and pass the model."
        )
    check_tail(native)
    check_info(native.info)
    loss = loss_named(native.info)
    kind = CatBoostRanker if loss.ranks else CatBoostRegressor
    if loss.classes or loss.many_labels:
        kind = CatBoostClassifier
        class_positions(native.info, native.trees.leaf_value.shape[1])
    with scratch_folder() as folder:
        checked = folder / "model.cbm"
        checked.write_bytes(blob)
        try:
            model = kind().load_model(str(checked))
            # CatBoost needs the output options to return the parameters; files of old versions have none.
            if has_params(native.info) and "output_options" in native.info:
                model.get_all_params()
            _predict_one_row(model, native)
            info = dict(model.get_metadata())
        except Exception as error:
            # The type of the exception depends on which of CatBoost's checks fails.
            raise damaged(f"CatBoost cannot read it ({str(error).partition(chr(10))[0]})") from error
    # CatBoost silently drops parameters it does not understand.
    check_info(info)
    if loss_named(info) != loss:
        raise damaged(f"CatBoost does not accept {loss.name} as its training loss")
    return model


def _predict_one_row(model: CatBoost, native: NativeModel) -> None:
    """Predict one row, because CatBoost validates some parts of a model only when it predicts."""
    conditions = native.conditions
    categories = sorted(set(range(conditions.n_columns)) - set(conditions.numeric))
    row: list[Any] = [0.0] * conditions.n_columns
    for column in categories:
        row[column] = ""
    CatBoost.predict(model, Pool([row], cat_features=categories), prediction_type="RawFormulaVal", thread_count=1)


def dump(model: CatBoost, suffix: str) -> bytes:
    """Return the contents of a .cbm or .json file of the model."""
    if suffix == ".cbm":
        blob: bytes = model._serialize_model()
        return blob
    with scratch_folder() as folder:
        file = folder / "model.json"
        try:
            model.save_model(str(file), format="json")
        except CatBoostError as error:
            raise OSError(errno.EIO, str(error).partition("\n")[0]) from error
        content = file.read_bytes()
        try:
            json.loads(content)
        except ValueError as error:
            raise OSError(errno.EIO, f"CatBoost wrote only {len(content)} bytes of it and reported no error") from error
        return content
