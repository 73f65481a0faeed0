"""Rows a part at a time: what need not fit into memory."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

_PART = 2**22
"""How many numbers a part has, about."""


@dataclass(frozen=True, eq=False)
class Batches:
    """Rows that are handed out a part at a time, as often as asked; pass them wherever X is wanted.

    Only the leaves they reach are kept, so whatever needs the rows themselves says no: refitted clones, and prunings
    that send rows other ways.

    Attributes
    ----------
    shape : (int, int)
        Rows and features.
    parts : callable
        Returns an iterator over the parts, each something a model takes as X.
    """

    shape: tuple[int, int]
    parts: Callable[[], Iterator[Any]]

    def __len__(self) -> int:
        return self.shape[0]


def parts_of(X: Any) -> Iterator[Any]:
    """Yield X in parts that fit into memory: `Batches` and a memory map in several, anything else in one."""
    if isinstance(X, Batches):
        yield from X.parts()
    elif isinstance(X, np.memmap) and X.ndim == 2:
        step = rows_per_part(X.shape[1])
        for first in range(0, max(len(X), 1), step):
            yield np.asarray(X[first : first + step])
    else:
        yield X


def rows_per_part(n_features: int) -> int:
    """Return how many rows make a part."""
    return max(_PART // max(n_features, 1), 1)


def in_memory(X: Any) -> bool:
    """Return whether X is there as a whole."""
    return not isinstance(X, Batches | np.memmap)
