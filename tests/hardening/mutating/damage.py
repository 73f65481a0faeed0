"""Damage bytes at random: truncate, flip bits, overwrite, repeat, swap numbers and pieces."""

import re
from collections.abc import Callable

import numpy as np

Damage = Callable[[bytes, np.random.Generator], bytes]

_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_ODD = (
    *(b"0", b"-1", b"1", b"2147483647", b"-2147483648", b"4294967296"),
    *(b"1e400", b"-1e400", b"nan", b"0.5", b"1e-40", b""),
)


def truncate(data: bytes, rng: np.random.Generator) -> bytes:
    """Return the content truncated."""
    return data[: int(rng.integers(len(data)))]


def flip(data: bytes, rng: np.random.Generator) -> bytes:
    """Return the content with a few bits flipped."""
    changed = bytearray(data)
    for place in rng.integers(len(data), size=rng.integers(1, 4)):
        changed[place] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def overwrite(data: bytes, rng: np.random.Generator) -> bytes:
    """Return the content with four bytes replaced by a small, a negative or a huge integer."""
    place = int(rng.integers(max(len(data) - 4, 1)))
    number = int(rng.choice([0, 1, -1, 2, 255, 2**31 - 1, -(2**31), int(rng.integers(1000))]))
    return data[:place] + number.to_bytes(4, "little", signed=True) + data[place + 4 :]


def cut_out(data: bytes, rng: np.random.Generator) -> bytes:
    """Return the content without some bytes in the middle."""
    start, stop = sorted(int(place) for place in rng.integers(len(data) + 1, size=2))
    return data[:start] + data[min(stop, start + int(rng.integers(1, 200))) :]


def repeat(data: bytes, rng: np.random.Generator) -> bytes:
    """Return the content with a piece repeated."""
    start = int(rng.integers(len(data)))
    stop = start + int(rng.integers(1, 200))
    return data[:stop] + data[start:stop] + data[stop:]


def change_number(data: bytes, rng: np.random.Generator) -> bytes:
    """Return the content with a few numbers in text replaced by others, some of them invalid."""
    for _ in range(int(rng.integers(1, 4))):
        found = list(_NUMBER.finditer(data))
        if not found:
            return flip(data, rng) if data else data
        chosen = found[int(rng.integers(len(found)))]
        other = found[int(rng.integers(len(found)))].group() if rng.random() < 0.5 else bytes(rng.choice(_ODD))
        data = data[: chosen.start()] + other + data[chosen.end() :]
    return data


def swap_pieces(data: bytes, rng: np.random.Generator) -> bytes:
    """Return the content with two lines, or two pieces between commas, swapped."""
    separator = b"\n" if data.count(b"\n") > 3 and rng.random() < 0.7 else b","
    pieces = data.split(separator)
    a, b = (int(place) for place in rng.integers(len(pieces), size=2))
    pieces[a], pieces[b] = pieces[b], pieces[a]
    return separator.join(pieces)


_DAMAGES: tuple[Damage, ...] = (truncate, flip, overwrite, cut_out, repeat, change_number, change_number, swap_pieces)


def damage(data: bytes, rng: np.random.Generator) -> bytes:
    """Return bytes damaged in one of these ways."""
    return _DAMAGES[int(rng.integers(len(_DAMAGES)))](data, rng)
