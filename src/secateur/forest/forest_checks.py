"""Validate the arrays of a forest, so that kernels can traverse it without further checks."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from secateur import kernels
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
_MOST = 2**31 - 1
"""Largest number of nodes or features: ids are signed 32-bit integers."""


def check_forest(forest: "Forest") -> None:
    """Raise ValueError unless the arrays form a forest that kernels can traverse without further checks.

    A valid forest is checked only once, so its arrays must not be modified afterwards.
    """
    if "checked" in vars(forest):
        return
    _check_types(forest)
    _check_facts(forest)
    _check_trees(forest)
    _check_outputs(forest)
    _check_categories(forest)
    vars(forest)["checked"] = True


def array_of(forest: "Forest", name: str) -> Any:
    """Return the array of a forest with the given name in `TYPES`."""
    holder: Any = forest.categories if name.startswith("categories.") else forest
    return getattr(holder, name.removeprefix("categories."))


def _check_types(forest: "Forest") -> None:
    """Raise ValueError unless every array is a NumPy array of the right dtype and dimension."""
    for name, letters in TYPES.items():
        array, dtype, axes = array_of(forest, name), np.dtype(letters), 2 if name == "value" else 1
        if not isinstance(array, np.ndarray):
            raise ValueError(f"{name} is a {type(array).__name__}; it must be an array of {dtype}.")
        if array.ndim != axes or array.dtype != dtype:
            raise ValueError(
                f"{name} has {array.ndim} axes of {array.dtype}; it needs {axes} of {dtype}. Convert it with astype."
            )


def _check_facts(forest: "Forest") -> None:
    """Raise ValueError unless the scalar attributes have the right types and fit the arrays."""
    for name, choices in CHOICES.items():
        if getattr(forest, name) not in choices:
            raise ValueError(f"{name} is {getattr(forest, name)!r}; it must be one of {', '.join(choices)}.")
    whole = {"n_features": (forest.n_features,), "n_classes": forest.n_classes}
    for name, numbers in {**whole, "zero_is_missing": forest.zero_is_missing}.items():
        if not (isinstance(numbers, tuple) and all(_is_count(number) for number in numbers)):
            raise ValueError(f"{name} is {getattr(forest, name)!r}; it must be whole numbers from 0 to {_MOST}.")
    if not (isinstance(forest.symmetric, bool | np.bool_) and _is_finite(forest.unit) and _is_finite(forest.divisor)):
        raise ValueError("symmetric must be true or false, unit and divisor finite numbers.")
    names = forest.feature_names
    if names is not None and not (len(names) == forest.n_features and all(isinstance(name, str) for name in names)):
        raise ValueError(f"feature_names must be {forest.n_features} strings.")
    if max(forest.zero_is_missing, default=-1) >= forest.n_features:
        raise ValueError(f"zero_is_missing names a feature beyond the {forest.n_features} there are.")
    one_sum_each = set(forest.n_classes) == {2} and len(forest.n_classes) == forest.n_outputs
    if forest.n_classes and sum(forest.n_classes) != forest.n_outputs and not one_sum_each:
        raise ValueError(f"The classes are {forest.n_classes} but there are {forest.n_outputs} outputs.")
    if not isinstance(forest.link, str):
        raise ValueError(f"link is {forest.link!r}; it must be the name of a link.")
    link_named(forest.link)


def _is_count(number: Any) -> bool:
    return isinstance(number, int | np.integer) and not isinstance(number, bool) and 0 <= int(number) <= _MOST


def _is_finite(number: Any) -> bool:
    return isinstance(number, int | float | np.number) and math.isfinite(number)


def _check_trees(forest: "Forest") -> None:
    """Raise ValueError unless every tree is a slice of nodes in preorder whose splits use existing features."""
    n, trees, start = forest.n_nodes, forest.n_trees, forest.tree_start
    if n > _MOST:
        raise ValueError(f"The forest has {n} nodes; at most {_MOST} fit. Drop trees before reading it.")
    if not len(start) or start[0] != 0 or start[-1] != n or (start[1:] <= start[:-1]).any():
        raise ValueError("tree_start must rise from 0 to n_nodes with at least one node per tree; rebuild it.")
    for name in _NODE_ARRAYS:
        if len(getattr(forest, name)) != n:
            raise ValueError(f"{name} has {len(getattr(forest, name))} entries; the forest has {n} nodes.")
    if len(forest.tree_weight) != trees or len(forest.tree_output) != trees:
        raise ValueError(f"tree_weight and tree_output must have one entry for each of the {trees} trees.")
    if not np.isfinite(forest.tree_weight).all():
        raise ValueError("A tree has a weight that is not a finite number. The model is damaged or was misread.")
    broken = kernels.subtree_end(start, forest.right, np.empty(n, np.int64))
    if broken != -1:
        raise ValueError(
            f"The tree around node {broken} is not in preorder: a right child must follow the whole left subtree. "
            "Reorder the nodes so that each subtree is one slice, left before right."
        )
    used = forest.feature[forest.is_split]
    if forest.feature.min(initial=0) < -1 or forest.feature.max(initial=-1) >= max(forest.n_features, 1):
        raise ValueError(
            f"A node has feature {forest.feature.min()} or {forest.feature.max()}; the forest has features 0 to "
            f"{forest.n_features - 1}, and -1 at leaves. The model is damaged or was misread."
        )
    if len(used) and (used.min() < 0 or used.max() >= forest.n_features):
        raise ValueError(
            f"A split looks at feature {used.min() if used.min() < 0 else used.max()}; "
            f"the forest has features 0 to {forest.n_features - 1}. The model is damaged or was misread."
        )
    if (np.isnan(forest.threshold) & forest.is_split).any():
        raise ValueError("A split has the threshold NaN, which no row can be compared with. The model is damaged.")


def _check_outputs(forest: "Forest") -> None:
    """Raise ValueError unless the width of `value` and the outputs of the trees are consistent."""
    output = forest.tree_output
    one_each = bool((output >= 0).all())
    if not one_each and (output != -1).any():
        raise ValueError("tree_output mixes trees that feed one output with trees that feed all; use one kind.")
    if output.max(initial=-1) >= forest.n_outputs:
        raise ValueError(f"A tree feeds output {output.max()}; the forest has {forest.n_outputs} outputs.")
    width = 1 if one_each else forest.n_outputs
    if forest.n_trees and forest.value.shape[1:] != (width,):
        raise ValueError(f"value has shape {forest.value.shape}; it must be (n_nodes, {width}).")


def _check_categories(forest: "Forest") -> None:
    """Raise ValueError unless every categorical split refers to an existing, sorted list of categories."""
    lists = forest.categories
    n_lists = len(lists.start) - 1
    rises = (
        n_lists >= 0
        and lists.start[0] == 0
        and lists.start[-1] == len(lists.code)
        and (lists.start[1:] >= lists.start[:-1]).all()
    )
    if not rises or len(lists.left) != len(lists.code) or len(lists.other_left) != n_lists:
        raise ValueError("The lists of categories do not fit together; rebuild them.")
    if len(lists.row) not in (0, forest.n_nodes) or (
        len(lists.row) and not -1 <= lists.row.min() <= lists.row.max() < n_lists
    ):
        raise ValueError("A split uses a list of categories that is not there; rebuild categories.row.")
    falls = np.flatnonzero(lists.code[1:] <= lists.code[:-1]) + 1
    if not np.isin(falls, lists.start).all():
        raise ValueError("A list of categories is not sorted. Sort the codes within each list.")
