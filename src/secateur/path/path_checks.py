"""Validate a path that was read from a file, so that every point can be used without further checks."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from secateur.forest import Forest
from secateur.forest.masks import Masks, NestedMasks
from secateur.forest.subforest import check_keep

if TYPE_CHECKING:
    from secateur.path import Path

_COLUMNS = ("penalty", "n_nodes", "n_leaves", "n_trees", "n_features", "depth", "cost", "risk")
_MEASURED = ("loss", "loss_se", "changed", "increase_se")
_TEXT_COLUMNS = ("origin",)


def check_path(path: "Path") -> None:
    """Raise ValueError unless table, masks and changed parameters have the right types and fit the forest."""
    for name in ("unpruned_loss", "evaluated_on", "evaluated_rows") if "loss" in path.table else ():
        if getattr(path.info, name) is None:
            raise ValueError(f"the field {name} of facts is missing")
    _check_table(path.table)
    _check_masks(path.forest, path.masks, path.table["n_nodes"])
    forest, n_points = path.forest, len(path)
    shapes = {"tree_weight": (n_points, forest.n_trees), "base": (n_points, forest.n_outputs)}
    for name, shape in {**shapes, "support": (forest.n_nodes,)}.items():
        _check_array(name, getattr(path, name), shape)
    if path.tree_weight is not None and not np.isfinite(path.tree_weight).all():
        raise ValueError("a tree has a weight that is not a finite number")
    for point, value in enumerate(path.values or ()):
        _check_array("values", value, (int(path.table["n_nodes"][point]), forest.value.shape[1]))


def _check_table(table: Mapping[str, NDArray[Any]]) -> None:
    needed = _COLUMNS + (_MEASURED if set(_MEASURED) & set(table) else ())
    missing = [name for name in needed if name not in table]
    if missing:
        raise ValueError(f"the table has no column {missing[0]}")
    for name, column in table.items():
        if column.dtype.kind not in ("U" if name in _TEXT_COLUMNS else "if"):
            raise ValueError(f"the column {name!r:.60} of the table has dtype {column.dtype}")
        if name in ("cost", "risk", "loss") and np.isnan(column).any():
            raise ValueError(f"the column {name} of the table contains NaN")
        if name.startswith("n_") and (column.dtype.kind != "i" or column.min() < 0):
            raise ValueError(f"the column {name!r:.60} of the table does not contain counts")


def _check_masks(forest: Forest, masks: Masks, n_nodes: NDArray[Any]) -> None:
    """Raise ValueError unless every point is a pruning whose number of nodes agrees with the table."""
    checked = isinstance(masks, NestedMasks) and _only_cuts(forest, masks)
    for point in range(masks.n_points):
        keep = masks.keep(point)
        if not checked or point in (0, masks.n_points - 1):
            check_keep(forest, keep)
        if keep.sum() != n_nodes[point]:
            raise ValueError(f"point {point} keeps {int(keep.sum())} nodes, but the table has {n_nodes[point]}")


def _only_cuts(forest: Forest, masks: NestedMasks) -> bool:
    """Return whether siblings are always removed together, no later than their parent, so every point is a pruning.

    The result is False for symmetric trees, whose levels need a separate check.
    """
    split = np.flatnonzero(forest.is_split)
    above, left, right = (masks.removed_at[nodes] for nodes in (split, split + 1, forest.right[split]))
    return bool((left == right).all() and (left <= above).all()) and not forest.symmetric


def _check_array(name: str, array: NDArray[Any] | None, shape: tuple[int, ...]) -> None:
    if array is not None and (array.shape != shape or array.dtype != np.float64):
        raise ValueError(f"{name} is an array of {array.dtype} with shape {array.shape}; {shape} of float64 is needed")
