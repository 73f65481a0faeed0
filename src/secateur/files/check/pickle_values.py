"""Define what stands for names and objects while a pickle is followed, and what was found."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

WRAPPER = "joblib.numpy_pickle.NumpyArrayWrapper"
"""The type by which joblib describes an array, whose bytes follow."""
COMPUTES_TEXT = "computes a text"

_OBJECT_FLAG = 1


@dataclass(frozen=True)
class Global:
    """A name that loading imports."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


@dataclass(eq=False)
class Made:
    """The result of a call, with the state it was given last; `of` is None if it is not known what was called."""

    of: Global | None = None
    arguments: Any = None
    state: Any = None


@dataclass
class Scan:
    """Hold what loading a pickle would do.

    Attributes
    ----------
    names : dict
        The imported names, in order of appearance.
    oddities : dict
        Instructions that no library writes, in words.
    error : str or None
        Why the stream cannot be followed to its end.
    left : int
        The number of bytes after the end.
    version : str or None
        The version of scikit-learn that the pickle records.
    protocol : int
    """

    names: dict[Global, None] = field(default_factory=dict)
    oddities: dict[str, None] = field(default_factory=dict)
    error: str | None = None
    left: int = 0
    version: str | None = None
    protocol: int = 0


def item_size(dtype: Any) -> int | None:
    """Return the bytes per entry of a pickled dtype; None if its entries are objects."""
    if not isinstance(dtype, Made) or str(dtype.of) != "numpy.dtype" or not isinstance(dtype.state, tuple):
        raise ValueError("the type of an array is not a dtype")
    plain = np.dtype(dtype.arguments[0])
    if plain.kind == "O":
        return None
    subarray, size = dtype.state[2], dtype.state[5]
    if subarray is not None or (plain.kind == "V" and dtype.state[7] & _OBJECT_FLAG):
        raise ValueError("the type of an array has parts that cannot be followed")
    return size if plain.kind in "VSU" and size > 0 else plain.itemsize
