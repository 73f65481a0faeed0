"""Map the suffix of a model file to its reader and writer."""

import json
import pickle
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from secateur.errors import DamagedFileError, SecateurError
from secateur.files.archive import load_forest, save_forest
from secateur.libraries import LIBRARIES, adapt, library_of

_XGBOOST_KEYS = {"learner", "version"}
_CATBOOST_KEYS = {"features_info", "model_info", "oblivious_trees", "scale_and_bias", "trees", "ctr_data"}


@dataclass(frozen=True)
class Format:
    """Describe how files of one suffix are read and written.

    Attributes
    ----------
    read : callable or None
        `read(file, trust)` returns a model; None if such files are only written.
    write : callable
        `write(model, stream, suffix)`.
    runs_code : bool
        Whether reading can run code.
    explains : bool
        Whether a ValueError of `write` has a message for the user: what is wrong and what to do.
    check : callable or None
        `check(model)` raises ValueError if such a file cannot hold the model, without writing it.
    """

    read: Callable[[Path, bool], Any] | None
    write: Callable[[Any, IO[bytes], str], None]
    runs_code: bool = False
    explains: bool = True
    check: Callable[[Any], None] | None = None


def library_module(package: str) -> Any:
    """Return the adapter module of a library.

    Raises
    ------
    ImportError
        If the library is not installed.
    """
    try:
        return import_module(LIBRARIES[package].module)
    except ImportError as error:
        raise ImportError(
            f"The model needs {package}, which cannot be imported ({error}). "
            f"Run: pip install 'secateur[{LIBRARIES[package].extra}]'"
        ) from error


def reason(error: Exception) -> str:
    """Return an error's type and the first line of its message."""
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0]}" if text else type(error).__name__


def _native_reader(package: str) -> Callable[[Path, bool], Any]:
    """Return the reader of a library's native files; it adds the name of the file to errors about its content."""

    def read(file: Path, trust: bool) -> Any:
        module = library_module(package)
        try:
            return module.load(file)
        except ValueError as error:
            kind = type(error) if isinstance(error, SecateurError) else DamagedFileError
            raise kind(f"{file} cannot be read. {error}") from error

    return read


def _write_native(model: Any, stream: IO[bytes], suffix: str) -> None:
    """Write a model in its library's native format."""
    stream.write(library_module(str(library_of(model))).dump(model, suffix))


def _read_json(file: Path, trust: bool) -> Any:
    """Read a model of XGBoost or CatBoost, distinguished by the top-level keys of the file."""
    return _native_reader(json_package(file))(file, trust)


def json_package(file: Path) -> str:
    """Return the library whose model a .json file contains, according to its top-level keys.

    Raises
    ------
    DamagedFileError
        If it contains no model.
    """
    with file.open("rb") as stream:
        first = re.match(rb'\s*\{\s*"(\w+)"', stream.read(1000))
    names = {first.group(1).decode()} if first else set()
    if not names & (_XGBOOST_KEYS | _CATBOOST_KEYS):
        try:
            names = set(json.loads(file.read_bytes()))
        except (ValueError, TypeError, RecursionError):
            names = set()
    if names & _XGBOOST_KEYS:
        return "xgboost"
    if names & _CATBOOST_KEYS:
        return "catboost"
    raise DamagedFileError(
        f"{file} is neither an XGBoost nor a CatBoost model, the only models saved as .json; it is damaged or has "
        "another content. Save the model again."
    )


def _read_secateur(file: Path, trust: bool) -> Any:
    return load_forest(file)


def _write_secateur(model: Any, stream: IO[bytes], suffix: str) -> None:
    save_forest(adapt(model).forest, stream)


def _check_onnx(model: Any) -> None:
    from secateur.export.onnx import check_onnx

    check_onnx(adapt(model))


def _write_onnx(model: Any, stream: IO[bytes], suffix: str) -> None:
    from secateur.export.onnx import to_onnx

    stream.write(to_onnx(adapt(model)))


def _read_skops(file: Path, trust: bool) -> Any:
    from secateur.files.skops import read_skops

    return read_skops(file, trust=trust)


def _write_skops(model: Any, stream: IO[bytes], suffix: str) -> None:
    from secateur.files.skops_writer import write_skops

    write_skops(model, stream)


def _read_joblib(file: Path, trust: bool) -> Any:
    import joblib

    return _unpickle(file, joblib.load)


def _write_joblib(model: Any, stream: IO[bytes], suffix: str) -> None:
    import joblib

    joblib.dump(model, stream)


def _read_pickle(file: Path, trust: bool) -> Any:
    return _unpickle(file, pickle.load)


def _write_pickle(model: Any, stream: IO[bytes], suffix: str) -> None:
    pickle.dump(model, stream, protocol=5)


def _unpickle(file: Path, load: Callable[[IO[bytes]], Any]) -> Any:
    """Load a file the user trusts; convert any exception to DamagedFileError."""
    with file.open("rb") as stream:
        try:
            return load(stream)
        except Exception as error:
            # Damaged bytes can raise any exception.
            raise DamagedFileError(
                f"{file} cannot be loaded ({reason(error)}); it is damaged, or was written with other versions of "
                "Python or of the model's library. Save the model again with the installed versions."
            ) from error


_PICKLE = Format(_read_pickle, _write_pickle, runs_code=True, explains=False)

FORMATS: dict[str, Format] = {
    ".skops": Format(_read_skops, _write_skops, explains=False),
    ".joblib": Format(_read_joblib, _write_joblib, runs_code=True, explains=False),
    ".pkl": _PICKLE,
    ".pickle": _PICKLE,
    ".json": Format(_read_json, _write_native),
    ".ubj": Format(_native_reader("xgboost"), _write_native),
    ".txt": Format(_native_reader("lightgbm"), _write_native),
    ".cbm": Format(_native_reader("catboost"), _write_native),
    ".onnx": Format(None, _write_onnx, check=_check_onnx),
    ".secateur": Format(_read_secateur, _write_secateur),
}
"""The format of each suffix of a model file. Spark saves folders, which need no suffix."""
