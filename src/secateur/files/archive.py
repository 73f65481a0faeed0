"""Save and load forests as one zip of plain arrays and a JSON header, without pickle (format: docs/format.md)."""

import json
import math
import zipfile
from collections.abc import Mapping
from dataclasses import fields, replace
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from secateur.errors import DamagedFileError, UnsupportedFileError
from secateur.files.size_limits import fits
from secateur.forest import Categories, Forest, check_forest
from secateur.forest.forest_checks import TYPES, array_of

FORMAT, VERSION = "secateur forest", 2
"""Version 2 adds monotonic constraints; a forest without them is written as version 1, which older readers accept."""

_FACTS = (
    "link",
    "n_features",
    "n_classes",
    "aggregation",
    "unit",
    "divisor",
    "comparison",
    "input_dtype",
    "sum_dtype",
    "addition",
    "symmetric",
    "zero_is_missing",
    "feature_names",
)

_NEWER = ("sum_dtype", "addition", "symmetric", "zero_is_missing")
"""Facts that older files lack; they get their default values."""


def save_forest(forest: Forest, stream: IO[bytes]) -> None:
    """Write a forest. It contains class codes only; the labels stay with the model it was read from."""
    facts, arrays = forest_to_arrays(forest)
    version = VERSION if "monotone" in facts or "objective" in facts else 1
    write_archive(stream, {"format": FORMAT, "version": version, "forest": facts}, arrays)


def load_forest(file: str | PathLike[str]) -> Forest:
    """Read a forest.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    DamagedFileError
        If the file is damaged.
    UnsupportedFileError
        If the file has another format or a newer version.
    """
    remedy = "Save the forest again."
    header, arrays = read_archive(Path(file), FORMAT, VERSION, remedy)
    try:
        return forest_from_arrays(header["forest"], arrays)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        found = f"the entry {error} is missing" if isinstance(error, KeyError) else str(error).rstrip(".")
        raise DamagedFileError(f"{file} is damaged: {found}. {remedy}") from error


def write_archive(stream: IO[bytes], header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a header (JSON values) and arrays.

    The archive is not compressed if its compression ratio would exceed the limit of `read_archive`.
    """
    everything = {"header": np.frombuffer(json.dumps(header).encode(), np.uint8), **arrays}
    start, total = stream.tell(), sum(array.nbytes for array in everything.values())
    np.savez_compressed(stream, allow_pickle=False, **everything)
    if not fits(total, stream.tell() - start):
        stream.seek(start)
        stream.truncate()
        np.savez(stream, allow_pickle=False, **everything)


def read_archive(file: Path, form: str, version: int, remedy: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return header and arrays of a file of the given format.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    DamagedFileError
        If the file is damaged. The message ends with `remedy`.
    UnsupportedFileError
        If the file has another format or a newer version.
    """
    if not file.is_file():
        raise FileNotFoundError(f"There is no file {file}; a {form} is needed. {remedy}")
    try:
        _check_sizes(file)
        with np.load(file, allow_pickle=False) as archive:
            header = json.loads(bytes(archive["header"]))
            known = isinstance(header, dict) and header.get("format") == form
            newer = known and header.get("version", 0) > version
            arrays = {name: archive[name] for name in archive.files if name != "header"} if known and not newer else {}
    except Exception as error:
        # numpy, zlib, struct, json and zipfile raise exceptions of different types for damaged bytes.
        raise DamagedFileError(
            f"{file} cannot be read as a {form} ({error or type(error).__name__}); it is damaged or has another "
            f"format. {remedy}"
        ) from error
    if not known:
        raise UnsupportedFileError(f"{file} is not a {form}. {remedy}")
    if newer:
        raise UnsupportedFileError(
            f"{file} has format version {header['version']}, but this version of secateur reads only versions up to "
            f"{version}. Upgrade secateur."
        )
    return header, arrays


def _check_sizes(file: Path) -> None:
    """Raise DamagedFileError if the compression ratio is too large, or an array's size differs from its header."""
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
        total = sum(entry.file_size for entry in entries)
        if not fits(total, file.stat().st_size):
            raise DamagedFileError(f"{file.stat().st_size} bytes would unpack to {total}")
        for entry in entries:
            with archive.open(entry) as stream:
                version = np.lib.format.read_magic(stream)
                read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                shape, _, dtype = read(stream)
                if dtype.hasobject or math.prod(shape) * dtype.itemsize != entry.file_size - stream.tell():
                    raise DamagedFileError(f"the size of {entry.filename} differs from its header")


def forest_to_arrays(forest: Forest) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the facts (JSON values) and the arrays of a forest; array names start with `forest.`."""
    facts = {name: _plain(getattr(forest, name)) for name in _FACTS}
    if forest.monotone is not None:
        facts["monotone"] = forest.monotone.tolist()
    if forest.objective is not None:
        facts["objective"] = forest.objective
    arrays = {f"forest.{name}": array_of(forest, name).astype(TYPES[name], copy=False) for name in TYPES}
    return facts, arrays


def _plain(fact: Any) -> Any:
    """Return a fact with Python numbers in place of numpy scalars, for JSON."""
    if isinstance(fact, tuple):
        return tuple(_plain(part) for part in fact)
    return fact.item() if isinstance(fact, np.generic) else fact


def forest_from_arrays(facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Forest:
    """Return the checked forest with these facts and arrays.

    `monotone`, `objective` and the facts in `_NEWER` may be missing.

    Raises
    ------
    KeyError, TypeError, ValueError
        If an entry is missing or inconsistent.
    """
    given: dict[str, Any] = {name: facts[name] for name in _FACTS if name in facts or name not in _NEWER}
    for name in ("n_classes", "zero_is_missing", "feature_names"):
        if given.get(name) is not None:
            given[name] = tuple(given[name])
    if facts.get("monotone") is not None:
        given["monotone"] = _signs(facts["monotone"])
    if facts.get("objective") is not None:
        given["objective"] = str(facts["objective"])
    typed: dict[str, Any] = {name: _typed(arrays[f"forest.{name}"], name) for name in TYPES}
    categories = Categories(**{field.name: typed.pop(f"categories.{field.name}") for field in fields(Categories)})
    forest = Forest(**typed, **given, categories=categories)
    check_forest(forest)
    return forest


def _signs(found: Any) -> NDArray[np.int8]:
    """Return monotonic constraints as an array; `check_forest` checks their number."""
    if not isinstance(found, list) or any(type(sign) is not int or abs(sign) > 1 for sign in found):
        raise DamagedFileError(f"monotone is {found!r:.60} instead of a list of -1, 0 and 1")
    return np.array(found, np.int8)


def _typed(array: NDArray[Any], name: str) -> NDArray[Any]:
    """Return an array as kernels need it: of its dtype, in native byte order, C-contiguous."""
    dtype, axes = np.dtype(TYPES[name]), 2 if name == "value" else 1
    if array.ndim != axes or array.dtype.newbyteorder("=") != dtype:
        raise DamagedFileError(f"{name} has {array.ndim} axes of {array.dtype} instead of {axes} of {dtype}")
    return np.ascontiguousarray(array, dtype)


def same_forest(a: Forest, b: Forest) -> bool:
    """Return whether two forests are equal but for constraints and objective, which files may lack."""
    (facts_a, arrays_a), (facts_b, arrays_b) = (
        forest_to_arrays(replace(f, monotone=None, objective=None)) for f in (a, b)
    )
    return facts_a == facts_b and all(
        np.array_equal(arrays_a[name], arrays_b[name], equal_nan=arrays_a[name].dtype.kind == "f") for name in arrays_a
    )
