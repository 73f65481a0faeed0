"""Limit the size to which a compressed file may unpack, so that a small crafted file cannot exhaust memory."""

import gzip
import zipfile
from pathlib import Path
from typing import IO

ROOM, RATIO = 2**26, 200
"""A file may unpack to `ROOM` bytes, or to `RATIO` times its size; trees and tables compress far less.

Unpacking that many bytes takes a fraction of a second; parsed text takes several times its size in memory.
"""
_STEP = 2**20


def fits(unpacked: int, packed: int) -> bool:
    """Return whether a file of `packed` bytes may unpack to `unpacked` bytes."""
    return unpacked <= max(ROOM, RATIO * packed)


def check_unpacked(unpacked: int, file: Path, remedy: str) -> None:
    """Raise ValueError if a file would unpack to far more than its size."""
    size = file.stat().st_size
    if not fits(unpacked, size):
        raise ValueError(f"{file} has {size:,} bytes and would unpack to {unpacked:,}; it was not read. {remedy}")


def unpacked_size(file: Path | IO[bytes]) -> int:
    """Return the unpacked size of a zip as its entries declare it; Python never unpacks more than that."""
    with zipfile.ZipFile(file) as archive:
        return sum(entry.file_size for entry in archive.infolist())


def check_gzip(file: Path, remedy: str) -> None:
    """Raise ValueError if a gzip file unpacks to far more than its size; it is unpacked once to find out."""
    size, total = file.stat().st_size, 0
    with gzip.open(file) as stream:
        while piece := stream.read(_STEP):
            total += len(piece)
            if not fits(total, size):
                raise ValueError(
                    f"{file} has {size:,} bytes and would unpack to more than {total:,}; it was not read. {remedy}"
                )
