"""Validate the column names of a data file."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from secateur._util.text import quoted


def check_names(names: Sequence[str], file: Path) -> None:
    """Raise ValueError if there are no names, or a name is repeated."""
    if not names:
        raise ValueError(f"{file} is empty; a line of column names and rows of data are needed. Check the file.")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"{file} has several columns named {quoted(twice)}; names must differ. Rename them.")
