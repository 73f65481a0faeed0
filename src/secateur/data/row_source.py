"""Define the interface to rows, wherever they are: in memory, in several parts, or on a cluster.

Every computation is a function of one part of the rows, and its results are added over the parts. So a method that
needs only sums over rows works on data that no single machine could hold.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar

import numpy as np

from secateur.forest import Forest

if TYPE_CHECKING:
    from secateur.data.rows import LocalRows


class Addable(Protocol):
    """A result that can be added to another: an array, or a class of sums."""

    def __add__(self, other: Any, /) -> Any:
        """Return the sum of both."""


A = TypeVar("A", bound=Addable)
T = TypeVar("T")


class RowSource(ABC):
    """Rows that were routed through one forest.

    The functions passed to `total` and `each` must be picklable (functions of a module, partials, frozen dataclasses
    with `__call__`), and must not modify their arguments.
    """

    is_remote: ClassVar[bool] = True
    """Whether methods should request sums rather than access rows one by one."""
    sampled_from: int | None = None
    """The number of rows these were drawn from by `collect`; None if they were not drawn."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of rows."""

    @property
    @abstractmethod
    def total_weight(self) -> float:
        """The sum of all row weights."""

    @abstractmethod
    def total(self, forest: Forest, query: "Callable[[Forest, LocalRows], A]") -> A:
        """Return the sum of `query(forest, part)` over parts of the rows; parts may have any size."""

    @abstractmethod
    def each(self, forest: Forest, query: "Callable[[Forest, LocalRows, int], T]") -> list[T]:
        """Return `query(forest, part, number)` for each part; the parts have the same rows at every call."""

    @abstractmethod
    def split(self, fraction: float, rng: np.random.Generator) -> tuple[Self, Self]:
        """Split the rows at random: return the remaining rows, and a fraction `fraction` of all rows."""

    @property
    def fits_in_memory(self) -> bool:
        """Whether `collect` returns all rows."""
        return True

    @abstractmethod
    def collect(self) -> "LocalRows":
        """Return the rows on this machine: all of them, or a share drawn by their contents if they do not fit."""

    @contextmanager
    def persisted(self) -> "Iterator[RowSource]":
        """Yield the same rows for many passes, so that they are read only once."""
        yield self


def add_up(results: list[A]) -> A:
    """Return the sum of several results, added in order."""
    return reduce(add, results)
