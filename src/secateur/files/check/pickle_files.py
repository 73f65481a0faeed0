"""Check pickles and files of joblib by their instructions; nothing in them is executed."""

import bz2
import lzma
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from secateur._util.text import quoted
from secateur.errors import DamagedFileError, UnsupportedFileError
from secateur.files.check.file_report import FileReport
from secateur.files.check.pickle_names import is_known, is_plausible
from secateur.files.check.pickle_opcodes import scan_pickle
from secateur.files.check.pickle_values import COMPUTES_TEXT, WRAPPER, Global, Scan
from secateur.files.size_limits import MAX_BYTES, MAX_RATIO

_LZMA_MEMORY = 2**28
_COMPRESSED: tuple[tuple[bytes, str, Any], ...] = (
    (b"\x78", "zlib", lambda: zlib.decompressobj()),
    (b"\x1f\x8b", "gzip", lambda: zlib.decompressobj(31)),
    (b"BZ", "bz2", bz2.BZ2Decompressor),
    (b"\xfd7zXZ\x00", "xz", lambda: lzma.LZMADecompressor(memlimit=_LZMA_MEMORY)),
    (b"]\x00", "lzma", lambda: lzma.LZMADecompressor(memlimit=_LZMA_MEMORY)),
)
_UNSUPPORTED = {b"\x04\x22\x4d\x18": "lz4", b"ZF": "the first version of joblib"}

_UNCHECKED = (
    "Only the names in a pickle were checked. Indices of its trees, and boosters stored in it, are used unchecked when "
    "it is loaded and when it predicts. A .skops file can be checked completely."
)


def check_pickle(file: Path, report: FileReport) -> FileReport:
    """List the names that loading a pickle would import or call, and those that no tree model needs."""
    data, packing = _unpacked(file)
    scan = _scan(data)
    names = tuple(dict.fromkeys(map(str, scan.names)))
    unknown = (*(str(name) for name in scan.names if not is_known(name)), *scan.oddities)
    joblib = WRAPPER in names
    found = replace(
        report,
        format=f"{'joblib' if joblib else 'pickle'}, protocol {scan.protocol}{packing}",
        library="scikit-learn" if scan.version else None,
        version=scan.version,
        runs=f"code: {', '.join(unknown[:5])}" if unknown else "constructors of known types, no other code",
        names=names,
        unknown=unknown,
        warnings=_warnings(scan),
    )
    if unknown:
        problem = (
            f"{file} {_deeds(scan)} when it is loaded. A tree model needs only known types of "
            "scikit-learn, its libraries and numpy. Load it only if you know who wrote it, and why it needs this."
        )
        return replace(found, status="runs code", problem=problem)
    if scan.error:
        problem = (
            f"{file} is not a complete pickle ({scan.error}); it is damaged, or has another content. Copy it again, or "
            "save the model again."
        )
        return replace(found, status="damaged", problem=problem)
    return found


def _deeds(scan: Scan) -> str:
    """Return what loading a pickle does that no tree model needs."""
    names = [str(name) for name in scan.names if not is_known(name)]
    return " and ".join([f"imports {quoted(names)}"] * bool(names) + list(scan.oddities))


def _scan(data: bytes) -> Scan:
    """Follow a pickle; one of joblib in the two ways in which it can be loaded.

    `pickle.load` takes the bytes of arrays for instructions, and may run what they contain. They refer to stored values
    at random, so of its oddities only computed texts count, without which no name can be computed.
    """
    plain = scan_pickle(data, arrays=False)
    if WRAPPER not in map(str, plain.names):
        return plain
    scan = scan_pickle(data, arrays=True)
    names: dict[Global, None] = {name: None for name in plain.names if is_plausible(name)}
    odd = {text: None for text in plain.oddities if text == COMPUTES_TEXT}
    return replace(scan, names={**scan.names, **names}, oddities={**scan.oddities, **odd})


def _warnings(scan: Scan) -> tuple[str, ...]:
    left = (f"{scan.left:,} bytes follow the end of the pickle and are ignored.",) if scan.left else ()
    return (_UNCHECKED, *(() if scan.error else left))


def _unpacked(file: Path) -> tuple[bytes, str]:
    """Return the pickle in a file, and how it is compressed."""
    data = file.read_bytes()
    for start, name in _UNSUPPORTED.items():
        if data.startswith(start):
            raise UnsupportedFileError(
                f"{file} is compressed by {name}, which cannot be checked. A pickle is needed, plain or compressed by "
                "zlib, gzip, bz2, xz or lzma. Save the model again, with compress=3."
            )
    for start, name, decompressor in _COMPRESSED:
        if data.startswith(start):
            return _decompressed(data, decompressor(), file), f", compressed by {name}"
    return data, ""


def _decompressed(data: bytes, decompressor: Any, file: Path) -> bytes:
    """Decompress at most the allowed number of bytes."""
    limit = max(MAX_BYTES, MAX_RATIO * len(data))
    try:
        unpacked: bytes = decompressor.decompress(data, limit + 1)
    except (OSError, zlib.error, lzma.LZMAError, EOFError, MemoryError) as error:
        raise DamagedFileError(f"{file} cannot be decompressed ({error}). Copy it again.") from error
    if len(unpacked) > limit:
        raise DamagedFileError(
            f"{file} has {len(data):,} bytes and unpacks to more than {limit:,}, which no model does. It was not read. "
            "Do not load it."
        )
    if not decompressor.eof:
        raise DamagedFileError(f"{file} ends before the end of its compressed data. Copy it again.")
    return unpacked
