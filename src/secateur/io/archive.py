"""Forests in files: one zip of plain arrays and a JSON header, no pickle. The written form is in docs/format.md."""

import json
import math
import zipfile
from collections.abc import Mapping
from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from secateur.forest import Categories, Forest, check_forest

FORMAT, VERSION = "secateur forest", 1

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
_TYPES = {
    "tree_start": "i8",
    "right": "i4",
    "feature": "i4",
    "threshold": "f8",
    "default_left": "?",
    "value": "f8",
    "weight": "f8",
    "tree_weight": "f8",
    "tree_output": "i4",
    "base": "f8",
    "categories.row": "i4",
    "categories.start": "i8",
    "categories.code": "i4",
    "categories.left": "?",
    "categories.other_left": "?",
}
_CHOICES = {
    "aggregation": ("sum", "mean", "median"),
    "comparison": ("<=", "<"),
    "input_dtype": ("float32", "float64"),
    "sum_dtype": ("float32", "float64"),
    "addition": ("in_order", "scaled", "fours", "around_base"),
}
_ROOM, _SHRINKAGE = 2**30, 200  # a file may unpack to a gigabyte, or to this many times its size


def save_forest(forest: Forest, stream: IO[bytes]) -> None:
    """Write a forest. It knows classes by their codes only; the labels stay with the model it was read from."""
    facts, arrays = forest_to_arrays(forest)
    write_archive(stream, {"format": FORMAT, "version": VERSION, "forest": facts}, arrays)


def load_forest(file: str | PathLike[str]) -> Forest:
    """Read a forest.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is damaged, is of a newer version, or is something else.
    """
    again = "Save the forest again."
    header, arrays = read_archive(Path(file), FORMAT, VERSION, again)
    try:
        return forest_from_arrays(header["forest"], arrays)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise ValueError(f"{file} is damaged: {error}. {again}") from error


def write_archive(stream: IO[bytes], header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a header (JSON values) and arrays."""
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    np.savez_compressed(stream, allow_pickle=False, header=text, **arrays)


def read_archive(file: Path, form: str, version: int, remedy: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return header and arrays of a file that says it is of this format, or say why not and what to do.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is damaged, is of a newer version, or is something else.
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
    except Exception as error:  # zlib, struct, json and zipfile have errors of their own for damaged bytes
        raise ValueError(
            f"{file} cannot be read as a {form} ({error or type(error).__name__}); it is damaged or something else. "
            f"{remedy}"
        ) from error
    if not known:
        raise ValueError(f"{file} is not a {form}. {remedy}")
    if newer:
        raise ValueError(
            f"{file} has format version {header['version']}; this secateur reads up to {version}. Upgrade secateur."
        )
    return header, arrays


def _check_sizes(file: Path) -> None:
    """Raise ValueError if the file unpacks to far more than a forest would, or an array is not as long as it says."""
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
        total = sum(entry.file_size for entry in entries)
        if total > max(_ROOM, _SHRINKAGE * file.stat().st_size):
            raise ValueError(f"{file.stat().st_size} bytes would unpack to {total}")
        for entry in entries:
            with archive.open(entry) as stream:
                version = np.lib.format.read_magic(stream)
                read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                shape, _, dtype = read(stream)
                if dtype.hasobject or math.prod(shape) * dtype.itemsize != entry.file_size - stream.tell():
                    raise ValueError(f"{entry.filename} does not hold the array it says")


def forest_to_arrays(forest: Forest) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the facts (JSON values) and the arrays of a forest; array names start with `forest.`."""
    facts = {name: _plain(getattr(forest, name)) for name in _FACTS}
    arrays = {f"forest.{name}": _field(forest, name) for name in _TYPES}
    return facts, arrays


def _plain(fact: Any) -> Any:
    """Return a fact with Python's own numbers, which is what JSON knows."""
    if isinstance(fact, tuple):
        return tuple(_plain(part) for part in fact)
    return fact.item() if isinstance(fact, np.generic) else fact


def _field(forest: Forest, name: str) -> NDArray[Any]:
    holder: Any = forest.categories if name.startswith("categories.") else forest
    array: NDArray[Any] = getattr(holder, name.removeprefix("categories."))
    return array.astype(_TYPES[name], copy=False)


def forest_from_arrays(facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Forest:
    """Return the checked forest these facts and arrays describe; facts that older files lack have their defaults.

    Raises
    ------
    KeyError, TypeError, ValueError
        If something is missing or does not fit.
    """
    given: dict[str, Any] = {name: facts[name] for name in _FACTS if name in facts}
    for name in ("n_classes", "zero_is_missing", "feature_names"):
        if given.get(name) is not None:
            given[name] = tuple(given[name])
    typed: dict[str, Any] = {name: _typed(arrays[f"forest.{name}"], name) for name in _TYPES}
    categories = Categories(**{field.name: typed.pop(f"categories.{field.name}") for field in fields(Categories)})
    forest = Forest(**typed, **given, categories=categories)
    _check_facts(forest)
    check_forest(forest)
    _check_categories(forest)
    return forest


def _typed(array: NDArray[Any], name: str) -> NDArray[Any]:
    """Return an array as kernels want it: of its type, in the machine's byte order, rows one after another."""
    dtype, axes = np.dtype(_TYPES[name]), 2 if name == "value" else 1
    if array.ndim != axes or array.dtype.newbyteorder("=") != dtype:
        raise ValueError(f"{name} has {array.ndim} axes of {array.dtype}; it needs {axes} of {dtype}")
    return np.ascontiguousarray(array, dtype)


def _check_facts(forest: Forest) -> None:
    """Raise ValueError unless the facts are of their types and fit the arrays."""
    for name, choices in _CHOICES.items():
        if getattr(forest, name) not in choices:
            raise ValueError(f"{name} is {getattr(forest, name)!r}; it must be one of {', '.join(choices)}")
    whole = {"n_features": (forest.n_features,), "n_classes": forest.n_classes}
    for name, numbers in {**whole, "zero_is_missing": forest.zero_is_missing}.items():
        if not all(type(number) is int and number >= 0 for number in numbers):
            raise ValueError(f"{name} is {getattr(forest, name)!r}; it must be a whole number, or several")
    if not (type(forest.symmetric) is bool and math.isfinite(forest.unit) and math.isfinite(forest.divisor)):
        raise ValueError("symmetric must be true or false, unit and divisor finite numbers")
    names = forest.feature_names
    if names is not None and not (len(names) == forest.n_features and all(isinstance(name, str) for name in names)):
        raise ValueError(f"feature_names must be {forest.n_features} strings")
    if max(forest.zero_is_missing, default=-1) >= forest.n_features:
        raise ValueError(f"zero_is_missing names a feature beyond the {forest.n_features} there are")
    one_sum_each = set(forest.n_classes) == {2} and len(forest.n_classes) == forest.n_outputs
    if forest.n_classes and sum(forest.n_classes) != forest.n_outputs and not one_sum_each:
        raise ValueError(f"the classes are {forest.n_classes} but there are {forest.n_outputs} outputs")
    if len(forest.tree_start) < 1:
        raise ValueError("tree_start is empty; it starts with 0")


def _check_categories(forest: Forest) -> None:
    """Raise ValueError unless every categorical split has a list that is there and sorted."""
    lists = forest.categories
    n_lists = len(lists.start) - 1
    rises = (
        n_lists >= 0
        and lists.start[0] == 0
        and lists.start[-1] == len(lists.code)
        and (np.diff(lists.start) >= 0).all()
    )
    if not rises or len(lists.left) != len(lists.code) or len(lists.other_left) != n_lists:
        raise ValueError("the lists of categories do not fit together")
    if len(lists.row) not in (0, forest.n_nodes) or (
        len(lists.row) and not -1 <= lists.row.min() <= lists.row.max() < n_lists
    ):
        raise ValueError("a split uses a list of categories that is not there")
    falls = np.flatnonzero(np.diff(lists.code.astype(np.int64)) <= 0) + 1
    if not np.isin(falls, lists.start).all():
        raise ValueError("a list of categories is not sorted")


def same_forest(a: Forest, b: Forest) -> bool:
    """Return whether two forests have the same facts and arrays."""
    (facts_a, arrays_a), (facts_b, arrays_b) = forest_to_arrays(a), forest_to_arrays(b)
    return facts_a == facts_b and all(
        np.array_equal(arrays_a[name], arrays_b[name], equal_nan=arrays_a[name].dtype.kind == "f") for name in arrays_a
    )
