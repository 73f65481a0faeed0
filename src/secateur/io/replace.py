"""Writing files so that nothing is lost: to a temporary name, then renamed; never over an old file unasked."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def replacing(file: str | os.PathLike[str], *, force: bool) -> Iterator[IO[bytes]]:
    """Open a temporary file that becomes `file` when the block ends well and vanishes when it does not.

    Raises
    ------
    FileExistsError
        If `file` is there and `force` is not set.
    """
    target = Path(file)
    check_free(target, force=force)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
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
