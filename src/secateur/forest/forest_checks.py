"""Validate the arrays of a forest, so that kernels can traverse it without further checks."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from secateur import kernels
from secateur.errors import InvalidInputError
from secateur.forest.links import link_named

if TYPE_CHECKING:
    from secateur.forest import Forest

TYPES = {
    "tree_start": "i8",
    "right": "i4",
    "feature": "i4",
    "threshold": "f8",
    "default_left": "?",
    "value": "f8",
    "weight": "f8",
    "tree_weight": "f8",
    "tree_output": "i4",
    "base": "f8",
    "categories.row": "i4",
    "categories.start": "i8",
    "categories.code": "i4",
    "categories.left": "?",
    "categories.other_left": "?",
}
"""Dtype of each array; all are one-dimensional except `value`, which is two-dimensional."""
CHOICES = {
    "aggregation": ("sum", "mean", "median"),
    "comparison": ("<=", "<"),
    "input_dtype": ("float32", "float64"),
    "sum_dtype": ("float32", "float64"),
    "addition": ("in_order", "scaled", "fours", "around_base"),
}
_NODE_ARRAYS = ("feature", "threshold", "default_left", "value", "weight")
_MAX_ID = 2**31 - 1
"""Largest number of nodes or features: ids are signed 32-bit integers."""
_DAMAGED = "The model is damaged or was read incorrectly; save or train it again."


def check_forest(forest: "Forest") -> None:
    """Raise InvalidInputError unless the arrays form a forest that kernels can traverse without further checks.

    A valid forest is checked only once, so its arrays must not be modified afterwards.
    """
    if "checked" in vars(forest):
        return
    _check_types(forest)
    _check_facts(forest)
    _check_trees(forest)
    _check_outputs(forest)
    _check_categories(forest)
    _check_monotone(forest)
    vars(forest)["checked"] = True


def array_of(forest: "Forest", name: str) -> Any:
    """Return the array of a forest with the given name in `TYPES`."""
    holder: Any = forest.categories if name.startswith("categories.") else forest
    return getattr(holder, name.removeprefix("categories."))


def _check_types(forest: "Forest") -> None:
    """Raise InvalidInputError unless every array is a NumPy array of the right dtype and dimension."""
    for name, letters in TYPES.items():
        array, dtype, axes = array_of(forest, name), np.dtype(letters), 2 if name == "value" else 1
        if not isinstance(array, np.ndarray):
            raise InvalidInputError(
                f"{name} is a {type(array).__name__}, but must be a NumPy array of {dtype}. Convert it with np.asarray."
            )
        if array.ndim != axes or array.dtype != dtype:
            raise InvalidInputError(
                f"{name} has {array.ndim} axes of {array.dtype}, but needs {axes} of {dtype}. Convert it with reshape "
                "or astype."
            )


def _check_facts(forest: "Forest") -> None:
    """Raise InvalidInputError unless the scalar attributes have the right types and fit the arrays."""
    for name, choices in CHOICES.items():
        if getattr(forest, name) not in choices:
            raise InvalidInputError(
                f"{name} is {getattr(forest, name)!r}, but must be one of {', '.join(choices)}. Use one of these."
            )
    counts = {
        "n_features": (forest.n_features,),
        "n_classes": forest.n_classes,
        "zero_is_missing": forest.zero_is_missing,
    }
    for name, numbers in counts.items():
        if not (isinstance(numbers, tuple) and all(_is_count(number) for number in numbers)):
            raise InvalidInputError(
                f"{name} is {getattr(forest, name)!r}, but must consist of integers from 0 to {_MAX_ID}. Correct it."
            )
    if not (isinstance(forest.symmetric, bool | np.bool_) and _is_finite(forest.unit) and _is_finite(forest.divisor)):
        raise InvalidInputError(
            f"symmetric is {forest.symmetric!r}, unit {forest.unit!r} and divisor {forest.divisor!r}, but symmetric "
            "must be a bool, and unit and divisor finite numbers. Correct them."
        )
    names = forest.feature_names
    if names is not None and not (len(names) == forest.n_features and all(isinstance(name, str) for name in names)):
        raise InvalidInputError(
            f"feature_names has {len(names)} entries, but must be {forest.n_features} strings. Pass one name per "
            "feature, or None."
        )
    if max(forest.zero_is_missing, default=-1) >= forest.n_features:
        raise InvalidInputError(
            f"zero_is_missing contains {max(forest.zero_is_missing)}, but the forest has {forest.n_features} features. "
            "Use indices of features."
        )
    one_output_per_target = set(forest.n_classes) == {2} and len(forest.n_classes) == forest.n_outputs
    if forest.n_classes and sum(forest.n_classes) != forest.n_outputs and not one_output_per_target:
        raise InvalidInputError(
            f"n_classes is {forest.n_classes}, but the forest has {forest.n_outputs} outputs. Pass one output per "
            "class, or one per binary target."
        )
    if not isinstance(forest.link, str):
        raise InvalidInputError(f"link is {forest.link!r}, but must be a string. Pass the name of a link.")
    link_named(forest.link)


def _is_count(number: Any) -> bool:
    return isinstance(number, int | np.integer) and not isinstance(number, bool) and 0 <= int(number) <= _MAX_ID


def _is_finite(number: Any) -> bool:
    return isinstance(number, int | float | np.number) and math.isfinite(number)


def _check_trees(forest: "Forest") -> None:
    """Raise InvalidInputError unless every tree is a slice of nodes in preorder whose splits use existing features."""
    n, trees, start = forest.n_nodes, forest.n_trees, forest.tree_start
    if n > _MAX_ID:
        raise InvalidInputError(f"The forest has {n} nodes, but at most {_MAX_ID} are supported. Use fewer trees.")
    if not len(start) or start[0] != 0 or start[-1] != n or (start[1:] <= start[:-1]).any():
        raise InvalidInputError(
            "tree_start must increase from 0 to n_nodes, with at least one node per tree. Rebuild it."
        )
    for name in _NODE_ARRAYS:
        if len(getattr(forest, name)) != n:
            raise InvalidInputError(
                f"{name} has {len(getattr(forest, name))} entries, but the forest has {n} nodes. Pass one entry per "
                "node."
            )
    if len(forest.tree_weight) != trees or len(forest.tree_output) != trees:
        raise InvalidInputError(
            f"tree_weight has {len(forest.tree_weight)} entries and tree_output {len(forest.tree_output)}, but the "
            f"forest has {trees} trees. Pass one entry per tree."
        )
    if not np.isfinite(forest.tree_weight).all():
        raise InvalidInputError(f"tree_weight contains NaN or infinite values. {_DAMAGED}")
    broken = kernels.subtree_end(start, forest.right, np.empty(n, np.int64))
    if broken != -1:
        raise InvalidInputError(
            f"The tree around node {broken} is not in preorder: a right child must follow the whole left subtree. "
            "Reorder the nodes so that each subtree is one slice, left before right."
        )
    used = forest.feature[forest.is_split]
    if forest.feature.min(initial=0) < -1 or forest.feature.max(initial=-1) >= max(forest.n_features, 1):
        raise InvalidInputError(
            f"feature has values from {forest.feature.min()} to {forest.feature.max()}, but must be 0 to "
            f"{forest.n_features - 1} at splits and -1 at leaves. {_DAMAGED}"
        )
    if len(used) and (used.min() < 0 or used.max() >= forest.n_features):
        raise InvalidInputError(
            f"A split uses feature {used.min() if used.min() < 0 else used.max()}, but the forest has features 0 to "
            f"{forest.n_features - 1}. {_DAMAGED}"
        )
    if (np.isnan(forest.threshold) & forest.is_split).any():
        raise InvalidInputError(f"threshold is NaN at a split, so rows cannot be compared with it. {_DAMAGED}")


def _check_outputs(forest: "Forest") -> None:
    """Raise InvalidInputError unless the width of `value` and the outputs of the trees are consistent."""
    output = forest.tree_output
    one_output_per_tree = bool((output >= 0).all())
    if not one_output_per_tree and (output != -1).any():
        raise InvalidInputError(
            "tree_output mixes trees that contribute to one output (at least 0) with trees that contribute to all "
            "(-1). Use one kind for all trees."
        )
    if output.max(initial=-1) >= forest.n_outputs:
        raise InvalidInputError(
            f"A tree contributes to output {output.max()}, but the forest has {forest.n_outputs} outputs. Correct "
            "tree_output."
        )
    width = 1 if one_output_per_tree else forest.n_outputs
    if forest.n_trees and forest.value.shape[1:] != (width,):
        raise InvalidInputError(f"value has shape {forest.value.shape}, but must be (n_nodes, {width}). Reshape it.")


def _check_categories(forest: "Forest") -> None:
    """Raise InvalidInputError unless every categorical split refers to an existing, sorted list of categories."""
    lists = forest.categories
    n_lists = len(lists.start) - 1
    consistent = (
        n_lists >= 0
        and lists.start[0] == 0
        and lists.start[-1] == len(lists.code)
        and (lists.start[1:] >= lists.start[:-1]).all()
    )
    if not consistent or len(lists.left) != len(lists.code) or len(lists.other_left) != n_lists:
        raise InvalidInputError(
            "The arrays start, code, left and other_left of categories have inconsistent lengths or offsets. Rebuild "
            "them."
        )
    if len(lists.row) not in (0, forest.n_nodes) or (
        len(lists.row) and not -1 <= lists.row.min() <= lists.row.max() < n_lists
    ):
        raise InvalidInputError("categories.row refers to a list of categories that does not exist. Rebuild it.")
    unsorted = np.flatnonzero(lists.code[1:] <= lists.code[:-1]) + 1
    if not np.isin(unsorted, lists.start).all():
        raise InvalidInputError("A list of categories is not sorted. Sort the codes within each list.")


def _check_monotone(forest: "Forest") -> None:
    """Raise InvalidInputError unless there are no monotonic constraints, or one sign per feature."""
    signs = forest.monotone
    if signs is None:
        return
    if not isinstance(signs, np.ndarray) or signs.dtype != np.int8 or signs.shape != (forest.n_features,):
        raise InvalidInputError(
            f"monotone is {signs!r:.60}, but must be an int8 array with one sign for each of {forest.n_features} "
            "features, or None. Convert it with np.array(signs, np.int8)."
        )
    if len(signs) and not -1 <= signs.min() <= signs.max() <= 1:
        raise InvalidInputError(
            f"monotone contains values from {signs.min()} to {signs.max()}, but each must be -1, 0 or 1. Correct them."
        )
