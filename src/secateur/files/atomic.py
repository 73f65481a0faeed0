"""Write files atomically: under a temporary name that is renamed; existing ones only with `force`.

A killed process leaves its temporary file `.name.….part` behind; a later writer of the same name removes it.
"""

import errno
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

_SUFFIX = ".part"
# Seconds without a write after which the writer of a temporary file counts as killed.
_ABANDONED_AFTER = 3600.0
_REMEDIES = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "Free disk space"),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "Change its permissions and those of its folder"),
}


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
    with temporary_path(target, force=force) as temporary:
        with temporary.open("xb") as stream:
            with suppress(OSError):
                shutil.copymode(target, temporary)
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        _rename_to(temporary, target, force=force)


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
def temporary_path(target: Path, *, force: bool) -> Iterator[Path]:
    """Yield an unused name beside `target`, and remove it afterwards; a disk error names `target` and a remedy."""
    check_free(target, force=force)
    # Names are limited to 255 bytes.
    prefix = f".{target.name[:40]}."
    _remove_abandoned(target.parent, prefix)
    temporary = target.parent / f"{prefix}{secrets.token_hex(8)}{_SUFFIX}"
    try:
        yield temporary
    except OSError as error:
        if error.errno not in _REMEDIES:
            raise
        raise OSError(
            error.errno,
            f"{target} was not written: {os.strerror(error.errno).lower()}. Existing files are unchanged. "
            f"{_REMEDIES[error.errno]}, or choose another folder.",
        ) from error
    finally:
        _remove(temporary)


def _rename_to(temporary: Path, target: Path, *, force: bool) -> None:
    """Rename; without `force`, never overwrite a file that another process has created meanwhile."""
    if not force:
        try:
            os.link(temporary, target)
            return
        except OSError:
            # The name is taken, or the file system has no hard links.
            check_free(target, force=False)
    temporary.replace(target)


def _remove_abandoned(folder: Path, prefix: str) -> None:
    """Remove what killed writers of this name left behind."""
    # A folder can be writable but not readable, and another writer may remove the same file.
    with suppress(OSError):
        for path in folder.iterdir():
            is_temporary = path.name.startswith(prefix) and path.name.endswith(_SUFFIX)
            if is_temporary and time.time() - path.lstat().st_mtime > _ABANDONED_AFTER:
                _remove(path)


def _remove(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
