"""Check a .skops file: the types it names, the sizes of its parts, and its trees if all its types are harmless."""

import io
import json
import re
import warnings
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from secateur._util.text import quoted
from secateur.errors import DamagedFileError, SecateurError, UnsupportedModelError
from secateur.files.check.file_report import FileReport, failed
from secateur.files.check.numbers_of_trees import with_forest
from secateur.files.check.pickle_names import is_known
from secateur.files.check.pickle_values import Global
from secateur.files.size_limits import fits
from secateur.files.skops import HARMLESS, read_skops, untrusted_types
from secateur.libraries import adapt

_SCHEMA = "schema.json"
_SKLEARN_VERSION = re.compile(rb'"_sklearn_version": \{[^}]*?"content": "\\"(\d[\w.]{1,30})\\""')
_PATHS = ("module_path", "function"), ("__module__", "__class__")


def check_skops(file: Path, report: FileReport) -> FileReport:
    """List the types in a file, and load it if all of them are known to be harmless."""
    schema, odd = _read_schema(file)
    names = tuple(sorted(_names(_parse(schema, file))))
    version = _SKLEARN_VERSION.search(schema)
    named = replace(
        report,
        library="scikit-learn",
        version=version[1].decode() if version else None,
        names=names,
        warnings=odd,
        runs="constructors of known types, no other code",
    )
    try:
        unknown = _unknown(file, names)
        if unknown:
            return _untrusted(named, file, unknown)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = read_skops(file)
    except (SecateurError, ImportError) as error:
        return failed(named, error)
    return _with_model(replace(named, warnings=(*odd, *_in_words(caught))), model)


def _in_words(caught: list[warnings.WarningMessage]) -> tuple[str, ...]:
    """Return the first sentence of each warning, and one for all that compare versions of scikit-learn."""
    texts = []
    for message in (warning.message for warning in caught):
        written, installed = (getattr(message, f"{which}_sklearn_version", None) for which in ("original", "current"))
        known = f"It was written by scikit-learn {written}, and {installed} is installed."
        texts.append(known if written else f"{str(message).partition('. ')[0]}.")
    return tuple(dict.fromkeys(texts))


def _with_model(report: FileReport, model: Any) -> FileReport:
    """Return the report with the sizes of a model; one without trees has none."""
    try:
        adapter = adapt(model)
        return with_forest(replace(report, objective=adapter.objective), adapter.read())
    except UnsupportedModelError as error:
        return failed(report, error)


def _untrusted(report: FileReport, file: Path, unknown: tuple[str, ...]) -> FileReport:
    return replace(
        report,
        status="runs code",
        unknown=unknown,
        runs=f"code: {', '.join(unknown[:5])}",
        problem=(
            f"{file} contains types that are not known to be harmless: {quoted(unknown)}. They are imported and called "
            "when it is loaded with trust, which a tree model does not need. Trust it only if you know who wrote it."
        ),
    )


def _unknown(file: Path, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the types that skops does not trust and that are not known to be harmless."""
    try:
        return tuple(name for name in untrusted_types(file) if name not in HARMLESS)
    except ImportError:
        # A text is a value here, not a call that makes one.
        parts = [name.rpartition(".") for name in names if name != "builtins.str"]
        return tuple(f"{module}.{name}" for module, _, name in parts if not is_known(Global(module, name)))


def _read_schema(file: Path) -> tuple[bytes, tuple[str, ...]]:
    """Return the description of the objects, and warnings, after checking the sizes of all parts of the zip."""
    data = file.read_bytes()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            unpacked = sum(entry.file_size for entry in entries)
            repeated = len({entry.filename for entry in entries}) < len(entries)
            schema = archive.read(_SCHEMA) if fits(unpacked, len(data)) else b""
    except Exception as error:
        # zipfile, zlib, lzma and struct raise exceptions of different types for damaged bytes.
        raise DamagedFileError(
            f"{file} is not a zip with a {_SCHEMA}, as .skops files are ({str(error)[:100]}). Copy it again, or save "
            "the model again."
        ) from error
    if not fits(unpacked, len(data)):
        raise DamagedFileError(
            f"{file} has {len(data):,} bytes and would unpack to {unpacked:,}, which no model does. It was not read. "
            "Do not load it."
        )
    twice = "It contains two parts of one name, of which programs may read either."
    return schema, (twice,) if repeated else ()


def _parse(schema: bytes, file: Path) -> Any:
    try:
        return json.loads(schema)
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(
            f"{_SCHEMA} in {file} is not valid JSON ({type(error).__name__}). Save the model again."
        ) from error


def _names(schema: Any) -> Iterator[str]:
    """Yield the types and functions that a schema names, each once."""
    seen: set[str] = set()
    stack = [schema]
    while stack:
        node = stack.pop()
        stack += node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        for module, name in _PATHS if isinstance(node, dict) else ():
            if isinstance(node.get(module), str) and isinstance(node.get(name), str):
                seen.add(f"{node[module]}.{node[name]}")
    yield from seen
