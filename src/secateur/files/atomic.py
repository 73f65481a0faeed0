"""Write files atomically: under a temporary name that is renamed; existing ones only with `force`."""

import errno
import glob
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

_REMEDIES = dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "Free disk space")
_REMEDIES |= dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "Change its permissions and those of its folder")


@contextmanager
def replacing(file: str | os.PathLike[str], *, force: bool) -> Iterator[IO[bytes]]:
    """Open a temporary file that becomes `file` if the block succeeds and is deleted if it raises.

    Raises the errors of `check_free`, also at the end, and OSError for a full disk. An existing file is then unchanged.
    """
    with temporary_path(Path(file), force=force) as temporary:
        with temporary.open("xb") as stream:
            with suppress(OSError):
                shutil.copymode(file, temporary)
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        _rename_to(temporary, Path(file), force=force)


def check_free(target: str | os.PathLike[str], *, force: bool) -> None:
    """Raise FileNotFoundError, FileExistsError or PermissionError unless `target` may be written, before long work."""
    path, hence = Path(target), f"so {Path(target).name} cannot be written there."
    if not path.parent.is_dir():
        raise FileNotFoundError(f"The folder {path.parent} does not exist, {hence} Create it first.")
    if path.exists() and not force:
        remedy = "Choose another name, or pass force=True (--force)."
        raise FileExistsError(f"{path} exists and would be overwritten. {remedy}")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        remedy = "Choose another folder, or change its permissions."
        raise PermissionError(f"The folder {path.parent} is not writable, {hence} {remedy}")


@contextmanager
def temporary_path(target: Path, *, force: bool) -> Iterator[Path]:
    """Yield an unused name beside `target`, and remove it afterwards; a disk error names `target` and a remedy."""
    check_free(target, force=force)
    # Names are limited to 255 bytes.
    prefix = f".{target.name[:40]}."
    temporary = target.with_name(f"{prefix}{os.urandom(8).hex()}.part")
    try:
        yield temporary
    except OSError as error:
        if error.errno not in _REMEDIES:
            raise
        found = f"{os.strerror(error.errno).lower()}. Existing files are unchanged. {_REMEDIES[error.errno]}"
        raise OSError(error.errno, f"{target} was not written: {found}, or choose another folder.") from error
    finally:
        _remove(temporary, prefix)


def _rename_to(temporary: Path, target: Path, *, force: bool) -> None:
    """Rename; without `force`, never overwrite a file that another process has created meanwhile."""
    try:
        (os.replace if force else os.link)(temporary, target)
    except OSError:
        # The name is taken, or the file system has no hard links.
        check_free(target, force=force)
        temporary.replace(target)


def _remove(temporary: Path, prefix: str) -> None:
    """Remove a temporary file or folder, and those of the same target whose writer was killed over an hour ago."""
    for path in (temporary, *temporary.parent.glob(f"{glob.escape(prefix)}*.part")):
        # Another writer may remove the same path.
        with suppress(OSError):
            if path == temporary or time.time() - path.lstat().st_mtime > 3600:
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink()
