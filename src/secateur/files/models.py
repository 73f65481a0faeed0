"""Load and save models in the format of the file's suffix; files that can run code need trust."""

import tempfile
from os import PathLike
from pathlib import Path
from typing import IO, Any

from secateur.errors import UnsupportedFileError
from secateur.files.atomic import check_free, replacing
from secateur.files.formats import FORMATS, Format, library_module, reason
from secateur.libraries import LIBRARIES, library_of
from secateur.libraries.fork_safety import one_thread_in_a_fork


def load_model(file: str | PathLike[str], *, trust: bool = False) -> Any:
    """Read a model from a file of any suffix in `secateur.files.formats.FORMATS`, or from a folder saved by Spark.

    Parameters
    ----------
    file : path
    trust : bool
        Whether the file may run code (.joblib, .pkl) or build types that are not known to be harmless (.skops).
        Set it only for files whose origin you know.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    UnsupportedFileError
        If the suffix is unknown, or the file needs trust.
    DamagedFileError
        If the file is damaged.
    ImportError
        If the suffix needs a library that is not installed.
    """
    source = Path(file)
    if source.is_dir() and source.suffix.lower() not in FORMATS:
        return library_module("pyspark").load(source)
    kind = _format_of(source)
    if kind.read is None:
        raise UnsupportedFileError(
            f"{source} is a {source.suffix} file, which secateur writes but does not read. "
            "Pass the model it was exported from, or a file in that model's native format."
        )
    if not source.is_file():
        raise FileNotFoundError(f"There is no file {source}; a model file is needed. Check the name.")
    if kind.runs_code and not trust:
        raise UnsupportedFileError(
            f"{source} is a {source.suffix} file, which can run any code when it is loaded, so it was not opened. "
            "If you trust its origin, pass trust=True (--trust); or save the model as .skops, which needs no trust."
        )
    return kind.read(source, trust)


def save_model(model: Any, file: str | PathLike[str], *, force: bool = False) -> Path:
    """Write a model to a file with a suffix that fits it, or a Spark model to a folder, and return the path.

    Raises
    ------
    FileExistsError
        If the file exists and `force` is not set.
    UnsupportedFileError
        If the suffix is unknown, or the model cannot be written in that format.
    ImportError
        If the suffix needs a library that is not installed.
    """
    target = Path(file)
    package = library_of(model)
    if package is not None and not LIBRARIES[package].threads_survive_fork:
        one_thread_in_a_fork()
    check_model_name(target, model)
    if package is not None and _is_folder(target, model):
        check_free(target, force=force)
        saved: Path = library_module(package).save(model, target, force=force)
        return saved
    with replacing(target, force=force) as stream:
        _write(model, stream, target.suffix.lower())
    return target


def file_size(model: Any, suffix: str) -> int:
    """Return the size in bytes of a model's file, without keeping the file.

    Raises
    ------
    UnsupportedFileError, ImportError
        As `save_model` does.
    """
    check_model_name(f"model{suffix}", model)
    with tempfile.TemporaryFile() as stream:
        _write(model, stream, suffix.lower())
        return stream.seek(0, 2)


def model_suffix(file: str | PathLike[str]) -> str | None:
    """Return the suffix that determines the file format; None for the folder of a Spark model."""
    suffix = Path(file).suffix.lower()
    return suffix if suffix in FORMATS else None


def _write(model: Any, stream: IO[bytes], suffix: str) -> None:
    """Write a model in the format of the suffix; convert unexpected exceptions to UnsupportedFileError."""
    kind = FORMATS[suffix]
    try:
        kind.write(model, stream, suffix)
    except (OSError, ImportError):
        raise
    except Exception as error:
        # Any part of a model may raise any exception when it is serialised.
        if kind.explains and isinstance(error, ValueError | TypeError):
            raise
        others = [other for other in suffixes_for(model) if FORMATS[other] is not kind]
        raise UnsupportedFileError(
            f"This {type(model).__name__} cannot be written as {suffix} ({reason(error)}). "
            f"Use another suffix: {', '.join(others)}."
        ) from error


def check_model_name(file: str | PathLike[str], model: Any = None) -> None:
    """Raise UnsupportedFileError unless the model can be saved under this suffix; called before long work.

    Without a model, only check that the suffix is known.

    Raises
    ------
    UnsupportedFileError
        If the suffix is unknown, or does not fit this model.
    ImportError
        If the suffix needs a library that is not installed.
    """
    target = Path(file)
    if _is_folder(target, model):
        return
    kind = _format_of(target)
    if model is None:
        return
    fitting = suffixes_for(model)
    if target.suffix.lower() in fitting:
        if kind.check is not None:
            kind.check(model)
        return
    owners = [package for package, library in LIBRARIES.items() if target.suffix.lower() in library.suffixes]
    raise UnsupportedFileError(
        f"{target} is a file for models of {' or '.join(owners)}, but this is a {type(model).__name__}. "
        f"Use one of {', '.join(fitting)}{', or a folder' if '' in _own_suffixes(model) else ''}."
    )


def suffixes_for(model: Any) -> list[str]:
    """Return the suffixes of the files a model can be saved in, its library's native formats first."""
    own, native = _own_suffixes(model), {suffix for library in LIBRARIES.values() for suffix in library.suffixes}
    return [*(s for s in FORMATS if s in own), *(s for s in FORMATS if s not in native)]


def _own_suffixes(model: Any) -> tuple[str, ...]:
    """Return the suffixes of the native files of the model's library."""
    package = library_of(model)
    return () if package is None else LIBRARIES[package].suffixes


def _is_folder(target: Path, model: Any) -> bool:
    """Return whether the target is a folder: a Spark model and no known suffix, or without a model no suffix."""
    if model is None:
        return not target.suffix
    return "" in _own_suffixes(model) and target.suffix.lower() not in FORMATS


def _format_of(file: Path) -> Format:
    suffix = file.suffix.lower()
    if suffix not in FORMATS:
        raise UnsupportedFileError(
            f"{file} has {f'the suffix {suffix}' if suffix else 'no suffix'}; a model file ends in "
            f"{', '.join(FORMATS)}, and a Spark model is a folder without a suffix. Use one of these."
        )
    return FORMATS[suffix]
