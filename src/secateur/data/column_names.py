"""Validate the column names of a data file."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from secateur._util.text import quoted
from secateur.errors import DamagedFileError


def check_names(names: Sequence[str], file: Path) -> None:
    """Raise DamagedFileError if there are no names, or a name is repeated."""
    if not names:
        raise DamagedFileError(
            f"{file} is empty, but a data file needs a line of column names and rows of data. Check the file."
        )
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise DamagedFileError(
            f"{file} has several columns named {quoted(repeated)}, but column names must be unique. Rename them."
        )
