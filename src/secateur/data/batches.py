"""Read rows in batches, for data that do not fit into memory."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

_VALUES_PER_BATCH = 2**22
"""Approximate number of values in a batch."""


@dataclass(frozen=True, eq=False)
class Batches:
    """Rows that can be iterated in batches, repeatedly; accepted wherever X is.

    Only the leaves the rows reach are kept. Whatever needs the rows themselves raises an error: refitted clones, and
    prunings that route rows differently.

    Attributes
    ----------
    shape : (int, int)
        Number of rows and features.
    parts : callable
        Returns an iterator over the batches, each a valid X for the model.
    """

    shape: tuple[int, int]
    parts: Callable[[], Iterator[Any]]

    def __len__(self) -> int:
        return self.shape[0]


def parts_of(X: Any) -> Iterator[Any]:
    """Yield X in batches that fit into memory: `Batches` and memory maps in several, anything else in one."""
    if isinstance(X, Batches):
        yield from X.parts()
    elif isinstance(X, np.memmap) and X.ndim == 2:
        step = rows_per_part(X.shape[1])
        for first in range(0, max(len(X), 1), step):
            yield np.asarray(X[first : first + step])
    else:
        yield X


def rows_per_part(n_features: int) -> int:
    """Return the number of rows of a batch."""
    return max(_VALUES_PER_BATCH // max(n_features, 1), 1)


def in_memory(X: Any) -> bool:
    """Return whether X is in memory as a whole."""
    return not isinstance(X, Batches | np.memmap)
