"""How much a compressed file may unpack to: a few kilobytes from a stranger must not fill the memory."""

import gzip
import zipfile
from pathlib import Path
from typing import IO

ROOM, RATIO = 2**26, 200
"""A file may unpack to this many bytes, or to this many times its size; trees and tables shrink far less. Unpacking
so many takes a fraction of a second; text takes several times its size once it is read."""
_STEP = 2**20


def fits(unpacked: int, packed: int) -> bool:
    """Return whether bytes that unpack to so many are read."""
    return unpacked <= max(ROOM, RATIO * packed)


def check_unpacked(unpacked: int, file: Path, remedy: str) -> None:
    """Raise ValueError if a file would unpack to far more than its size."""
    size = file.stat().st_size
    if not fits(unpacked, size):
        raise ValueError(f"{file} has {size:,} bytes and would unpack to {unpacked:,}; it was not read. {remedy}")


def unpacked_size(file: Path | IO[bytes]) -> int:
    """Return to how many bytes a zip unpacks, as its entries claim; Python unpacks no more of them than that."""
    with zipfile.ZipFile(file) as archive:
        return sum(entry.file_size for entry in archive.infolist())


def check_gzip(file: Path, remedy: str) -> None:
    """Raise ValueError if a compressed text would unpack to far more than its size: it is unpacked once to see."""
    size, total = file.stat().st_size, 0
    with gzip.open(file) as stream:
        while piece := stream.read(_STEP):
            total += len(piece)
            if not fits(total, size):
                raise ValueError(
                    f"{file} has {size:,} bytes and would unpack to more than {total:,}; it was not read. {remedy}"
                )
