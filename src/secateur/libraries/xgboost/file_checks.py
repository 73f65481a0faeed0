"""Validate a saved XGBoost model before XGBoost loads it, and cast its arrays to the types XGBoost reads."""

from typing import Any

import numpy as np

from secateur.libraries.xgboost.columns import known_categories
from secateur.libraries.xgboost.objectives import objective_of
from secateur.libraries.xgboost.saved_model import (
    CATEGORY_ARRAYS,
    NODE_ARRAYS,
    Saved,
    booster_part,
    count,
    damaged,
    entry,
    integers,
    n_outputs,
)
from secateur.libraries.xgboost.trees import read_trees

_TYPES = {"int", "float", "i", "q", "c"}
"""XGBoost's names of feature types."""


def check_saved(saved: Any) -> Saved:
    """Return a saved model that XGBoost can load safely.

    Raises
    ------
    DamagedFileError
        If the model is damaged.
    UnsupportedModelError
        If the model is of a kind that cannot be pruned.
    """
    learner = entry(saved, "learner")
    integers(entry(saved, "version"), "version", 3, 1 << 20)
    trees = read_trees(saved)
    features = count(saved, "learner", "learner_model_param", "num_feature")
    for name in ("feature_names", "feature_types"):
        texts = learner.get(name, [])
        if not isinstance(texts, list) or any(not isinstance(text, str) for text in texts):
            raise damaged(f"{name} is not a list of strings")
        if not all(map(_is_text, texts)):
            raise damaged(f"{name} contains bytes that are not UTF-8")
        if name == "feature_types" and not set(texts) <= _TYPES:
            unknown = min(set(texts) - _TYPES)
            raise damaged(f"a feature has the type {unknown!r}, not one of {', '.join(sorted(_TYPES))}")
        if name == "feature_names" and len(set(texts)) != len(texts):
            raise damaged("two features have the same name")
        if name == "feature_names" and any(mark in text for text in texts for mark in "[]<"):
            raise damaged("a feature name contains [, ] or <, which XGBoost does not allow")
        if len(texts) not in (0, features):
            raise damaged(f"it has {len(texts)} {name}, but {features} features")
    attributes = learner.get("attributes", {})
    if not isinstance(attributes, dict) or any(not isinstance(text, str) for text in attributes.values()):
        raise damaged("its attributes are not strings")
    objective_of(saved)
    _check_base(entry(learner, "learner_model_param", "base_score"), n_outputs(saved))
    model = booster_part(saved)["model"]
    _check_cats(model, features)
    for index, (tree, first, stop) in enumerate(zip(model["trees"], trees.start[:-1], trees.start[1:], strict=True)):
        typed = {name: trees.node[name][first:stop] for name in NODE_ARRAYS if name in tree}
        model["trees"][index] = tree | typed | _typed_lists(tree)
    return dict(saved)


def _is_text(text: str) -> bool:
    """Return whether a name is valid UTF-8; invalid bytes of the file are decoded as lone surrogates."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _typed_lists(tree: Saved) -> Saved:
    return {
        name: integers(tree[name], name, None, 1 << 31).astype(dtype)
        for name, dtype in CATEGORY_ARRAYS.items()
        if name in tree
    }


def _check_base(text: Any, outputs: int) -> None:
    """Raise DamagedFileError unless the base score is one finite number, or one per output."""
    try:
        base = np.array([float(number) for number in text.strip("[]").split(",")])
    except (AttributeError, ValueError):
        raise damaged(f"base_score is {text!r}, not a number") from None
    if len(base) not in (1, outputs) or not np.isfinite(base).all():
        raise damaged(f"base_score is {text!r}; 1 or {outputs} finite numbers are needed")


def _check_cats(model: Saved, features: int) -> None:
    """Raise DamagedFileError unless the index arrays of the category names are consistent."""
    if "cats" not in model:
        return
    cats = model["cats"]
    encodings = entry(cats, "enc")
    if not isinstance(encodings, list):
        raise damaged("its category names are not a list")
    lengths = [0 if names is None else len(names) for names in known_categories(model, features)] if encodings else []
    total = sum(lengths)
    segments = integers(entry(cats, "feature_segments"), "feature_segments", None, total + 1)
    if encodings and not np.array_equal(segments, np.cumsum([0, *lengths])):
        raise damaged("feature_segments do not match the numbers of category names")
    order = integers(entry(cats, "sorted_idx"), "sorted_idx", total, max(total, 1))
    for first, length in zip(np.cumsum([0, *lengths]), lengths, strict=False):
        if not np.array_equal(np.sort(order[first : first + length]), np.arange(length)):
            raise damaged("sorted_idx is not a permutation of the category names of each feature")
