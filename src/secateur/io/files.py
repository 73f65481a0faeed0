"""Model files: the suffix says how a model is read and written; nothing runs code unless trusted to."""

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import IO, Any

from secateur.io.replace import replacing


def load_model(file: str | PathLike[str], *, trust: bool = False) -> Any:
    """Read a model from a .skops, .joblib, .pkl or .pickle file.

    Parameters
    ----------
    file : path
    trust : bool
        Whether the file may run code (.joblib, .pkl) or build types that are not known to be harmless (.skops).
        Set it only for files whose origin you know.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the suffix is unknown, the file needs trust, or it is damaged.
    ImportError
        If the suffix needs a library that is not installed.
    """
    source = Path(file)
    kind = _format_of(source)
    if not source.is_file():
        raise FileNotFoundError(f"There is no file {source}; a model file is needed. Check the name.")
    if kind.runs_code and not trust:
        raise ValueError(
            f"{source} is a {source.suffix} file, which can run any code when it is loaded, so it was not opened. "
            "If you know where it comes from, pass trust=True (--trust); or save the model as .skops, which needs none."
        )
    return kind.read(source, trust)


def save_model(model: Any, file: str | PathLike[str], *, force: bool = False) -> Path:
    """Write a model to a .skops, .joblib, .pkl or .pickle file and return where it is.

    Raises
    ------
    FileExistsError
        If the file is there and `force` is not set.
    ValueError
        If the suffix is unknown, or the model cannot be written that way.
    ImportError
        If the suffix needs a library that is not installed.
    """
    target = Path(file)
    kind = _format_of(target)
    with replacing(target, force=force) as stream:
        try:
            kind.write(model, stream)
        except (OSError, ImportError):
            raise
        except Exception as error:  # whatever a part of the model raises when it is asked for its state
            raise ValueError(
                f"This {type(model).__name__} cannot be written as {target.suffix} ({_reason(error)}). "
                f"Use another suffix: {', '.join(suffix for suffix in FORMATS if FORMATS[suffix] is not kind)}."
            ) from error
    return target


def check_model_name(file: str | PathLike[str]) -> None:
    """Raise ValueError unless the suffix is one a model can be saved under: asked before long work."""
    _format_of(Path(file))


def _read_skops(file: Path, trust: bool) -> Any:
    from secateur.io.skops import read_skops

    return read_skops(file, trust=trust)


def _write_skops(model: Any, stream: IO[bytes]) -> None:
    from secateur.io.skops import write_skops

    write_skops(model, stream)


def _read_joblib(file: Path, trust: bool) -> Any:
    import joblib

    return _unpickle(file, joblib.load)


def _write_joblib(model: Any, stream: IO[bytes]) -> None:
    import joblib

    joblib.dump(model, stream)


def _read_pickle(file: Path, trust: bool) -> Any:
    return _unpickle(file, pickle.load)


def _write_pickle(model: Any, stream: IO[bytes]) -> None:
    pickle.dump(model, stream, protocol=5)


@dataclass(frozen=True)
class _Format:
    """How files of one suffix are read and written, and whether reading can run code."""

    read: Callable[[Path, bool], Any]
    write: Callable[[Any, IO[bytes]], None]
    runs_code: bool


_PICKLE = _Format(_read_pickle, _write_pickle, runs_code=True)

FORMATS: dict[str, _Format] = {
    ".skops": _Format(_read_skops, _write_skops, runs_code=False),
    ".joblib": _Format(_read_joblib, _write_joblib, runs_code=True),
    ".pkl": _PICKLE,
    ".pickle": _PICKLE,
}
"""Each suffix of a model file and what to do with it."""


def _format_of(file: Path) -> _Format:
    suffix = file.suffix.lower()
    if suffix not in FORMATS:
        raise ValueError(
            f"{file} has {f'the suffix {suffix}' if suffix else 'no suffix'}; a model file ends in "
            f"{', '.join(FORMATS)}. Use one of these."
        )
    return FORMATS[suffix]


def _unpickle(file: Path, load: Callable[[IO[bytes]], Any]) -> Any:
    """Load a file the user trusts; whatever goes wrong is told in one sentence."""
    with file.open("rb") as stream:
        try:
            return load(stream)
        except Exception as error:  # damaged bytes can raise anything
            raise ValueError(
                f"{file} cannot be loaded ({_reason(error)}); it is damaged, or was written with other versions of "
                "Python or of the model's library. Save the model again with the versions installed here."
            ) from error


def _reason(error: Exception) -> str:
    """Return an error's name and the first line of what it says."""
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0]}" if text else type(error).__name__
