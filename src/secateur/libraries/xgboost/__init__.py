"""Read and write XGBoost models: Booster, the scikit-learn wrappers, and JSON and UBJSON files."""

import json
from pathlib import Path
from typing import Any

import xgboost

from secateur.errors import DamagedFileError, InvalidInputError, UnsupportedFileError, UnsupportedModelError
from secateur.libraries.adapter import Adapter
from secateur.libraries.fork_safety import one_thread_in_a_fork
from secateur.libraries.xgboost.adapter import XGBoostBoosterAdapter
from secateur.libraries.xgboost.file_checks import check_saved
from secateur.libraries.xgboost.sklearn_wrappers import XGBoostWrapperAdapter
from secateur.libraries.xgboost.ubjson import decode, encode


def adapt(model: Any) -> Adapter:
    """Return the adapter of a Booster or of a fitted XGBModel.

    Raises
    ------
    UnsupportedModelError
        If the model is neither, or has no trees that can be pruned.
    InvalidInputError
        If the model is not fitted.
    """
    one_thread_in_a_fork()
    if isinstance(model, xgboost.Booster):
        return XGBoostBoosterAdapter(model)
    if isinstance(model, xgboost.XGBModel):
        if not model.__sklearn_is_fitted__():
            raise InvalidInputError(
                f"This {type(model).__name__} is not fitted, but pruning needs a trained model. Call fit or load_model "
                "first."
            )
        return XGBoostWrapperAdapter(model)
    raise UnsupportedModelError(
        f"Got xgboost.{type(model).__qualname__}, which is not a model. Pass a Booster, or a fitted XGBClassifier, "
        "XGBRegressor, XGBRanker, XGBRFClassifier or XGBRFRegressor."
    )


def load(file: Path) -> Any:
    """Return the Booster stored in a .json or .ubj file.

    XGBoost never reads the file, which may be damaged; it loads a checked copy of the contents.

    Raises
    ------
    DamagedFileError
        If the file is not a complete, valid model.
    UnsupportedFileError
        If the file has another format, or this version of XGBoost cannot load it.
    """
    one_thread_in_a_fork()
    data = file.read_bytes()
    try:
        saved = _parse(data)
        booster = xgboost.Booster()
        booster.load_model(encode(check_saved(saved)))
        # XGBoost loads lazily; this call makes it read the whole model now.
        booster.num_boosted_rounds()
    except xgboost.core.XGBoostError as error:
        reason = str(error).splitlines()[0]
        raise UnsupportedFileError(
            f"XGBoost {xgboost.__version__} cannot load it: {reason} The model must have been saved by this version "
            "or an older one. Save it again, or upgrade XGBoost."
        ) from error
    except UnicodeError as error:
        # Either the file or XGBoost's error message is not UTF-8.
        raise DamagedFileError("It contains text that is not UTF-8. Save the model again.") from error
    except OverflowError as error:
        raise DamagedFileError("It contains a number out of range. Save the model again.") from error
    return booster


def _parse(data: bytes) -> Any:
    """Return the contents of a file, JSON or UBJSON; the second byte distinguishes the two."""
    if data[:1] != b"{":
        raise UnsupportedFileError(
            "It is neither JSON nor UBJSON, the two formats of XGBoost models that secateur reads. Load it with the "
            "XGBoost version that wrote it, and save it as .json or .ubj."
        )
    if data[1:2] in b"LiUIl":
        return decode(data)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(f"It is not valid JSON ({error}). Copy or save it again.") from None


def dump(model: Any, suffix: str) -> bytes:
    """Return the bytes of a .json or .ubj file of the model."""
    booster = model if isinstance(model, xgboost.Booster) else model.get_booster()
    return bytes(booster.save_raw(suffix.lstrip(".")))
