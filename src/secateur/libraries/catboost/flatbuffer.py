"""Read and edit flatbuffers as far as CatBoost's files need it: tables are read with checks, vectors are replaced.

A table starts with a signed offset back to its vtable, which lists the position of each field, 0 for an absent field.
Tables, vectors and strings are referenced by forward offsets. Every offset is checked before use, so that arbitrary
bytes either decode or raise DamagedFileError.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.errors import DamagedFileError


def damaged(what: str) -> DamagedFileError:
    """Return the error for a damaged model."""
    return DamagedFileError(
        f"The CatBoost model is damaged: {what}. secateur needs the model as CatBoost wrote it. Save it again, or "
        "train it again."
    )


@dataclass(frozen=True)
class FlatTable:
    """Read one table of a flatbuffer; fields are counted from 0 in schema order."""

    data: bytes
    at: int

    def position(self, field: int) -> int:
        """Return the position of a field, 0 if it is absent."""
        vtable = self.at - self._read("<i", self.at)
        size = self._read("<H", vtable)
        if 4 + 2 * field + 2 > size:
            return 0
        offset = int(self._read("<H", vtable + 4 + 2 * field))
        return self.at + offset if offset else 0

    def number(self, field: int, kind: str, default: float = 0) -> Any:
        """Return a scalar field; `kind` is a format character of the struct module."""
        position = self.position(field)
        return self._read("<" + kind, position) if position else default

    def vector(self, field: int, dtype: str) -> NDArray[Any]:
        """Return a vector of numbers as a read-only array, empty if the field is absent."""
        start, length = self._extent(field, np.dtype(dtype).itemsize)
        return np.frombuffer(self.data, dtype, length, start)

    def text(self, field: int) -> str:
        """Return a string, empty if the field is absent."""
        start, length = self._extent(field, 1)
        return self._decode(start, length)

    def table(self, field: int) -> "FlatTable | None":
        """Return the table that a field references, or None if the field is absent."""
        position = self.position(field)
        return FlatTable(self.data, self._follow(position)) if position else None

    def tables(self, field: int) -> "list[FlatTable]":
        """Return a vector of tables."""
        start, length = self._extent(field, 4)
        return [FlatTable(self.data, self._follow(start + 4 * i)) for i in range(length)]

    def texts(self, field: int) -> list[str]:
        """Return a vector of strings."""
        start, length = self._extent(field, 4)
        positions = [self._follow(start + 4 * i) for i in range(length)]
        return [self._decode(position + 4, self._read("<I", position)) for position in positions]

    def _extent(self, field: int, size: int) -> tuple[int, int]:
        """Return the position of a vector's first element, and its length."""
        position = self.position(field)
        if not position:
            return 0, 0
        start = self._follow(position)
        length = self._read("<I", start)
        if start + 4 + length * size > len(self.data):
            raise damaged(f"a list of {length} entries does not fit into its {len(self.data)} bytes")
        return start + 4, length

    def _decode(self, start: int, length: int) -> str:
        if start + length > len(self.data):
            raise damaged(f"a string ends at byte {start + length} of {len(self.data)}")
        return self.data[start : start + length].decode("utf-8", "replace")

    def _follow(self, position: int) -> int:
        return position + int(self._read("<I", position))

    def _read(self, kind: str, position: int) -> Any:
        if position < 0 or position + struct.calcsize(kind) > len(self.data):
            raise damaged(f"an offset points to byte {position} of {len(self.data)}")
        return struct.unpack_from(kind, self.data, position)[0]


def root(data: bytes) -> FlatTable:
    """Return the root table."""
    start = FlatTable(data, 0)
    return FlatTable(data, start._follow(0))


def with_vectors(table: FlatTable, vectors: Mapping[int, NDArray[Any]]) -> bytes:
    """Return the buffer with new vectors for some fields, appended at the end; the old vectors stay, unused."""
    head, pieces, end = bytearray(table.data), [b""], len(table.data)
    # Invariant: `end` is the length of the buffer written so far.
    for field, values in vectors.items():
        position = table.position(field)
        if not position:
            if len(values):
                raise damaged(f"its table of trees has no field {field}")
            continue
        # Elements are aligned to 8 bytes; the 4 bytes before them hold their number.
        gap = (4 - end) % 8
        struct.pack_into("<I", head, position, end + gap - position)
        pieces += [b"\0" * gap, struct.pack("<I", len(values)), np.ascontiguousarray(values).tobytes()]
        end += gap + 4 + values.nbytes
    return b"".join([head, *pieces, b"\0" * (-end % 8)])
