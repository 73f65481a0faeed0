"""Writing files so that nothing is lost: to a temporary name, then renamed; never over an old file unasked.

A process that is killed leaves its temporary file or folder behind, `.name.….part`. The next writer of the same name
takes it away: a writer holds a lock on its own, so that one nobody holds is nobody's. Where there are no locks it is
taken away when nobody has written to it for an hour.
"""

import ctypes
import errno
import os
import secrets
import shutil
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Literal

fcntl: Any = import_module("fcntl") if os.name == "posix" else None

_SUFFIX = ".part"
_YOUNG = 60.0  # seconds in which a writer may not have taken its lock yet, or be on a machine that does not see ours
_STALE = 3600.0  # seconds without a write, after which no writer is alive
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)
_RENAME_FLAGS = {"new": {"linux": 1, "darwin": 4}, "swap": {"linux": 2, "darwin": 2}}


@contextmanager
def replacing(file: str | os.PathLike[str], *, force: bool) -> Iterator[IO[bytes]]:
    """Open a temporary file that becomes `file` when the block ends well and vanishes when it does not.

    Raises
    ------
    FileExistsError
        If `file` is there and `force` is not set, be it that another process has just written it.
    OSError
        If the folder cannot be written to, or the disk is full. What was there is as it was.
    """
    target = Path(file)
    check_free(target, force=force)
    _sweep(target)
    temporary = _temporary_name(target)
    with _explained(target):
        try:
            with temporary.open("xb") as stream, _held(temporary):
                _take_mode(temporary, target)
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
                if os.name == "posix":
                    _give_name(temporary, target, force=force)  # while it is still held
            if os.name != "posix":
                _give_name(temporary, target, force=force)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


@contextmanager
def replacing_folder(folder: str | os.PathLike[str], *, force: bool) -> Iterator[Path]:
    """Make a folder that becomes `folder` when the block ends well and vanishes when it does not.

    It changes places with an old one in one step on Linux and macOS, so that there is no moment without either.

    Raises
    ------
    FileExistsError
        If `folder` is there and `force` is not set, be it that another process has just written it.
    OSError
        If the folder around it cannot be written to, or the disk is full. What was there is as it was.
    """
    target = Path(folder).absolute()
    check_free(target, force=force)
    _sweep(target)
    temporary = _temporary_name(target)
    new, old = temporary / "new", temporary / "old"
    with _explained(Path(folder)):
        try:
            temporary.mkdir(mode=0o700)
            with _held(temporary):
                new.mkdir()
                yield new
                _sync(new)
                _take_mode(new, target)
                _give_folder_name(new, target, old, force=force)
        finally:
            if target.exists() or not old.exists():  # else it is the only copy
                shutil.rmtree(temporary, ignore_errors=True)


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
    """Say what a full disk or a refusal means, in whose stead systems have a number and three words."""
    try:
        yield
    except OSError as error:
        if error.errno not in (*_FULL, *_REFUSED):
            raise
        remedy = "Make room" if error.errno in _FULL else "Change the permissions of it and of its folder"
        raise OSError(
            error.errno,
            f"{target} was not written: {os.strerror(error.errno).lower()}. What was there is as it was. "
            f"{remedy}, or choose another folder.",
        ) from error


def _prefix(target: Path) -> str:
    """Return how temporary names for a target begin; cut, as names may have 255 bytes at most."""
    return f".{target.name[:40]}."


def _temporary_name(target: Path) -> Path:
    return target.parent / f"{_prefix(target)}{secrets.token_hex(8)}{_SUFFIX}"


def _take_mode(new: Path, old: Path) -> None:
    """Let what was private stay private; a new file has the permissions the system gives to new files."""
    with suppress(OSError):
        if old.exists():
            new.chmod(stat.S_IMODE(old.stat().st_mode) & 0o777)


def _sync(folder: Path) -> None:
    """Let the files of a folder be on the disk before the folder has its name."""
    for file in filter(Path.is_file, folder.rglob("*")):
        with file.open("rb") as stream:
            os.fsync(stream.fileno())


def _give_name(temporary: Path, target: Path, *, force: bool) -> None:
    """Rename, and without `force` never over what another process has put there meanwhile."""
    if force or not _rename(temporary, target, "new"):
        check_free(target, force=force)
        temporary.replace(target)


def _give_folder_name(new: Path, target: Path, old: Path, *, force: bool) -> None:
    """Rename a folder, or let it change places; where there is no such step, by way of `old`."""
    if _rename(new, target, "new"):
        return
    check_free(target, force=force)
    if force and _rename(new, target, "swap"):
        return
    if target.exists():
        target.rename(old)
    try:
        new.rename(target)
    except BaseException:
        if old.exists():
            old.rename(target)
        raise


@contextmanager
def _held(path: Path) -> Iterator[None]:
    """Hold the lock that tells others that a file or folder is being written."""
    if fcntl is None:
        yield
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def _is_held(path: Path) -> bool | None:
    """Return whether a process holds it; None if that cannot be known."""
    if fcntl is None:
        return None
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)  # whatever somebody may have put there
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    except OSError:
        return None
    finally:
        os.close(handle)


def _sweep(target: Path) -> None:
    """Remove what killed writers of this name left behind, unless it is the only copy of a folder."""
    try:
        names = os.listdir(target.parent)
    except OSError:  # one may be allowed to write to a folder and not to look into it
        return
    for name in names:
        left = target.parent / name
        if not (name.startswith(_prefix(target)) and name.endswith(_SUFFIX)):
            continue
        with suppress(OSError):  # another writer was quicker, or it is not ours to remove
            if _may_be_alive(left) or ((left / "old").exists() and not target.exists()):
                continue
            shutil.rmtree(left) if left.is_dir() else left.unlink()


def _may_be_alive(left: Path) -> bool:
    age = time.time() - left.lstat().st_mtime
    held = _is_held(left)
    return age < _STALE if held is None else held or age < _YOUNG


def _rename(first: Path, second: Path, how: Literal["new", "swap"]) -> bool:
    """Rename to a name that is new, or let two change places, in one step; return whether that was done.

    It is not where the system has no such step, and where the other name is there, or is not.
    """
    flag = _RENAME_FLAGS[how].get(sys.platform)
    if flag is None:
        return False
    system, names = ctypes.CDLL(None), (os.fsencode(first), os.fsencode(second))
    try:
        if sys.platform == "darwin":
            return bool(system.renamex_np(*names, flag) == 0)
        here = -100  # AT_FDCWD
        return bool(system.renameat2(here, names[0], here, names[1], flag) == 0)
    except AttributeError:  # a C library without it
        return False
