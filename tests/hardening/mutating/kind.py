"""Define a kind of file: how to write, damage, read and check it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tests.hardening.mutating.damage import damage

REFUSED, SAME, ANOTHER, UNUSABLE = "refused", "same", "another", "unusable"
GOOD = (REFUSED, SAME, ANOTHER, UNUSABLE)
"""A clear error; read as before; read otherwise, and an independent reader agrees; read, but
scikit-learn itself cannot predict with it and raises an error."""


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Attributes
    ----------
    suffix : str
    makes : tuple of callable
        Each `make(file)` writes a valid file, or folder, of this kind.
    change : callable
        `change(source, target, rng)` writes a copy with valid syntax and other content.
    read : callable
        `read(file)` reads the file with secateur; ValueError, FileNotFoundError and TypeError are valid ways to
        refuse.
    judge : callable
        `judge(found, file, sound)` returns `SAME` or `ANOTHER`, or a message how the content read differs from what
        an independent reader finds; `sound` is the content of the valid file.
    """

    suffix: str
    makes: tuple[Callable[[Path], Any], ...]
    change: Callable[[Path, Path, np.random.Generator], None]
    read: Callable[[Path], Any]
    judge: Callable[[Any, Path, Any], str]


def damage_blindly(source: Path, target: Path, rng: np.random.Generator) -> None:
    """Write a damaged copy of a file, or of a folder with one file damaged or missing."""
    if source.is_file():
        target.write_bytes(damage(source.read_bytes(), rng))
        return
    copy_folder(source, target)
    files = sorted(file for file in target.rglob("*") if file.is_file() and file.stat().st_size)
    victim = files[int(rng.integers(len(files)))]
    if rng.random() < 0.05:
        victim.unlink()
    else:
        victim.write_bytes(damage(victim.read_bytes(), rng))


def copy_folder(source: Path, target: Path) -> None:
    """Copy a folder; for a few small files this is faster than shutil."""
    target.mkdir()
    for file in sorted(source.rglob("*")):
        copy = target / file.relative_to(source)
        if file.is_dir():
            copy.mkdir(exist_ok=True)
        else:
            copy.parent.mkdir(exist_ok=True, parents=True)
            copy.write_bytes(file.read_bytes())
