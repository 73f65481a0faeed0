"""Keep compiled kernels on disk, in one folder per user that every checkout and environment shares.

numba's own cache lies beside the source file, so every checkout compiles again. It raises an error where no folder can
be written to, where the disk is full, and where a file was cut short. It reuses code of an earlier version where only
a kernel imported from another file has changed, or where a process was killed between writing the index and the code;
and two processes that compile at once for different types can give the code of one to the other. Here a file's name
has a digest of the sources it was compiled from, and the code says which sources and types it is for. Whatever is wrong
with the cache costs the time to compile again, never an answer.
"""

import hashlib
import logging
import os
import re
import tempfile
from contextlib import suppress
from functools import cache
from importlib.resources import files
from typing import Any

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile
from numba.misc.appdirs import AppDirs

from secateur.kernels._signals import held_back

_LOG = logging.getLogger("secateur")


def keep_on_disk(dispatcher: Any) -> None:
    """Let a compiled function be found by later processes, where there is a folder for it."""
    try:
        dispatcher._cache = _Cache(dispatcher.py_func)
    except (RuntimeError, OSError):  # neither the user's cache folder nor the one of the source can be written to
        _tell_of_no_folder()


def cache_folder() -> str:
    """Return where compiled kernels are kept: `NUMBA_CACHE_DIR` or the user's cache folder, by version of numba."""
    config: Any = numba.config
    top = config.CACHE_DIR or os.path.join(AppDirs(appname="secateur", appauthor=False).user_cache_dir, "kernels")
    checked = "-boundscheck" if config.BOUNDSCHECK else ""
    return os.path.join(top, f"numba-{numba.__version__}{checked}")


@cache
def sources(module: str) -> str:
    """Return a digest of a module of kernels and of all modules of kernels it imports from."""
    texts = "".join(text for _, text in sorted(_texts(module, {}).items()))
    return hashlib.sha256(texts.encode()).hexdigest()


class _SharedLocator:
    """Places the files of all kernels in one folder, whatever the path of the source.

    numba asks its locators in turn `from_function`, and takes the first that has a folder.
    """

    def __init__(self, digest: str) -> None:
        self.digest = digest

    @classmethod
    def from_function(cls, function: Any, file: str) -> "_SharedLocator | None":
        locator = cls(_digest(function))
        try:
            locator.ensure_cache_path()
        except OSError:
            return None
        return locator

    def ensure_cache_path(self) -> None:
        os.makedirs(cache_folder(), exist_ok=True)
        tempfile.TemporaryFile(dir=cache_folder()).close()  # a folder may be there and not be written to

    def get_cache_path(self) -> str:
        return cache_folder()

    def get_source_stamp(self) -> str:
        return self.digest

    def get_disambiguator(self) -> str:
        return self.digest[:16]


class _Made(CompileResultCacheImpl):
    """What is written of a compiled function: its sources and its code, which says what types it takes."""

    _locator_classes: Any = (_SharedLocator, *CompileResultCacheImpl._locator_classes)

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self.stamp = _digest(function)

    def reduce(self, compiled: Any) -> Any:
        return self.stamp, super().reduce(compiled)

    def rebuild(self, context: Any, payload: Any) -> Any:
        stamp, code = payload
        return super().rebuild(context, code) if stamp == self.stamp else None


class _Cache(FunctionCache):
    """A cache that is left alone when it fails."""

    _impl_class = _Made

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._cache_file = IndexDataCacheFile(self._cache_path, self._impl.filename_base, self._impl.stamp)

    def load_overload(self, signature: Any, context: Any) -> Any:
        try:
            with held_back():
                found = super().load_overload(signature, context)
        except Exception as error:  # damaged bytes can raise anything
            _LOG.info("%s is compiled anew: its cache cannot be read (%r)", self._name, error)
            with suppress(Exception):
                self.flush()  # or nothing could be added to an index that cannot be read
            return None
        return found if found is not None and _fits(found, signature) else None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        try:
            super().save_overload(signature, compiled)
        except Exception as error:
            _LOG.info("%s is not kept for later: its cache cannot be written (%r)", self._name, error)


def _digest(function: Any) -> str:
    return sources(function.__module__.removeprefix(f"{__package__}."))


def _fits(compiled: Any, signature: Any) -> bool:
    """Return whether compiled code takes these types: two that compiled at once may have written to one file."""
    taken = signature if isinstance(signature, tuple) else signature.args
    return bool(tuple(compiled.signature.args) == tuple(taken))


def _texts(module: str, found: dict[str, str]) -> dict[str, str]:
    if module not in found:
        file = files(__package__).joinpath(*module.split(".")[:-1], f"{module.rpartition('.')[2]}.py")
        found[module] = file.read_text(encoding="utf-8")
        for other in re.findall(rf"^from {re.escape(__package__)}\.([\w.]+) import", found[module], re.MULTILINE):
            _texts(other, found)
    return found


@cache
def _tell_of_no_folder() -> None:
    _LOG.warning(
        "No folder can be written to that keeps compiled code, so every process compiles anew, which takes seconds. "
        "Set NUMBA_CACHE_DIR to one that can."
    )
