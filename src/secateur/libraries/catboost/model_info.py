"""Validate the metadata of a CatBoost model: named texts, most of them JSON.

CatBoost parses some of them only when it predicts. A model made by summing models has no parameters. Once CatBoost has
looked for them, it stores an empty text, or an empty list of user-defined parameters.
"""

import json
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from secateur.libraries.catboost.flatbuffer import damaged

_OBJECTS = ("boosting_options", "loss_function", "flat_params", "tree_learner_options", "data_processing_options")
"""Parameter groups that CatBoost assumes to be objects without a check."""


def has_params(info: Mapping[str, str]) -> bool:
    """Return whether a model records its training parameters.

    Raises
    ------
    DamagedFileError
        If they are not a JSON object.
    """
    return bool(info.get("params")) and not _object(info, "params").keys() <= {"flat_params"}


def class_positions(info: Mapping[str, str], n_outputs: int) -> list[int]:
    """Return the index of each class seen in training among all classes the model names.

    Parameters
    ----------
    info : mapping of str to str
    n_outputs : int
        Number of raw outputs: one for two classes, else one per class seen in training.

    Raises
    ------
    DamagedFileError
        If their number does not match the outputs, or one is not among the named classes.
    """
    n_classes = max(n_outputs, 2)
    if not info.get("class_params"):
        return list(range(n_classes))
    params = _object(info, "class_params")
    positions, names, count = (params.get(key) for key in ("class_to_label", "class_names", "classes_count"))
    if not isinstance(names, list) or type(count) is not int:
        raise damaged("class_names or classes_count in its class_params is missing or has the wrong type")
    if len(set(map(str, names))) != len(names) or (names and count not in (0, len(names))):
        raise damaged(f"its class_params repeat a class name, or have {len(names)} names and classes_count {count}")
    n_named = len(names) or count or n_classes
    if not isinstance(positions, list) or len(positions) != n_classes:
        raise damaged(f"class_to_label in its class_params does not list {n_classes} classes")
    if not all(type(position) is int and 0 <= position < n_named for position in positions):
        raise damaged(f"class_to_label in its class_params has an entry outside 0 to {n_named - 1}")
    if any(b <= a for a, b in pairwise(positions)):
        raise damaged("class_to_label in its class_params is not increasing")
    return positions


def monotone_constraints(info: Mapping[str, str]) -> Any:
    """Return the monotonic constraints among a model's training parameters, or None if it records no parameters."""
    if not has_params(info):
        return None
    options = _object(info, "params").get("tree_learner_options")
    return options.get("monotone_constraints") if isinstance(options, dict) else None


def check_info(info: Mapping[str, str]) -> None:
    """Raise DamagedFileError unless the metadata that CatBoost and secateur use are valid.

    Parameters
    ----------
    info : mapping of str to str
    """
    if has_params(info):
        params = _object(info, "params")
        for name in _OBJECTS:
            if not isinstance(params.get(name, {}), dict):
                raise damaged(f"{name} in its parameters is not an object")
        _check_loss(params.get("loss_function"))
    if info.get("loss_function"):
        _check_loss(_object(info, "loss_function"))
    threshold = info.get("binclass_probability_threshold")
    if threshold and not _is_fraction(threshold):
        raise damaged(f"its probability threshold is {threshold[:40]!r}, not a number between 0 and 1")


def _object(info: Mapping[str, str], key: str) -> dict[str, Any]:
    try:
        found = json.loads(info[key])
    except (ValueError, RecursionError) as error:
        raise damaged(f"its {key} are not JSON ({str(error).partition(chr(10))[0]})") from error
    if not isinstance(found, dict):
        raise damaged(f"its {key} are not an object")
    return found


def _check_loss(loss: Any) -> None:
    """Raise DamagedFileError unless a loss has a name and an object of parameters."""
    named = isinstance(loss, dict) and isinstance(loss.get("type"), str)
    if not named or not isinstance(loss.get("params", {}), dict):
        raise damaged("its loss_function has no type, or its params are not an object")


def _is_fraction(text: str) -> bool:
    try:
        return 0 < float(text) < 1
    except ValueError:
        return False
