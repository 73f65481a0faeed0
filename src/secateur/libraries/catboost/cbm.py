"""Read and write .cbm files, the format in which CatBoost saves and pickles models without rounding.

A file is "CBM1", the size of a flatbuffer, the flatbuffer, and tables of categorical statistics, which are copied
unchanged. All split conditions of the model are listed once, and a split is an index into that list.
The list has the borders of numeric features, then those of features computed from texts and embeddings, then single
categories (one-hot), then the borders of categorical statistics (CTR).
"""

import struct
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.libraries.catboost.flatbuffer import FlatTable, damaged, root, with_vectors
from secateur.libraries.catboost.split_features import SplitConditions, read_conditions

MAGIC = b"CBM1"
CTR_PART = "static_provider_v1"
"""CatBoost's name of the categorical statistics in the list of parts that follow the trees."""
NO_LEAF = 2**32 - 1
MAX_DEPTH = 16
# Marks a size of 8 bytes, which follows.
_LONG = 2**32 - 1

# Field numbers in the table of trees, counted from 0.
_DIMENSION, _SPLITS, _SIZES, _STARTS = 0, 1, 2, 3
_LEAF_VALUES, _LEAF_WEIGHTS, _STEPS, _LEAF_IDS = 8, 9, 10, 11
_SCALE, _BIAS, _BIASES, _REPACKED = 14, 15, 16, 17


@dataclass(frozen=True, eq=False)
class NativeTrees:
    """Hold the trees of a model as CatBoost stores them.

    Attributes
    ----------
    size : (n_trees,)
        Depth of each symmetric tree; number of nodes of each other tree.
    split : (n_splits,)
        The split condition of each level, or node: an index into the list of split conditions.
    leaf_value : (n_leaves, dimension)
    leaf_weight : (n_leaves,), or (0,) if the model does not record it
    step : (n_nodes, 2), or (0, 2) for symmetric trees
        Offsets from a node to its left and right child. An offset of 0 makes that side a leaf, whose value is stored
        at the node. A node with two offsets of 0 is only a leaf.
    leaf_id : (n_nodes,)
        Index of a node's first leaf value in the flat list of values, `NO_LEAF` if it has none.
    """

    size: NDArray[np.int32]
    split: NDArray[np.int32]
    leaf_value: NDArray[np.float64]
    leaf_weight: NDArray[np.float64]
    step: NDArray[np.uint16]
    leaf_id: NDArray[np.uint32]

    @property
    def symmetric(self) -> bool:
        """Whether all splits of a level have the same condition."""
        return not len(self.step)

    @property
    def has_splits(self) -> bool:
        """Whether some tree has a split."""
        return bool(len(self.split)) if self.symmetric else bool(self.step.any())


@dataclass(frozen=True, eq=False)
class NativeModel:
    """Hold the contents of a .cbm file; `core` and `tail` are its bytes, and `parts` names the parts of the tail."""

    core: bytes
    tail: bytes
    trees: NativeTrees
    scale: float
    bias: NDArray[np.float64]
    conditions: SplitConditions
    info: dict[str, str]
    parts: tuple[str, ...]

    @property
    def plain(self) -> bool:
        """Whether all features are numeric or categorical, without texts and embeddings."""
        return self.parts in ((), (CTR_PART,))


def read_cbm(blob: bytes) -> NativeModel:
    """Return the model in the bytes of a .cbm file.

    Raises
    ------
    DamagedFileError
        If the bytes are detectably damaged.
    """
    core, tail = _parts(blob)
    table = root(core)
    if table.text(0) != "FlabuffersModel_v1":
        raise damaged(f"its format is {table.text(0)[:40]!r}, not 'FlabuffersModel_v1'")
    trees = table.table(1)
    if trees is None:
        raise damaged("it has no trees")
    dimension = int(trees.number(_DIMENSION, "i"))
    if dimension < 1:
        raise damaged(f"it has {dimension} outputs; at least 1 is needed")
    conditions = read_conditions(trees)
    model = NativeModel(
        core=core,
        tail=tail,
        trees=_read_trees(trees, dimension),
        scale=float(trees.number(_SCALE, "d", 1.0)),
        bias=_read_bias(trees, dimension),
        conditions=conditions,
        info={entry.text(0): entry.text(1) for entry in table.tables(2)},
        parts=tuple(table.texts(3)),
    )
    _check_numbers(model)
    _check_trees(model.trees, trees.vector(_STARTS, "<i4"), len(conditions.column))
    return model


def write_cbm(model: NativeModel, trees: NativeTrees, bias: NDArray[np.float64] | None = None) -> bytes:
    """Return a .cbm file with other trees and everything else as in `model`."""
    table = root(model.core).table(1)
    if table is None:
        raise damaged("it has no trees")
    vectors: dict[int, NDArray[Any]] = {
        _SPLITS: trees.split.astype("<i4"),
        _SIZES: trees.size.astype("<i4"),
        _STARTS: _starts(trees.size).astype("<i4"),
        _LEAF_VALUES: trees.leaf_value.astype("<f8").ravel(),
        _LEAF_WEIGHTS: trees.leaf_weight.astype("<f8"),
        _STEPS: trees.step.astype("<u2").view("<u4").ravel(),
        _LEAF_IDS: trees.leaf_id.astype("<u4"),
        # CatBoost recomputes these from the splits.
        _REPACKED: np.empty(0, "<u4"),
    }
    if bias is not None:
        vectors[_BIASES] = bias.astype("<f8")
    core = with_vectors(table, vectors)
    long = len(core) >= _LONG
    size = struct.pack("<IQ", _LONG, len(core)) if long else struct.pack("<I", len(core))
    return b"".join([MAGIC, size, core, model.tail])


def probe_cbm(model: NativeModel, condition: NDArray[np.intp]) -> bytes:
    """Return a .cbm file with one tree of depth 1 per split condition; rows that fulfil it reach leaf 1."""
    dimension = model.trees.leaf_value.shape[1]
    n = len(condition)
    trees = replace(
        model.trees,
        size=np.ones(n, np.int32),
        split=condition.astype(np.int32),
        leaf_value=np.zeros((2 * n, dimension)),
        leaf_weight=np.zeros(2 * n),
        step=np.empty((0, 2), np.uint16),
        leaf_id=np.empty(0, np.uint32),
    )
    return write_cbm(model, trees)


def _parts(blob: bytes) -> tuple[bytes, bytes]:
    """Return the flatbuffer and the bytes that follow it."""
    if blob[:4] != MAGIC:
        raise damaged(f"it starts with {blob[:4]!r}, not with {MAGIC!r}")
    if len(blob) < 16:
        raise damaged(f"it ends after {len(blob)} bytes")
    start, size = 8, struct.unpack_from("<I", blob, 4)[0]
    if size == _LONG:
        start, size = 16, struct.unpack_from("<Q", blob, 8)[0]
    if start + size > len(blob):
        raise damaged(f"it has {len(blob)} bytes, but its header announces {start + size}")
    return blob[start : start + size], blob[start + size :]


def _read_trees(table: FlatTable, dimension: int) -> NativeTrees:
    values = table.vector(_LEAF_VALUES, "<f8")
    if len(values) % dimension:
        raise damaged(f"it has {len(values)} leaf values, not a multiple of its {dimension} outputs")
    return NativeTrees(
        size=table.vector(_SIZES, "<i4"),
        split=table.vector(_SPLITS, "<i4"),
        leaf_value=values.reshape(-1, dimension),
        leaf_weight=table.vector(_LEAF_WEIGHTS, "<f8"),
        step=table.vector(_STEPS, "<u4").view("<u2").reshape(-1, 2),
        leaf_id=table.vector(_LEAF_IDS, "<u4"),
    )


def _read_bias(table: FlatTable, dimension: int) -> NDArray[np.float64]:
    """Return the bias of each output; models of one output may store it as a scalar."""
    bias = table.vector(_BIASES, "<f8")
    if not len(bias):
        return np.full(dimension, table.number(_BIAS, "d", 0.0), np.float64)
    if len(bias) != dimension:
        raise damaged(f"it has {len(bias)} biases for {dimension} outputs")
    return bias.astype(np.float64)


def _check_numbers(model: NativeModel) -> None:
    trees = model.trees
    for name, values in [("leaf value", trees.leaf_value), ("leaf weight", trees.leaf_weight), ("bias", model.bias)]:
        if not np.isfinite(values).all():
            raise damaged(f"a {name} is not finite")
    if not np.isfinite(model.scale):
        raise damaged("its scale is not finite")


def _starts(size: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the index of the first split of each tree."""
    return np.cumsum(size, dtype=np.int64) - size


def _check_trees(trees: NativeTrees, starts: NDArray[np.int32], n_conditions: int) -> None:
    """Raise DamagedFileError unless the lists are consistent, so that CatBoost and kernels index within bounds."""
    size, split = trees.size, trees.split
    least, most = (0, MAX_DEPTH) if trees.symmetric else (1, 2**16)
    if len(size) and (size.min() < least or size.max() > most):
        raise damaged(f"a tree has size {size.min() if size.min() < least else size.max()}, outside {least} to {most}")
    if size.sum(dtype=np.int64) != len(split) or not np.array_equal(starts, _starts(size)):
        raise damaged(f"the sizes of its trees do not add up to its {len(split)} splits")
    if not trees.symmetric and not len(trees.step) == len(trees.leaf_id) == len(split):
        raise damaged(f"it has {len(split)} splits, {len(trees.step)} nodes and {len(trees.leaf_id)} leaf indices")
    used = split if trees.symmetric else split[(trees.step != 0).any(axis=1)]
    if len(used) and (used.min() < 0 or used.max() >= n_conditions):
        index = used.min() if used.min() < 0 else used.max()
        raise damaged(f"a split has condition {index}, but there are {n_conditions} split conditions")
    if not trees.symmetric and len(split) and (split.min() < 0 or split.max() >= max(n_conditions, 1)):
        raise damaged("a leaf refers to a split condition that does not exist")
    n_leaves = int((1 << size.astype(np.int64)).sum()) if trees.symmetric else len(trees.leaf_value)
    if len(trees.leaf_value) != n_leaves:
        raise damaged(f"its trees have {n_leaves} leaves, but there are {len(trees.leaf_value)} values")
    if len(trees.leaf_weight) not in (0, n_leaves):
        raise damaged(f"its trees have {n_leaves} leaves, but there are {len(trees.leaf_weight)} weights")
    if not trees.symmetric:
        _check_leaf_ids(trees)
    elif len(trees.leaf_id):
        raise damaged("it has leaf indices, but no nodes")


def _check_leaf_ids(trees: NativeTrees) -> None:
    """Raise DamagedFileError unless every leaf belongs to one node and the leaves of a tree are contiguous."""
    tree = np.repeat(np.arange(len(trees.size)), trees.size)
    has_leaf = (trees.step == 0).any(axis=1)
    leaf, width = trees.leaf_id[has_leaf].astype(np.int64), trees.leaf_value.shape[1]
    order = np.argsort(leaf, kind="stable")
    if not np.array_equal(leaf[order], width * np.arange(len(trees.leaf_value))):
        raise damaged(f"its nodes do not refer to each of its {len(trees.leaf_value)} leaves exactly once")
    if (np.diff(tree[has_leaf][order]) < 0).any():
        raise damaged("its leaves are not stored tree by tree")
