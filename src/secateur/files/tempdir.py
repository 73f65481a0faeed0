"""Create a temporary folder for libraries that read or write only files, with a clear error if that fails."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield an empty folder, and remove it at the end.

    Raises
    ------
    OSError
        If the folder cannot be created, or a file in it cannot be written.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="secateur-") as folder:
            yield Path(folder)
    except OSError as error:
        folder = tempfile.tempdir or os.environ.get("TMPDIR") or "the folder for temporary files"
        raise OSError(
            error.errno,
            f"Cannot write a temporary file in {folder} ({error.strerror}). Free disk space there, or set TMPDIR to "
            "another folder.",
        ) from error
