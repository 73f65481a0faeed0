"""What a forest is judged by, wherever the rows are: in memory, in several parts, or in a cluster.

Whatever is asked of rows is asked of a part of them, and the answers of the parts are added up. So a method that asks
for sums alone works on rows that no single machine could hold.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

import numpy as np

from secateur.forest import Forest

if TYPE_CHECKING:
    from secateur.data.rows import LocalRows


class Addable(Protocol):
    """An answer that can be added to another: an array, or a class of sums."""

    def __add__(self, other: Any, /) -> Any:
        """Return both together."""


A = TypeVar("A", bound=Addable)
T = TypeVar("T")


class RowSource(ABC):
    """Rows that were routed through one forest.

    Questions must be picklable (functions of a module, partials, frozen dataclasses with `__call__`), and must not
    change what they are given.
    """

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of rows."""

    @property
    @abstractmethod
    def total_weight(self) -> float:
        """What the weights of all rows add up to."""

    @abstractmethod
    def total(self, forest: Forest, ask: "Callable[[Forest, LocalRows], A]") -> A:
        """Return the sum, over parts of the rows, of what `ask(forest, part)` says; parts may have any size."""

    @abstractmethod
    def each(self, forest: Forest, ask: "Callable[[Forest, LocalRows, int], T]") -> list[T]:
        """Return what `ask(forest, part, number)` says of each part; they are the same rows at every call."""

    @abstractmethod
    def split(self, share: float, rng: np.random.Generator) -> tuple[Self, Self]:
        """Return the rows without a random share of them, and that share."""

    @property
    @abstractmethod
    def why_not_local(self) -> str | None:
        """Why `here` cannot bring the rows together on this machine, or None if it can."""

    @abstractmethod
    def collect(self) -> "LocalRows":
        """Return all rows, on this machine."""

    @contextmanager
    def persisted(self) -> "Iterator[RowSource]":
        """Give the same rows for many questions: what it takes to read them is paid for once."""
        yield self

    @property
    def is_remote(self) -> bool:
        """Whether asking for sums is better than looking at rows one by one."""
        return True


def add_up(answers: list[A]) -> A:
    """Return the sum of several answers, in their order."""
    return reduce(add, answers)
