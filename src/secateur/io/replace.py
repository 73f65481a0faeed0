"""Writing files so that nothing is lost: to a temporary name, then renamed; never over an old file unasked.

A process that is killed leaves its temporary file or folder behind, `.name.….part`. The next writer of the same name
takes away those that nobody has written to for an hour.
"""

import ctypes
import errno
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

_SUFFIX = ".part"
_STALE = 3600.0  # seconds without a write, after which no writer is alive
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def replacing(file: str | os.PathLike[str], *, force: bool) -> Iterator[IO[bytes]]:
    """Open a temporary file that becomes `file` when the block ends well and vanishes when it does not.

    Raises
    ------
    FileExistsError
        If `file` is there and `force` is not set.
    OSError
        If the folder cannot be written to, or the disk is full. What was there is as it was.
    """
    target = Path(file)
    check_free(target, force=force)
    _sweep(target)
    with _explained(target):
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=_prefix(target), suffix=_SUFFIX)
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            umask = os.umask(0)
            os.umask(umask)
            temporary.chmod(0o666 & ~umask)  # mkstemp makes files only their owner can read
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


@contextmanager
def replacing_folder(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Make a folder that takes the place of `folder`, if there is one, when the block ends well.

    It changes places with the old one in one step on Linux and macOS, so that there is no moment without either.

    Raises
    ------
    OSError
        If the folder around it cannot be written to, or the disk is full. What was there is as it was.
    """
    target = Path(folder).absolute()
    _sweep(target)
    with (
        _explained(Path(folder)),
        tempfile.TemporaryDirectory(dir=target.parent, prefix=_prefix(target), suffix=_SUFFIX) as temporary,
    ):
        new, old = Path(temporary) / "new", Path(temporary) / "old"
        new.mkdir()
        yield new
        for file in filter(Path.is_file, new.rglob("*")):
            with file.open("rb") as stream:
                os.fsync(stream.fileno())
        if not target.exists():
            new.rename(target)
        elif not _swap(new, target):
            target.rename(old)
            try:
                new.rename(target)
            except BaseException:
                old.rename(target)
                raise


def check_free(target: str | os.PathLike[str], *, force: bool) -> None:
    """Raise an error unless `target` may be written: asked before long work, and again when writing."""
    target = Path(target)
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"The folder {target.parent} does not exist; {target.name} goes there. Create it first."
        )
    if target.exists() and not force:
        raise FileExistsError(
            f"{target} exists and would be overwritten. Choose another name, or pass force=True (--force)."
        )
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise PermissionError(
            f"The folder {target.parent} cannot be written to; {target.name} goes there. "
            "Choose another folder, or change its permissions."
        )


@contextmanager
def _explained(target: Path) -> Iterator[None]:
    """Say what a full disk means, in whose stead systems have a number and three words."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise OSError(
            error.errno,
            f"{target} was not written: {os.strerror(error.errno).lower()}. What was there is as it was. "
            "Make room, or choose another folder.",
        ) from error


def _prefix(target: Path) -> str:
    """Return how temporary names for a target begin; cut, as names may have 255 bytes at most."""
    return f".{target.name[:40]}."


def _sweep(target: Path) -> None:
    """Remove what killed writers of this name left behind long ago, unless it may be the only copy of a folder."""
    for left in target.parent.iterdir():
        if not (left.name.startswith(_prefix(target)) and left.name.endswith(_SUFFIX)):
            continue
        with suppress(OSError):  # another writer was quicker, or it is not ours to remove
            if time.time() - left.stat().st_mtime < _STALE or (left / "old").exists():
                continue
            shutil.rmtree(left) if left.is_dir() else left.unlink()


def _swap(first: Path, second: Path) -> bool:
    """Let two folders change places in one step, and return whether this system could."""
    if os.name != "posix":
        return False
    system, names = ctypes.CDLL(None), (os.fsencode(first), os.fsencode(second))
    try:
        if sys.platform == "darwin":
            return bool(system.renamex_np(*names, 2) == 0)
        here = -100  # AT_FDCWD
        return bool(system.renameat2(here, names[0], here, names[1], 2) == 0)
    except AttributeError:  # a C library without it
        return False
