"""Write files and folders atomically: under a temporary name that is renamed; existing ones only with `force`.

A killed process leaves its temporary file or folder `.name.….part` behind. The next writer of the same name removes it:
a writer holds a lock on its temporary file, so an unlocked one is abandoned. On systems without locks it is removed
after an hour without a write.
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
# Age in seconds up to which a temporary file is never removed: its writer may not hold the lock yet, or may run on a
# machine whose locks are not visible here.
_YOUNG = 60.0
# Age in seconds after which a temporary file is abandoned, on systems without locks.
_STALE = 3600.0
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NOT_PERMITTED = (errno.EACCES, errno.EPERM, errno.EROFS)
_RENAME_FLAGS = {"new": {"linux": 1, "darwin": 4}, "swap": {"linux": 2, "darwin": 2}}


@contextmanager
def replacing(file: str | os.PathLike[str], *, force: bool) -> Iterator[IO[bytes]]:
    """Open a temporary file that becomes `file` if the block succeeds and is deleted if it raises.

    Raises
    ------
    FileExistsError
        If `file` exists and `force` is not set, even if another process has just created it.
    OSError
        If the folder is not writable, or the disk is full. The existing file is then unchanged.
    """
    target = Path(file)
    check_free(target, force=force)
    _remove_abandoned(target)
    temporary = _temporary_name(target)
    with _with_remedy(target):
        try:
            with temporary.open("xb") as stream, _locked(temporary):
                _copy_mode(temporary, target)
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
                if os.name == "posix":
                    # Rename before the lock is released.
                    _rename_to(temporary, target, force=force)
            if os.name != "posix":
                _rename_to(temporary, target, force=force)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


@contextmanager
def replacing_folder(folder: str | os.PathLike[str], *, force: bool) -> Iterator[Path]:
    """Create a folder that becomes `folder` if the block succeeds and is deleted if it raises.

    On Linux and macOS it is exchanged with an existing folder in one step, so one of the two exists at any time.

    Raises
    ------
    FileExistsError
        If `folder` exists and `force` is not set, even if another process has just created it.
    OSError
        If the parent folder is not writable, or the disk is full. The existing folder is then unchanged.
    """
    target = Path(folder).absolute()
    check_free(target, force=force)
    _remove_abandoned(target)
    temporary = _temporary_name(target)
    new, old = temporary / "new", temporary / "old"
    with _with_remedy(Path(folder)):
        try:
            temporary.mkdir(mode=0o700)
            with _locked(temporary):
                new.mkdir()
                yield new
                _sync(new)
                _copy_mode(new, target)
                _rename_folder_to(new, target, old, force=force)
        finally:
            # Otherwise `old` is the only copy of the folder.
            if target.exists() or not old.exists():
                shutil.rmtree(temporary, ignore_errors=True)


def check_free(target: str | os.PathLike[str], *, force: bool) -> None:
    """Raise an error unless `target` may be written; called before long work, and again when writing.

    Raises
    ------
    FileNotFoundError, FileExistsError, PermissionError
        If the parent folder does not exist, `target` exists and `force` is not set, or the folder is not writable.
    """
    target = Path(target)
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"The folder {target.parent} does not exist, so {target.name} cannot be written there. Create it first."
        )
    if target.exists() and not force:
        raise FileExistsError(
            f"{target} exists and would be overwritten. Choose another name, or pass force=True (--force)."
        )
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise PermissionError(
            f"The folder {target.parent} is not writable, so {target.name} cannot be written there. "
            "Choose another folder, or change its permissions."
        )


@contextmanager
def _with_remedy(target: Path) -> Iterator[None]:
    """Convert an OSError for a full disk or missing permissions to one that explains what to do."""
    try:
        yield
    except OSError as error:
        if error.errno not in (*_DISK_FULL, *_NOT_PERMITTED):
            raise
        remedy = "Free disk space" if error.errno in _DISK_FULL else "Change its permissions and those of its folder"
        raise OSError(
            error.errno,
            f"{target} was not written: {os.strerror(error.errno).lower()}. Existing files are unchanged. "
            f"{remedy}, or choose another folder.",
        ) from error


def _prefix(target: Path) -> str:
    """Return the prefix of temporary names of a target, truncated because names are limited to 255 bytes."""
    return f".{target.name[:40]}."


def _temporary_name(target: Path) -> Path:
    return target.parent / f"{_prefix(target)}{secrets.token_hex(8)}{_SUFFIX}"


def _copy_mode(new: Path, old: Path) -> None:
    """Copy the permissions of an existing file to the new one; without one, keep the system's default."""
    with suppress(OSError):
        if old.exists():
            new.chmod(stat.S_IMODE(old.stat().st_mode) & 0o777)


def _sync(folder: Path) -> None:
    """Flush the files of a folder to disk, so that this happens before the folder is renamed."""
    for file in filter(Path.is_file, folder.rglob("*")):
        with file.open("rb") as stream:
            os.fsync(stream.fileno())


def _rename_to(temporary: Path, target: Path, *, force: bool) -> None:
    """Rename; without `force`, never overwrite a file that another process has created meanwhile."""
    if force or not _rename(temporary, target, "new"):
        check_free(target, force=force)
        temporary.replace(target)


def _rename_folder_to(new: Path, target: Path, old: Path, *, force: bool) -> None:
    """Rename a folder, or exchange it with the existing one; without an atomic exchange, move that one to `old`."""
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
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock that marks a file or folder as being written."""
    if fcntl is None:
        yield
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        # The file system may not support locks.
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def _is_locked(path: Path) -> bool | None:
    """Return whether a process holds the lock; None if that cannot be determined."""
    if fcntl is None:
        return None
    # The path may be a FIFO or a symbolic link that someone else has created.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    except OSError:
        return None
    finally:
        os.close(handle)


def _remove_abandoned(target: Path) -> None:
    """Remove what killed writers of this name left behind, unless it is the only copy of a folder."""
    try:
        names = os.listdir(target.parent)
    except OSError:
        # A folder can be writable but not readable.
        return
    for name in names:
        leftover = target.parent / name
        if not (name.startswith(_prefix(target)) and name.endswith(_SUFFIX)):
            continue
        # Another writer has removed it already, or the permissions forbid it.
        with suppress(OSError):
            if _has_writer(leftover) or ((leftover / "old").exists() and not target.exists()):
                continue
            shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()


def _has_writer(leftover: Path) -> bool:
    """Return whether a process may still be writing a temporary file or folder."""
    age = time.time() - leftover.lstat().st_mtime
    locked = _is_locked(leftover)
    return age < _STALE if locked is None else locked or age < _YOUNG


def _rename(first: Path, second: Path, mode: Literal["new", "swap"]) -> bool:
    """Rename to a new name, or exchange two names, atomically; return whether that was done.

    It is not done if the system has no such call, if the new name exists, or if the name to exchange does not.
    """
    flag = _RENAME_FLAGS[mode].get(sys.platform)
    if flag is None:
        return False
    system, names = ctypes.CDLL(None), (os.fsencode(first), os.fsencode(second))
    try:
        if sys.platform == "darwin":
            return bool(system.renamex_np(*names, flag) == 0)
        at_cwd = -100  # AT_FDCWD
        return bool(system.renameat2(at_cwd, names[0], at_cwd, names[1], flag) == 0)
    except AttributeError:
        # The C library does not have this function.
        return False
