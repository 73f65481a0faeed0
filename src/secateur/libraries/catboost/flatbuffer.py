"""Flatbuffers, as far as CatBoost's files need them: tables read with every step checked, vectors replaced.

A table starts with a signed distance back to its vtable, which lists where each field is, 0 for a field left out.
Tables, vectors and strings are referred to by a distance forward. Nothing here trusts a distance it has not checked, so
bytes of any origin either read as what they say or raise ValueError.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


def damaged(what: str) -> ValueError:
    """Return the error that says what is wrong with a model."""
    return ValueError(
        f"This CatBoost model is damaged: {what}. A model as CatBoost writes it is needed; save it again, or train it "
        "again."
    )


@dataclass(frozen=True)
class FlatTable:
    """One table of a flatbuffer; fields are counted from 0 in the order of the schema."""

    data: bytes
    at: int

    def place(self, field: int) -> int:
        """Return where a field is, 0 if it was left out."""
        vtable = self.at - self._read("<i", self.at)
        size = self._read("<H", vtable)
        if 4 + 2 * field + 2 > size:
            return 0
        offset = int(self._read("<H", vtable + 4 + 2 * field))
        return self.at + offset if offset else 0

    def number(self, field: int, kind: str, default: float = 0) -> Any:
        """Return a number of a kind of the struct module."""
        place = self.place(field)
        return self._read("<" + kind, place) if place else default

    def vector(self, field: int, dtype: str) -> NDArray[Any]:
        """Return a vector of numbers, empty if it was left out; read-only."""
        start, length = self._extent(field, np.dtype(dtype).itemsize)
        return np.frombuffer(self.data, dtype, length, start)

    def text(self, field: int) -> str:
        """Return a string, empty if it was left out."""
        start, length = self._extent(field, 1)
        return self._decode(start, length)

    def table(self, field: int) -> "FlatTable | None":
        """Return the table a field refers to."""
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
        """Return where the elements of a vector start, and how many there are."""
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
    """Return the outermost table."""
    start = FlatTable(data, 0)
    return FlatTable(data, start._follow(0))


def with_vectors(table: FlatTable, vectors: Mapping[int, NDArray[Any]]) -> bytes:
    """Return the buffer with new vectors in a table, put at the end; the old ones stay behind unused."""
    head, pieces, end = bytearray(table.data), [b""], len(table.data)
    for field, values in vectors.items():
        place = table.place(field)
        if not place:
            if len(values):
                raise damaged(f"it has no place for list {field}")
            continue
        gap = (4 - end) % 8  # elements lie at multiples of 8 bytes, their count in the 4 bytes before
        struct.pack_into("<I", head, place, end + gap - place)
        pieces += [b"\0" * gap, struct.pack("<I", len(values)), np.ascontiguousarray(values).tobytes()]
        end += gap + 4 + values.nbytes
    return b"".join([head, *pieces, b"\0" * (-end % 8)])
