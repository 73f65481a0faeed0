"""Access the entries of a saved XGBoost model, whose nested tables are the same in JSON and UBJSON."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.errors import DamagedFileError, UnsupportedModelError

LARGEST_CATEGORY = 1 << 24
"""XGBoost treats category codes from this one on as unknown."""
NO_PARENT = 2**31 - 1
# The arrays of a tree and their types in XGBoost: NODE_ARRAYS has one entry per node, CATEGORY_ARRAYS describes the
# categorical splits.
NODE_ARRAYS = {
    "left_children": ">i4",
    "right_children": ">i4",
    "parents": ">i4",
    "split_indices": ">i4",
    "split_conditions": ">f4",
    "split_type": ">u1",
    "default_left": ">u1",
    "sum_hessian": ">f4",
    "base_weights": ">f4",
    "loss_changes": ">f4",
}
CATEGORY_ARRAYS = {
    "categories": ">i4",
    "categories_nodes": ">i4",
    "categories_segments": ">i8",
    "categories_sizes": ">i8",
}
# XGBoost before 1.3 had no categorical splits.
MAY_BE_ABSENT = {"split_type", *CATEGORY_ARRAYS}

Saved = dict[str, Any]


def damaged(found: str) -> DamagedFileError:
    """Return the error for a saved model that XGBoost would not write."""
    return DamagedFileError(
        f"The XGBoost model is damaged: {found}. secateur needs the model as XGBoost wrote it. Save it again, or "
        "train it again."
    )


def entry(table: Any, *keys: str) -> Any:
    """Return an entry of nested tables; raise DamagedFileError if it is missing."""
    for key in keys:
        if not isinstance(table, dict) or key not in table:
            raise damaged(f"{key!r} of {' / '.join(keys)} is missing")
        table = table[key]
    return table


def count(table: Any, *keys: str) -> int:
    """Return an integer that XGBoost saves as text."""
    text = entry(table, *keys)
    if not isinstance(text, str) or not text.isascii() or not text.isdigit():
        raise damaged(f"{' / '.join(keys)} is {text!r}, not an integer")
    if len(text) > 18:
        raise damaged(f"{' / '.join(keys)} has {len(text)} digits, more than 18")
    return int(text)


def booster_part(saved: Saved) -> dict[str, Any]:
    """Return the table of the gradient booster that holds the trees; DART nests it one level deeper."""
    booster = entry(saved, "learner", "gradient_booster")
    name = entry(booster, "name")
    if name == "gblinear":
        raise UnsupportedModelError(
            "This XGBoost model is linear (booster gblinear) and has no trees to prune. Train it with booster gbtree "
            "or dart."
        )
    if name == "dart" and "model" not in booster:
        booster = entry(booster, "gbtree")
    entry(booster, "model")
    return dict(booster)


def dart_weight_table(saved: Saved) -> dict[str, Any] | None:
    """Return the table with DART's `weight_drop`, whose location depends on the version; None unless DART."""
    booster = entry(saved, "learner", "gradient_booster")
    for table in (booster, booster.get("gbtree"), booster.get("model"), booster_part(saved)["model"]):
        if isinstance(table, dict) and "weight_drop" in table:
            return table
    if booster["name"] == "dart":
        raise damaged("it is a DART model, but has no tree weights (weight_drop)")
    return None


def n_outputs(saved: Saved) -> int:
    """Return the number of raw outputs per row."""
    learner = entry(saved, "learner", "learner_model_param")
    targets = count(learner, "num_target") if "num_target" in learner else 1
    outputs = max(count(learner, "num_class"), targets, 1)
    if outputs > 1 << 20:
        raise damaged(f"it has {outputs} outputs, more than {1 << 20}")
    return outputs


def integers(found: Any, name: str, length: int | None, below: int) -> NDArray[np.int64]:
    """Return an array of integers in [0, below), checked for its length."""
    values = numbers(found, name, "iub")
    if length is not None and len(values) != length:
        raise damaged(f"{name} has {len(values)} entries, but {length} are needed")
    if len(values) and (values.min() < 0 or values.max() >= below):
        raise damaged(f"{name} has entries outside 0 to {below - 1}")
    return values.astype(np.int64)


def numbers(found: Any, name: str, kinds: str) -> NDArray[Any]:
    """Return a list of numbers as an array; `kinds` are the dtype kinds allowed."""
    try:
        values = np.asarray(found)
    except (ValueError, TypeError, OverflowError):
        raise damaged(f"{name} is not a list of numbers") from None
    if values.ndim != 1 or (len(values) and values.dtype.kind not in kinds):
        raise damaged(f"{name} is not a list of {'numbers' if 'f' in kinds else 'integers'}")
    return values if len(values) else np.empty(0, np.int64)
