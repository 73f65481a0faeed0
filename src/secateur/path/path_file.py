"""Save and load paths as one `.npz` file with a JSON header and plain arrays, without pickle. See docs/format.md."""

from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from secateur.errors import DamagedFileError, InvalidInputError, UnsupportedFileError
from secateur.files.archive import forest_from_arrays, forest_to_arrays, read_archive, same_forest, write_archive
from secateur.files.atomic import replacing
from secateur.forest import Forest
from secateur.forest.masks import Masks, NestedMasks, PackedMasks
from secateur.forest.subforest import check_keep
from secateur.libraries import adapt
from secateur.libraries.adapter import ForestAdapter
from secateur.path.evaluation import MEASURED
from secateur.path.info import PathInfo
from secateur.path.local_evaluation import SCORED

if TYPE_CHECKING:
    from secateur.path import Path

FORMAT, VERSION = "secateur path", 1
_REMEDY = "Make one with `secateur path` or Path.save."
_COLUMNS = ("penalty", "n_nodes", "n_leaves", "n_trees", "n_features", "depth", "cost", "risk")
_TEXT_COLUMNS = ("origin",)


def save_path(path: "Path", file: str | PathLike[str], *, force: bool = False) -> FilePath:
    """Write `path` to `file`, which must end in .npz, and return the file's path."""
    target = FilePath(file)
    if target.suffix != ".npz":
        raise UnsupportedFileError(f"A path is saved as .npz, but the name is {target.name}. Use {target.stem}.npz.")
    forest_facts, arrays = forest_to_arrays(path.forest)
    header = {
        "format": FORMAT,
        "version": VERSION,
        "solver": path.solver,
        "facts": path.info.to_json(),
        "runs": path.info.runs,
        "forest": forest_facts,
        "columns": list(path.table),
        "n_points": len(path),
    }
    arrays |= {f"table.{name}": column for name, column in path.table.items()}
    arrays |= _mask_arrays(path.masks)
    if path.values is not None:
        arrays["values"] = np.concatenate(path.values)
    for name in ("tree_weight", "base", "support"):
        if getattr(path, name) is not None:
            arrays[name] = getattr(path, name)
    with replacing(target, force=force) as stream:
        write_archive(stream, header, arrays)
    return target


def load_path(file: str | PathLike[str], model: Any = None) -> "Path":
    """Read a saved path and attach it to `model`, if one is given.

    Raises
    ------
    ValueError
        If the file is damaged, is of a newer version, or belongs to another model than the one given.
    """
    header, arrays = read_archive(FilePath(file), FORMAT, VERSION, _REMEDY)
    try:
        path = _assemble(header, arrays)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise DamagedFileError(f"{file} is damaged: {error}. Compute the path again.") from error
    if model is None:
        return path
    adapter = adapt(model)
    if not same_forest(adapter.forest, path.forest):
        raise InvalidInputError(
            f"{file} was made from another model than this {type(adapter.model).__name__}; its trees differ. "
            "Pass the model the path was made from."
        )
    return replace(path, source=adapter)


def _assemble(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> "Path":
    from secateur.path import Path

    forest = forest_from_arrays(header["forest"], arrays)
    n_points = header["n_points"]
    if not isinstance(n_points, int) or isinstance(n_points, bool) or n_points < 1:
        raise ValueError(f"the number of points is {n_points!r:.60}")
    table = {name: arrays[f"table.{name}"] for name in header["columns"]}
    if any(column.shape != (n_points,) for column in table.values()):
        raise ValueError("a column of the table has the wrong length")
    masks = _read_masks(arrays, forest, n_points)
    values = None
    if "values" in arrays:
        kept = np.cumsum([int(masks.keep(point).sum()) for point in range(n_points)])
        if len(arrays["values"]) != kept[-1]:
            raise ValueError(f"there are {len(arrays['values'])} values for {kept[-1]} nodes")
        values = np.split(arrays["values"], kept[:-1])
    path = Path(
        ForestAdapter(forest),
        masks,
        table,
        str(header["solver"]),
        PathInfo.from_json(header["facts"], _runs(header, table)),
        values,
        arrays.get("tree_weight"),
        arrays.get("base"),
        arrays.get("support"),
    )
    _check_path(path)
    return path


def _runs(header: Mapping[str, Any], table: Mapping[str, NDArray[Any]]) -> tuple[str, ...]:
    """Return the columns that tell runs apart; files of earlier versions have them without saying so."""
    runs = header.get("runs", [name for name in ("ridge", "kept", "origin") if name in table])
    if not isinstance(runs, list) or not all(isinstance(name, str) and name in table for name in runs):
        raise ValueError(f"the columns of runs are {runs!r:.60}, which the table does not have")
    return tuple(runs)


def _read_masks(arrays: Mapping[str, NDArray[Any]], forest: Forest, n_points: int) -> Masks:
    """Return the masks after validating their dtype, shape and range."""
    if "masks.removed_at" in arrays:
        removed_at = arrays["masks.removed_at"]
        fits = removed_at.shape == (forest.n_nodes,) and removed_at.dtype == np.int32
        if not fits or removed_at.min(initial=0) < 0 or removed_at.max(initial=0) > n_points:
            raise ValueError("the points at which nodes are gone do not fit the forest and the number of points")
        return NestedMasks(removed_at, n_points)
    bits = arrays["masks.bits"]
    if bits.shape != (n_points, -(-forest.n_nodes // 8)) or bits.dtype != np.uint8:
        raise ValueError(f"the masks are {bits.dtype} of shape {bits.shape}, which does not fit forest and points")
    return PackedMasks(bits, forest.n_nodes)


def _mask_arrays(masks: Masks) -> dict[str, NDArray[Any]]:
    if isinstance(masks, NestedMasks):
        return {"masks.removed_at": masks.removed_at}
    if isinstance(masks, PackedMasks):
        return {"masks.bits": masks.bits}
    raise TypeError(f"Masks of type {type(masks).__name__} have no written form.")


def _check_path(path: "Path") -> None:
    """Raise ValueError unless table, masks and changed parameters have the right types and fit the forest."""
    needed = ("unpruned_loss", "evaluated_on", "evaluated_rows") if "loss" in path.table else ()
    for name in (*needed, *(("scoring", "unpruned_score") if "score" in path.table else ())):
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
    needed = _COLUMNS + sum((group for group in (MEASURED, SCORED) if set(group) & set(table)), ())
    missing = [name for name in needed if name not in table]
    if missing:
        raise ValueError(f"the table has no column {missing[0]}")
    for name, column in table.items():
        if column.dtype.kind not in ("U" if name in _TEXT_COLUMNS else "if"):
            raise ValueError(f"the column {name!r:.60} of the table has dtype {column.dtype}")
        if name in ("cost", "risk", "loss", "score") and np.isnan(column).any():
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
