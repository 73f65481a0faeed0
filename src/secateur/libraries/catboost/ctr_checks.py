"""Validate the categorical statistics (CTR) of a .cbm file, whose offsets and indices CatBoost does not check.

A table is a hash map from categories to rows of counts. It has buckets of 12 bytes (hash, row). Their number is a
power of two, and at least one bucket must be empty, or the search for an unknown category never ends.
"""

import struct

import numpy as np

from secateur.libraries.catboost.cbm import CTR_PART, NativeModel
from secateur.libraries.catboost.flatbuffer import FlatTable, damaged, root

_CTRS = 7
_BUCKET = np.dtype([("hash", "<u8"), ("row", "<u4")])
_EMPTY = 2**64 - 1
# Kinds of statistics; 0 is Borders.
_BUCKETS, _MEANS, _COUNTERS = 1, (2, 3), (4, 5)
_Base = tuple[object, ...]


def check_tail(model: NativeModel) -> None:
    """Raise DamagedFileError unless all statistics are present and valid; for models without texts and embeddings."""
    trees = root(model.core).table(1)
    features = trees.tables(_CTRS) if trees else []
    needed = [ctr for ctr in (feature.table(0) for feature in features) if ctr is not None]
    if CTR_PART not in model.parts:
        if needed:
            raise damaged("its categorical statistics are missing")
        return
    kinds: dict[_Base, tuple[int, int]] = {}
    count, at = _size(model.tail, 0)
    for _ in range(count):
        size, at = _size(model.tail, at)
        if at + size > len(model.tail):
            raise damaged(f"a categorical statistic of {size} bytes starts at byte {at} of {len(model.tail)}")
        base, facts = _check_table(root(model.tail[at : at + size]))
        kinds[base] = facts
        at += size
    for ctr in needed:
        _check_use(ctr, kinds)
    if at != len(model.tail):
        raise damaged(f"{len(model.tail) - at} unknown bytes follow its categorical statistics")


def _size(data: bytes, at: int) -> tuple[int, int]:
    """Return a size and the position after it."""
    if at + 4 > len(data):
        raise damaged("its categorical statistics are truncated")
    return struct.unpack_from("<I", data, at)[0], at + 4


def _base(table: FlatTable | None) -> _Base:
    """Return a hashable key of a statistic: its kind and the features it combines."""
    combined = table.table(0) if table else None
    if table is None or combined is None:
        raise damaged("a categorical statistic does not list its features")
    vectors = (combined.vector(0, "<i4"), combined.vector(1, "<i4,<f4"), combined.vector(2, "<i4,<i4"))
    return int(table.number(1, "b")), *(vector.tobytes() for vector in vectors)


def _check_table(table: FlatTable) -> tuple[_Base, tuple[int, int]]:
    """Return the key of a checked table, its kind and its number of classes."""
    base = _base(table.table(0))
    raw, blob = table.vector(1, "u1"), table.vector(2, "u1")
    kind, classes = int(str(base[0])), int(table.number(4, "i"))
    n_buckets = len(raw) // _BUCKET.itemsize
    if len(raw) % _BUCKET.itemsize or n_buckets < 1 or n_buckets & (n_buckets - 1):
        raise damaged(f"a hash map has {len(raw)} bytes, not {_BUCKET.itemsize} times a power of two")
    buckets = raw.view(_BUCKET)
    filled = buckets["hash"] != _EMPTY
    if filled.all():
        raise damaged("a hash map has no empty bucket")
    if kind in (0, _BUCKETS) and not 1 <= classes <= len(blob):
        raise damaged(f"a categorical statistic has {classes} classes, outside 1 to {len(blob)}")
    width = 8 if kind in _MEANS else 4 if kind in _COUNTERS else 4 * classes
    if len(blob) % width or (filled.any() and int(buckets["row"][filled].max()) >= len(blob) // width):
        raise damaged("a hash map refers to counts that do not exist")
    return base, (kind, classes)


def _check_use(ctr: FlatTable, kinds: dict[_Base, tuple[int, int]]) -> None:
    """Raise DamagedFileError unless a statistic used by the trees has a table that contains its class."""
    base = _base(ctr.table(0))
    if base not in kinds:
        raise damaged("a categorical statistic that its trees use is missing")
    kind, classes = kinds[base]
    border = int(ctr.number(1, "i"))
    if kind in (0, _BUCKETS) and not 0 <= border < classes:
        raise damaged(f"a categorical statistic refers to class {border}, but has {classes} classes")
