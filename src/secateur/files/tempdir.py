"""A folder for what a library reads or writes only as a file, and what is said where there is no room for one."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Give an empty folder, and remove it in the end.

    Raises
    ------
    OSError
        If it cannot be made, or a file in it cannot be written.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="secateur-") as folder:
            yield Path(folder)
    except OSError as error:
        where = tempfile.tempdir or os.environ.get("TMPDIR") or "there"
        raise OSError(
            error.errno,
            f"A file in the folder for temporary ones is needed, and cannot be written: {error.strerror}. "
            f"Make room in {where}, or set TMPDIR to a folder with room.",
        ) from error
