"""Encode and decode XGBoost's dialect of UBJSON, a binary format that does not round numbers.

Typed arrays become numpy arrays without a copy, so that decoding a million nodes takes a few thousand steps. The
decoder does not trust its input: it compares every length with the number of bytes left before use.
"""

import struct
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.errors import DamagedFileError

_TYPES = {"i": ">i1", "U": ">u1", "I": ">i2", "l": ">i4", "L": ">i8", "d": ">f4", "D": ">f8"}
_DTYPES = {ord(marker): np.dtype(name) for marker, name in _TYPES.items()}
_INTEGERS = {ord(marker): struct.Struct(">" + kind) for marker, kind in zip("iUIlL", "bBhiq", strict=True)}
_HEADS = {(dtype.kind, dtype.itemsize): (b"[$%c#" % marker, dtype) for marker, dtype in _DTYPES.items()}
_CONSTANTS = {ord("T"): True, ord("F"): False, ord("Z"): None}
_MAX_DEPTH = 64


def decode(data: bytes | bytearray) -> Any:
    """Return the contents of UBJSON data: dicts, lists, numpy arrays, strings and numbers.

    Raises
    ------
    DamagedFileError
        If the data are truncated, continue after their end, or contain a construct XGBoost never writes.
    """
    reader = _Reader(data)
    try:
        value = reader.value(reader.byte(), 0)
    except (IndexError, struct.error):
        raise reader.damaged("they end early") from None
    if reader.at != len(reader.data):
        raise reader.damaged(f"{len(reader.data) - reader.at} bytes follow after their end")
    return value


class _Reader:
    """Read UBJSON values from a buffer; reading past the end raises IndexError or struct.error."""

    def __init__(self, data: bytes | bytearray) -> None:
        self.data = memoryview(data).toreadonly()
        self.at = 0

    def damaged(self, found: str) -> DamagedFileError:
        return DamagedFileError(
            f"The UBJSON data are damaged at byte {self.at}: {found}. secateur needs a complete model. Copy or save it "
            "again."
        )

    def skip(self, size: int) -> int:
        """Advance by `size` bytes and return the position before."""
        start = self.at
        if size < 0 or size > len(self.data) - start:
            raise self.damaged(f"{size} bytes should follow, but {len(self.data) - start} are left")
        self.at = start + size
        return start

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def length(self) -> int:
        """Return a length: an integer preceded by its type marker."""
        marker = self.byte()
        if marker not in _INTEGERS:
            raise self.damaged(f"a length cannot start with {bytes([marker])!r}")
        return self.integer(marker)

    def integer(self, marker: int) -> int:
        form = _INTEGERS[marker]
        number: int = form.unpack_from(self.data, self.at)[0]
        self.at += form.size
        return number

    def text(self) -> str:
        start = self.skip(self.length())
        return str(self.data[start : self.at], "utf-8", "surrogateescape")

    def value(self, marker: int, depth: int) -> Any:
        """Return the value after its type marker."""
        if marker == ord("S"):
            return self.text()
        if marker in _INTEGERS:
            return self.integer(marker)
        if marker in _DTYPES:
            return self.numbers(_DTYPES[marker], 1)[0]
        if marker in _CONSTANTS:
            return _CONSTANTS[marker]
        if depth == _MAX_DEPTH:
            raise self.damaged(f"they are nested deeper than {_MAX_DEPTH} levels")
        if marker == ord("["):
            return self.array(depth + 1)
        if marker == ord("{"):
            return self.table(depth + 1)
        raise self.damaged(f"{bytes([marker])!r} is not a type marker")

    def numbers(self, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
        return np.frombuffer(self.data, dtype, count, self.skip(count * dtype.itemsize))

    def table(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while self.data[self.at] != ord("}"):
            key = self.text()
            if key in found:
                raise self.damaged(f"the key {key!r} is repeated")
            found[key] = self.value(self.byte(), depth)
        self.at += 1
        return found

    def array(self, depth: int) -> list[Any] | NDArray[Any]:
        first = self.byte()
        if first == ord("$"):
            dtype = _DTYPES.get(self.byte())
            if dtype is None or self.byte() != ord("#"):
                raise self.damaged("a typed array needs a type and a length")
            return self.numbers(dtype, self.length())
        if first == ord("#"):
            count = self.length()
            # Every value takes at least one byte.
            if count < 0 or count > len(self.data) - self.at:
                raise self.damaged(f"{count} values should follow, but {len(self.data) - self.at} bytes are left")
            return [self.value(self.byte(), depth) for _ in range(count)]
        found = []
        while first != ord("]"):
            found.append(self.value(first, depth))
            first = self.byte()
        return found


def encode(value: Any) -> bytearray:
    """Return the UBJSON encoding of a value."""
    parts: list[Any] = []
    _write(value, parts)
    return bytearray().join(parts)


def _write(value: Any, parts: list[Any]) -> None:
    if isinstance(value, dict):
        parts.append(b"{")
        for key, entry in value.items():
            parts.append(_text(key))
            _write(entry, parts)
        parts.append(b"}")
    elif isinstance(value, np.ndarray):
        head, dtype = _HEADS[value.dtype.kind, value.dtype.itemsize]
        parts += [head, _size(len(value)), np.ascontiguousarray(value, dtype)]
    elif isinstance(value, list | tuple):
        parts += [b"[#", _size(len(value))]
        for entry in value:
            _write(entry, parts)
    else:
        parts.append(_scalar(value))


def _size(length: int) -> bytes:
    return b"L" + length.to_bytes(8, "big")


# Every tree has the same keys.
@lru_cache(256)
def _text(text: str) -> bytes:
    raw = text.encode("utf-8", "surrogateescape")
    return _size(len(raw)) + raw


def _scalar(value: Any) -> bytes:
    if isinstance(value, str):
        return b"S" + _text(value)
    if value is None or isinstance(value, bool):
        return {None: b"Z", True: b"T", False: b"F"}[value]
    if isinstance(value, int | np.integer):
        number = int(value)
        for marker, size in ((b"i", 1), (b"I", 2), (b"l", 4)):
            if -(1 << (8 * size - 1)) <= number < 1 << (8 * size - 1):
                return marker + number.to_bytes(size, "big", signed=True)
        return b"L" + number.to_bytes(8, "big", signed=True)
    # XGBoost reads floating-point scalars as float32 only.
    return b"d" + np.asarray(value, ">f4").tobytes()
