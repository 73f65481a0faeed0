"""Read LightGBM models (Booster, LGBMClassifier, LGBMRegressor, LGBMRanker, text files) and write them back."""

from pathlib import Path
from typing import Any

import lightgbm

from secateur.errors import DamagedFileError, UnsupportedModelError
from secateur.libraries.adapter import Adapter, not_fitted
from secateur.libraries.fork_safety import one_thread_in_a_fork
from secateur.libraries.lightgbm.adapter import (
    ClassifierAdapter,
    LightGBMBoosterAdapter,
    LightGBMWrapperAdapter,
    booster_of,
)
from secateur.libraries.lightgbm.objectives import read_objective
from secateur.libraries.lightgbm.text_file import parse
from secateur.libraries.lightgbm.trees import read_nodes


def adapt(model: Any) -> Adapter:
    """Return the adapter of a fitted LightGBM model.

    Raises
    ------
    UnsupportedModelError
        If the model is neither a Booster nor one of the scikit-learn wrappers, or has trees that cannot be pruned.
    InvalidInputError
        If the model is not fitted.
    """
    one_thread_in_a_fork()
    if isinstance(model, lightgbm.Booster):
        return LightGBMBoosterAdapter(model)
    if not isinstance(model, lightgbm.LGBMModel) or hasattr(model, "to_local"):
        raise UnsupportedModelError(
            f"Got {type(model).__name__}, which is not a supported LightGBM model. Pass a Booster, LGBMClassifier, "
            "LGBMRegressor or LGBMRanker: model.to_local() for a Dask model, one of the boosters for a CVBooster."
        )
    if getattr(model, "_Booster", None) is None:
        raise not_fitted(model)
    return ClassifierAdapter(model) if isinstance(model, lightgbm.LGBMClassifier) else LightGBMWrapperAdapter(model)


def load(file: Path) -> Any:
    """Return the Booster stored in a text file.

    Raises
    ------
    DamagedFileError
        If the file is not a complete LightGBM model; this is checked before LightGBM parses it.
    """
    one_thread_in_a_fork()
    try:
        text = parse(file.read_bytes().decode())
    except UnicodeDecodeError as error:
        raise DamagedFileError(
            f"It is not a text file ({error.reason}), but LightGBM saves models as text. Save the model again with "
            "save_model."
        ) from error
    read_objective(text)
    read_nodes(text.trees, text.n_features)
    return booster_of(text)


def dump(model: Any, suffix: str) -> bytes:
    """Return the model as text; a scikit-learn wrapper as the text of its Booster."""
    booster = model if isinstance(model, lightgbm.Booster) else model.booster_
    text: str = booster.model_to_string()
    return text.encode()
