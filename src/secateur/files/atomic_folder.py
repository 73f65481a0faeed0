"""Write folders atomically: a new folder is exchanged with the existing one in one step where the system can."""

import ctypes
import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from secateur.files.atomic import check_free, temporary_path

# RENAME_EXCHANGE of renameat2 and RENAME_SWAP of renamex_np.
_SWAP_FLAGS = {"linux": 2, "darwin": 2}
_AT_FDCWD = -100


@contextmanager
def replacing_folder(folder: str | os.PathLike[str], *, force: bool) -> Iterator[Path]:
    """Create a folder that becomes `folder` if the block succeeds and is deleted if it raises.

    On Linux and macOS it is exchanged with an existing folder in one step, so one of the two exists at any time.

    Raises
    ------
    FileExistsError
        If `folder` exists and `force` is not set.
    OSError
        If the parent folder is not writable, or the disk is full. The existing folder is then unchanged.
    """
    target = Path(folder).absolute()
    with temporary_path(target, force=force) as temporary:
        temporary.mkdir(mode=0o700)
        new = temporary / "new"
        new.mkdir()
        yield new
        _sync(new)
        with suppress(OSError):
            shutil.copymode(target, new)
        check_free(target, force=force)
        if not (force and target.exists()):
            # This fails if another process has just created the folder.
            new.rename(target)
        elif not _swap(new, target):
            _replace_in_steps(new, target)


def _sync(folder: Path) -> None:
    """Flush the files of a folder to disk, so that this happens before the folder is renamed."""
    for file in filter(Path.is_file, folder.rglob("*")):
        with file.open("rb") as stream:
            os.fsync(stream.fileno())


def _replace_in_steps(new: Path, target: Path) -> None:
    """Move the existing folder away, rename the new one, and delete the former.

    A process killed in between leaves the former as `.name.….old`, which nothing removes: it may be the only copy.
    """
    old = target.parent / f".{target.name[:40]}.{secrets.token_hex(8)}.old"
    target.rename(old)
    try:
        new.rename(target)
    except BaseException:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _swap(first: Path, second: Path) -> bool:
    """Exchange two names atomically; return False if the system has no such call."""
    flag = _SWAP_FLAGS.get(sys.platform)
    if flag is None:
        return False
    system, names = ctypes.CDLL(None), (os.fsencode(first), os.fsencode(second))
    try:
        if sys.platform == "darwin":
            return bool(system.renamex_np(*names, flag) == 0)
        return bool(system.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], flag) == 0)
    except AttributeError:
        # The C library does not have this function.
        return False
