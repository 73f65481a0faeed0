"""Cache compiled kernels on disk, in one folder per user that all checkouts and environments share.

numba's default cache has four problems. It is next to the source file, so every checkout compiles again. It raises an
error if no folder is writable, if the disk is full, or if a file is truncated. It reuses stale code if only a kernel
imported from another file has changed, or if a process was killed between writing the index and the code. Two processes
that compile for different types at the same time can swap their code.

Here the file name contains a digest of the sources, and the stored code records its sources and types. Any fault of the
cache costs a compilation, never a wrong result.
"""

import hashlib
import logging
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.resources import files
from typing import Any

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile
from numba.misc.appdirs import AppDirs

from secateur.kernels._signals import signals_delayed

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_LOG = logging.getLogger("secateur")
_COMPILED_NOW: list[Any] = []
"""The caches of the kernels that this process is compiling, because they were not on disk."""
_LOCKED: set[str] = set()
"""Paths of the locks that this process holds: compiling a kernel may compile it for further types."""


def enable_disk_cache(dispatcher: Any) -> None:
    """Cache a compiled function on disk for later processes, if a folder is writable."""
    try:
        dispatcher._cache = _Cache(dispatcher.py_func)
    # Neither the user's cache folder nor the folder of the source is writable.
    except (RuntimeError, OSError):
        _warn_no_cache_folder()


def cache_folder() -> str:
    """Return the cache folder: below `NUMBA_CACHE_DIR` or the user's cache folder, one per version of numba."""
    config: Any = numba.config
    top = config.CACHE_DIR or os.path.join(AppDirs(appname="secateur", appauthor=False).user_cache_dir, "kernels")
    checked = "-boundscheck" if config.BOUNDSCHECK else ""
    return os.path.join(top, f"numba-{numba.__version__}{checked}")


@contextmanager
def compile_lock(cache: Any) -> Iterator[None]:
    """Lock a kernel's file, so that one process compiles it while the others wait and then load it from disk.

    The caller must hold numba's compiler lock, so that only one thread per process is here. A kernel compiles the
    kernels it calls while it holds its own lock; calls have no cycles, so there is no deadlock. The lock of a process
    that dies is released. Without file locks, two processes may compile the same kernel, which only costs time.
    """
    path = getattr(cache, "lock_path", None)
    if fcntl is None or path is None or path in _LOCKED:
        yield
        return
    try:
        stream = open(path, "ab")  # noqa: SIM115
    except OSError:
        yield
        return
    with stream:
        _LOCKED.add(path)
        try:
            # Some network file systems do not support locks.
            with suppress(OSError):
                fcntl.flock(stream, fcntl.LOCK_EX)
            yield
        finally:
            _LOCKED.discard(path)
            # Closing the file is not enough: a process forked in the meantime may have it open.
            with suppress(OSError):
                fcntl.flock(stream, fcntl.LOCK_UN)


def are_compiling() -> bool:
    """Return whether this process is compiling a kernel."""
    return bool(_COMPILED_NOW)


@contextmanager
def compiling(cache: Any) -> Iterator[None]:
    """Note that a kernel is being compiled, unless its cache finds it on disk."""
    before = len(_COMPILED_NOW)
    if not isinstance(cache, _Cache):
        _COMPILED_NOW.append(cache)
    try:
        yield
    finally:
        del _COMPILED_NOW[before:]


@cache
def source_digest(module: str) -> str:
    """Return the digest of a kernel module and of all kernel modules it imports, directly or indirectly."""
    texts = "".join(text for _, text in sorted(_source_texts(module, {}).items()))
    return hashlib.sha256(texts.encode()).hexdigest()


class _SharedLocator:
    """Locate the files of all kernels in one folder, independent of the path of the source.

    numba calls `from_function` of its locators in turn and takes the first that does not return None.
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
        # An existing folder may be read-only.
        tempfile.TemporaryFile(dir=cache_folder()).close()

    def get_cache_path(self) -> str:
        return cache_folder()

    def get_source_stamp(self) -> str:
        return self.digest

    def get_disambiguator(self) -> str:
        return self.digest[:16]


class _CacheImpl(CompileResultCacheImpl):
    """Serialise a compiled function: the digest of its sources and its code, which records the argument types."""

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
    """Cache compiled code and fall back to compiling whenever the cache fails."""

    _impl_class = _CacheImpl

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._cache_file = IndexDataCacheFile(self._cache_path, self._impl.filename_base, self._impl.stamp)
        self.lock_path = os.path.join(self._cache_path, f"{self._impl.filename_base}.lock")

    def load_overload(self, signature: Any, context: Any) -> Any:
        try:
            with signals_delayed():
                found = super().load_overload(signature, context)
        # Damaged bytes can raise any exception.
        except Exception as error:
            _LOG.info("Cannot read the cached code of %s (%r); compiling it again.", self._name, error)
            # Without a flush nothing can be added to the unreadable index.
            with suppress(Exception):
                self.flush()
            return None
        if found is not None and _fits(found, signature):
            return found
        _COMPILED_NOW.append(self)
        return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        try:
            super().save_overload(signature, compiled)
        except Exception as error:
            _LOG.info("Cannot cache the compiled code of %s (%r); later processes compile it again.", self._name, error)


def _digest(function: Any) -> str:
    return source_digest(function.__module__.removeprefix(f"{__package__}."))


def _fits(compiled: Any, signature: Any) -> bool:
    """Return whether compiled code has the given argument types; concurrent processes may write to one file."""
    expected = signature if isinstance(signature, tuple) else signature.args
    return bool(tuple(compiled.signature.args) == tuple(expected))


def _source_texts(module: str, found: dict[str, str]) -> dict[str, str]:
    if module not in found:
        file = files(__package__).joinpath(*module.split(".")[:-1], f"{module.rpartition('.')[2]}.py")
        found[module] = file.read_text(encoding="utf-8")
        for other in re.findall(rf"^from {re.escape(__package__)}\.([\w.]+) import", found[module], re.MULTILINE):
            _source_texts(other, found)
    return found


@cache
def _warn_no_cache_folder() -> None:
    _LOG.warning(
        "No folder for compiled kernels is writable, so every process compiles them again, which takes seconds. "
        "Set NUMBA_CACHE_DIR to a writable folder."
    )
