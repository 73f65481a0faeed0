"""Format splits, features and classes as text for plots and reports."""

from secateur._util.text import fit_to_show
from secateur.forest import Forest
from secateur.libraries.adapter import Adapter

_SHOWN_CATEGORIES = 6


def feature_name(forest: Forest, feature: int) -> str:
    """Return the printable name of a feature, or its number as in x[3] if features have no names."""
    return f"x[{feature}]" if forest.feature_names is None else fit_to_show(forest.feature_names[feature])


def categories_of(forest: Forest, node: int, *, left: bool = True) -> tuple[int, ...] | None:
    """Return the listed category codes a split routes left (or right), None for a split on a threshold."""
    lists = forest.categories
    if not len(lists.row) or lists.row[node] == -1:
        return None
    listed = slice(*lists.start[lists.row[node] : lists.row[node] + 2].tolist())
    return tuple(lists.code[listed][lists.left[listed] == left].tolist())


def split_text(forest: Forest, node: int) -> str:
    """Return the condition of a split as text; rows that satisfy it are routed left."""
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
    """Return the class names of a classifier with one target; an empty list for all other models."""
    if len(adapter.forest.n_classes) != 1:
        return []
    return [fit_to_show(str(name)) for name in adapter.labels().tolist()]
