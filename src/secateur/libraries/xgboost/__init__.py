"""Read and write XGBoost models: Booster, the scikit-learn wrappers, and JSON and UBJSON files."""

import json
from pathlib import Path
from typing import Any

import xgboost

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
    TypeError
        If the model is neither.
    ValueError
        If the model is not fitted, or has no trees that can be pruned.
    """
    one_thread_in_a_fork()
    if isinstance(model, xgboost.Booster):
        return XGBoostBoosterAdapter(model)
    if isinstance(model, xgboost.XGBModel):
        if not model.__sklearn_is_fitted__():
            raise ValueError(f"This {type(model).__name__} is not fitted. Fit or load it before pruning.")
        return XGBoostWrapperAdapter(model)
    raise TypeError(
        f"Got xgboost.{type(model).__qualname__}, which is not a model. Pass a Booster, or a fitted XGBClassifier, "
        "XGBRegressor, XGBRanker, XGBRFClassifier or XGBRFRegressor."
    )


def load(file: Path) -> Any:
    """Return the Booster stored in a .json or .ubj file.

    XGBoost never reads the file, which may be damaged; it loads a checked copy of the contents.

    Raises
    ------
    ValueError
        If the file is not a complete, valid model.
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
        raise ValueError(
            f"XGBoost {xgboost.__version__} cannot load {file}: {reason} A model saved by this version or an older "
            "one is needed; save it again, or upgrade XGBoost."
        ) from error
    except UnicodeError as error:
        # Either the file or XGBoost's error message is not UTF-8.
        raise ValueError(f"{file} cannot be read: a text in it is no UTF-8. Save the model again.") from error
    except OverflowError as error:
        raise ValueError(f"{file} cannot be read: a number in it is beyond all types. Save the model again.") from error
    except ValueError as error:
        raise ValueError(f"{file} cannot be read. {error}") from error
    return booster


def _parse(data: bytes) -> Any:
    """Return the contents of a file, JSON or UBJSON; the second byte distinguishes the two."""
    if data[:1] != b"{":
        raise ValueError(
            "It is neither JSON nor UBJSON, which XGBoost models are saved as. Load it with the XGBoost that wrote "
            "it, and save it as .json or .ubj."
        )
    if data[1:2] in b"LiUIl":
        return decode(data)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"It is no JSON text ({error}). Copy or save it again.") from None


def dump(model: Any, suffix: str) -> bytes:
    """Return the bytes of a .json or .ubj file of the model."""
    booster = model if isinstance(model, xgboost.Booster) else model.get_booster()
    return bytes(booster.save_raw(suffix.lstrip(".")))
