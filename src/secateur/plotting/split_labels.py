"""Splits, features and classes in the reader's words: what pictures and pages call them."""

import numpy as np

from secateur._util.text import fit_to_show
from secateur.forest import Forest
from secateur.libraries.adapter import Adapter

_SHOWN_CATEGORIES = 6


def feature_name(forest: Forest, feature: int) -> str:
    """Return the name a feature had in training, fit to be shown, or its number: x[3]."""
    return f"x[{feature}]" if forest.feature_names is None else fit_to_show(forest.feature_names[feature])


def categories_of(forest: Forest, node: int, *, left: bool = True) -> tuple[int, ...] | None:
    """Return the listed codes a split sends left (or right), None where it compares with a threshold."""
    lists = forest.categories
    if not len(lists.row) or lists.row[node] == -1:
        return None
    listed = slice(*lists.start[lists.row[node] : lists.row[node] + 2].tolist())
    return tuple(lists.code[listed][lists.left[listed] == left].tolist())


def split_text(forest: Forest, node: int) -> str:
    """Return what a split asks; rows that say yes go left."""
    name = feature_name(forest, int(forest.feature[node]))
    codes = categories_of(forest, node)
    if codes is None:
        return f"{name} {'≤' if forest.comparison == '<=' else '<'} {forest.threshold[node]:.4g}"
    if forest.categories.other_left[forest.categories.row[node]]:
        return f"{name} not in {_set(categories_of(forest, node, left=False) or ())}"
    return f"{name} in {_set(codes)}"


def _set(codes: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, codes[:_SHOWN_CATEGORIES]))
    return f"{{{shown}{', …' if len(codes) > _SHOWN_CATEGORIES else ''}}}"


def class_names(adapter: Adapter) -> list[str]:
    """Return the classes of a model with one target, as it names them; none for numbers and several targets."""
    if len(adapter.forest.n_classes) != 1:
        return []
    codes = np.arange(adapter.forest.n_classes[0])[:, None]
    return [fit_to_show(str(name)) for name in adapter.decode(codes).ravel().tolist()]
