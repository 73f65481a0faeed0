"""Write .skops files deterministically: the same model gives the same bytes.

skops names objects by their memory addresses, other parts by random numbers, notes the time, and saves the bytes
between the fields of nodes, which have any value. Here parts are numbered in the order in which they appear, numbers
and texts, which need no identity, get none, and the bytes between fields are zero.
"""

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from secateur.files.size_limits import fits
from secateur.files.skops import SCHEMA, import_skops

_TIME = (1980, 1, 1, 0, 0, 0)
"""The time of all parts, the earliest that a zip can note."""


def write_skops(model: Any, stream: IO[bytes]) -> None:
    """Write a model compressed, or uncompressed if its compression ratio would exceed the limit of `read_skops`."""
    data = import_skops().dumps(model)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        schema = json.loads(archive.read(SCHEMA))
        names = _renumber(schema, set(archive.namelist()) - {SCHEMA})
        parts = {new: _without_gaps(new, archive.read(old)) for old, new in names.items()}
    parts[SCHEMA] = json.dumps(schema, separators=(",", ":")).encode()
    packed = _packed(parts, zipfile.ZIP_DEFLATED)
    if not fits(sum(map(len, parts.values())), len(packed)):
        packed = _packed(parts, zipfile.ZIP_STORED)
    stream.write(packed)


def _renumber(schema: dict[str, Any], files: set[str]) -> dict[str, str]:
    """Write numbers for the identities of objects and the names of files, and return the new names of the files."""
    numbers: dict[int, int] = {}
    names: dict[str, str] = {}
    for node in _nodes(schema):
        if node["__loader__"] == "JsonNode":
            node.pop("__id__", None)
        elif "__id__" in node:
            node["__id__"] = numbers.setdefault(node["__id__"], len(numbers) + 1)
        file = node.get("file")
        if isinstance(file, str) and file in files:
            node["file"] = names.setdefault(file, f"{len(names) + 1}{Path(file).suffix}")
    return names


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield the description of every object in a schema, each before those of its parts."""
    stack = [schema]
    while stack:
        part = stack.pop()
        if isinstance(part, dict):
            # A dict of the model may have the key "__loader__", too, but what it holds is described by a dict.
            if isinstance(part.get("__loader__"), str):
                yield part
            stack.extend(reversed(part.values()))
        elif isinstance(part, list):
            stack.extend(reversed(part))


def _without_gaps(name: str, content: bytes) -> bytes:
    """Return the content of a file, with zeros in the bytes between the fields of an array's elements."""
    if not name.endswith(".npy"):
        return content
    array = np.load(io.BytesIO(content), allow_pickle=False)
    gap = np.ones(array.dtype.itemsize, bool)
    for dtype, offset, *_ in (array.dtype.fields or {"": (array.dtype, 0)}).values():
        gap[offset : offset + dtype.itemsize] = False
    if not gap.any():
        return content
    data = bytearray(content)
    np.frombuffer(data, np.uint8)[len(data) - array.nbytes :].reshape(-1, len(gap))[:, gap] = 0
    return bytes(data)


def _packed(parts: dict[str, bytes], compression: int) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, content in parts.items():
            entry = zipfile.ZipInfo(name, _TIME)
            entry.compress_type = compression
            archive.writestr(entry, content)
    return stream.getvalue()
