"""Read and edit flatbuffers as far as CatBoost's files need it: tables are read with checks, vectors are replaced.

A table starts with a signed offset back to its vtable, which lists the position of each field, 0 for an absent field.
Tables, vectors and strings are referenced by forward offsets. Every offset is checked before use, so that arbitrary
bytes either decode or raise ValueError.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


def damaged(what: str) -> ValueError:
    """Return the error for a damaged model."""
    return ValueError(
        f"This CatBoost model is damaged: {what}. A model as CatBoost writes it is needed; save it again, or train it "
        "again."
    )


@dataclass(frozen=True)
class FlatTable:
    """Read one table of a flatbuffer; fields are counted from 0 in schema order."""

    data: bytes
    at: int

    def place(self, field: int) -> int:
        """Return the position of a field, 0 if it is absent."""
        vtable = self.at - self._read("<i", self.at)
        size = self._read("<H", vtable)
        if 4 + 2 * field + 2 > size:
            return 0
        offset = int(self._read("<H", vtable + 4 + 2 * field))
        return self.at + offset if offset else 0

    def number(self, field: int, kind: str, default: float = 0) -> Any:
        """Return a scalar field; `kind` is a format character of the struct module."""
        place = self.place(field)
        return self._read("<" + kind, place) if place else default

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
        place = self.place(field)
        return FlatTable(self.data, self._follow(place)) if place else None

    def tables(self, field: int) -> "list[FlatTable]":
        """Return a vector of tables."""
        start, length = self._extent(field, 4)
        return [FlatTable(self.data, self._follow(start + 4 * i)) for i in range(length)]

    def texts(self, field: int) -> list[str]:
        """Return a vector of strings."""
        start, length = self._extent(field, 4)
        places = [self._follow(start + 4 * i) for i in range(length)]
        return [self._decode(place + 4, self._read("<I", place)) for place in places]

    def _extent(self, field: int, size: int) -> tuple[int, int]:
        """Return the position of a vector's first element, and its length."""
        place = self.place(field)
        if not place:
            return 0, 0
        start = self._follow(place)
        length = self._read("<I", start)
        if start + 4 + length * size > len(self.data):
            raise damaged(f"a list of {length} entries does not fit into its {len(self.data)} bytes")
        return start + 4, length

    def _decode(self, start: int, length: int) -> str:
        if start + length > len(self.data):
            raise damaged("a text runs past its end")
        return self.data[start : start + length].decode("utf-8", "replace")

    def _follow(self, place: int) -> int:
        return place + int(self._read("<I", place))

    def _read(self, kind: str, place: int) -> Any:
        if place < 0 or place + struct.calcsize(kind) > len(self.data):
            raise damaged(f"something is said to be at byte {place} of {len(self.data)}")
        return struct.unpack_from(kind, self.data, place)[0]


def root(data: bytes) -> FlatTable:
    """Return the root table."""
    start = FlatTable(data, 0)
    return FlatTable(data, start._follow(0))


def with_vectors(table: FlatTable, vectors: Mapping[int, NDArray[Any]]) -> bytes:
    """Return the buffer with new vectors for some fields, appended at the end; the old vectors stay, unused."""
    head, pieces, end = bytearray(table.data), [b""], len(table.data)
    # Invariant: `end` is the length of the buffer written so far.
    for field, values in vectors.items():
        place = table.place(field)
        if not place:
            if len(values):
                raise damaged(f"it has no place for list {field}")
            continue
        # Elements are aligned to 8 bytes; the 4 bytes before them hold their number.
        gap = (4 - end) % 8
        struct.pack_into("<I", head, place, end + gap - place)
        pieces += [b"\0" * gap, struct.pack("<I", len(values)), np.ascontiguousarray(values).tobytes()]
        end += gap + 4 + values.nbytes
    return b"".join([head, *pieces, b"\0" * (-end % 8)])
