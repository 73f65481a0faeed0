"""The dialect of UBJSON in which XGBoost saves models: numbers in binary, so that nothing is rounded.

Typed arrays become numpy arrays without being copied, so that a million nodes take a few thousand steps. The reader
trusts nothing: every length is compared with the bytes that are left before it is used.
"""

import struct
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

_TYPES = {"i": ">i1", "U": ">u1", "I": ">i2", "l": ">i4", "L": ">i8", "d": ">f4", "D": ">f8"}
_DTYPES = {ord(marker): np.dtype(name) for marker, name in _TYPES.items()}
_WHOLE = {ord(marker): struct.Struct(">" + kind) for marker, kind in zip("iUIlL", "bBhiq", strict=True)}
_HEADS = {(dtype.kind, dtype.itemsize): (b"[$%c#" % marker, dtype) for marker, dtype in _DTYPES.items()}
_CONSTANTS = {ord("T"): True, ord("F"): False, ord("Z"): None}
_DEEPEST = 64


def decode(data: bytes | bytearray) -> Any:
    """Return what a UBJSON text says: dicts, lists, numpy arrays, strings and numbers.

    Raises
    ------
    ValueError
        If the text ends early, goes on after its end, or has something in it that XGBoost never writes.
    """
    reader = _Reader(data)
    try:
        value = reader.value(reader.byte(), 0)
    except (IndexError, struct.error):
        raise reader.damaged("it ends early") from None
    if reader.at != len(reader.data):
        raise reader.damaged(f"{len(reader.data) - reader.at} bytes follow after its end")
    return value


class _Reader:
    """A place in a text; to read a single number beyond its end raises IndexError or struct.error."""

    def __init__(self, data: bytes | bytearray) -> None:
        self.data = memoryview(data).toreadonly()
        self.at = 0

    def damaged(self, found: str) -> ValueError:
        return ValueError(
            f"The UBJSON text is damaged at byte {self.at}: {found}. A whole model is needed; copy or save it again."
        )

    def skip(self, size: int) -> int:
        """Go on by `size` bytes, and return the place before."""
        start = self.at
        if size < 0 or size > len(self.data) - start:
            raise self.damaged(f"{size} bytes should follow but {len(self.data) - start} are left")
        self.at = start + size
        return start

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def length(self) -> int:
        """Return a length, which is a whole number with its marker in front."""
        marker = self.byte()
        if marker not in _WHOLE:
            raise self.damaged(f"a length cannot start with {bytes([marker])!r}")
        return self.whole(marker)

    def whole(self, marker: int) -> int:
        form = _WHOLE[marker]
        number: int = form.unpack_from(self.data, self.at)[0]
        self.at += form.size
        return number

    def text(self) -> str:
        start = self.skip(self.length())
        return str(self.data[start : self.at], "utf-8", "surrogateescape")

    def value(self, marker: int, depth: int) -> Any:
        """Return the value that follows its marker."""
        if marker == ord("S"):
            return self.text()
        if marker in _WHOLE:
            return self.whole(marker)
        if marker in _DTYPES:
            return self.numbers(_DTYPES[marker], 1)[0]
        if marker in _CONSTANTS:
            return _CONSTANTS[marker]
        if depth == _DEEPEST:
            raise self.damaged(f"it is nested deeper than {_DEEPEST} levels")
        if marker == ord("["):
            return self.array(depth + 1)
        if marker == ord("{"):
            return self.table(depth + 1)
        raise self.damaged(f"{bytes([marker])!r} starts no value")

    def numbers(self, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
        return np.frombuffer(self.data, dtype, count, self.skip(count * dtype.itemsize))

    def table(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while self.data[self.at] != ord("}"):
            key = self.text()
            if key in found:
                raise self.damaged(f"the key {key!r} comes twice")
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
            if count < 0 or count > len(self.data) - self.at:  # a value takes a byte at least
                raise self.damaged(f"{count} values should follow but {len(self.data) - self.at} bytes are left")
            return [self.value(self.byte(), depth) for _ in range(count)]
        found = []
        while first != ord("]"):
            found.append(self.value(first, depth))
            first = self.byte()
        return found


def encode(value: Any) -> bytearray:
    """Return the UBJSON text that XGBoost reads as this value."""
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


@lru_cache(256)  # every tree has the same keys
def _text(text: str) -> bytes:
    raw = text.encode("utf-8", "surrogateescape")
    return _size(len(raw)) + raw


def _scalar(value: Any) -> bytes:
    if isinstance(value, str):
        return b"S" + _text(value)
    if value is None or isinstance(value, bool):
        return {None: b"Z", True: b"T", False: b"F"}[value]
    if isinstance(value, int | np.integer):
        whole = int(value)
        for marker, size in ((b"i", 1), (b"I", 2), (b"l", 4)):
            if -(1 << (8 * size - 1)) <= whole < 1 << (8 * size - 1):
                return marker + whole.to_bytes(size, "big", signed=True)
        return b"L" + whole.to_bytes(8, "big", signed=True)
    return b"d" + np.asarray(value, ">f4").tobytes()  # XGBoost knows no longer numbers
