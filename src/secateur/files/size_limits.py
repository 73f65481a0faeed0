"""Limit the size to which a compressed file may unpack, so that a small crafted file cannot exhaust memory."""

import gzip
import zipfile
from pathlib import Path
from typing import IO

from secateur.errors import UnsupportedFileError

MAX_BYTES, MAX_RATIO = 2**26, 200
"""A file may unpack to the larger of `MAX_BYTES` and `MAX_RATIO` times its size; trees and tables compress far less.

Unpacking that many bytes takes a fraction of a second; parsed text takes several times its size in memory.
"""
_CHUNK_BYTES = 2**20


def fits(unpacked: int, packed: int) -> bool:
    """Return whether a file of `packed` bytes may unpack to `unpacked` bytes."""
    return unpacked <= max(MAX_BYTES, MAX_RATIO * packed)


def check_unpacked(unpacked: int, file: Path, remedy: str) -> None:
    """Raise UnsupportedFileError if a file would unpack to far more than its size."""
    size = file.stat().st_size
    if not fits(unpacked, size):
        raise UnsupportedFileError(
            f"{file} has {size:,} bytes and would unpack to {unpacked:,}, which exceeds the limit for compressed "
            f"files. It was not read. {remedy}"
        )


def unpacked_size(file: Path | IO[bytes]) -> int:
    """Return the unpacked size of a zip as its entries declare it; Python never unpacks more than that."""
    with zipfile.ZipFile(file) as archive:
        return sum(entry.file_size for entry in archive.infolist())


def check_gzip(file: Path, remedy: str) -> None:
    """Raise UnsupportedFileError if a gzip file unpacks to far more than its size; it is unpacked once to find out."""
    size, total = file.stat().st_size, 0
    with gzip.open(file) as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            total += len(chunk)
            if not fits(total, size):
                raise UnsupportedFileError(
                    f"{file} has {size:,} bytes and would unpack to more than {total:,}, which exceeds the limit for "
                    f"compressed files. It was not read. {remedy}"
                )
