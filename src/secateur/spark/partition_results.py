"""What partitions say, and how it is added up: in groups in the cluster first where there are many."""

import logging
import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pyarrow as pa

from secateur.spark.frame_columns import MissingValuesError

SAID = "number int, said binary"
MOST_ANSWERS = 8
"""How many answers the driver adds up itself; more are first added up in the cluster."""
_N_ADDING = 4
"""How many tasks add up in the cluster; starting one takes longer than adding two answers."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class PartitionResult:
    """What is said of some partitions.

    Attributes
    ----------
    counts : dict
        The number of rows of each partition.
    weight : float
        What their weights add up to.
    answer : object
    error : Exception or None
        What is wrong with the rows; there is no answer then.
    """

    counts: dict[int, int]
    weight: float
    answer: Any = None
    error: Exception | None = None

    def __add__(self, other: "PartitionResult") -> "PartitionResult":
        error = self.error or other.error
        answer = None if error else self.answer + other.answer
        return PartitionResult(self.counts | other.counts, self.weight + other.weight, answer, error)


def in_groups(frame: Any) -> Any:
    """Return answers added up in groups of partitions, in the order of their numbers."""
    from pyspark.sql import functions as F  # noqa: N812

    number = F.col("number")
    grouped = frame.select(F.pmod(number, F.lit(MOST_ANSWERS)).alias("group"), number, F.col("said"))
    return grouped.repartition(_N_ADDING, "group").sortWithinPartitions("group", "number").mapInArrow(AddUp(), SAID)


def collected(frame: Any) -> list[PartitionResult]:
    """Return what was said, in the order of partitions or of groups of them."""
    rows = sorted(frame.collect(), key=lambda row: row["number"])
    return [pickle.loads(bytes(row["said"])) for row in rows]  # noqa: S301


def added_up(frame: Any) -> PartitionResult | None:
    """Return the sum of what was said, None if nothing was; an answer is let go of as soon as it has been added."""
    rows = sorted(frame.collect(), key=lambda row: row["number"], reverse=True)
    total: PartitionResult | None = None
    while rows:
        said: PartitionResult = pickle.loads(bytes(rows.pop()["said"]))  # noqa: S301
        total = said if total is None else total + said
    return total


class AddUp:
    """Adds up what was said of the partitions of each group, which come in the order of their numbers."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Say one thing about each group."""
        rows = (row for batch in batches for row in zip(*(batch.column(k) for k in range(3)), strict=True))
        for group, members in groupby(rows, key=lambda row: row[0].as_py()):
            total: PartitionResult | None = None
            for _, _, content in members:
                said: PartitionResult = pickle.loads(content.as_buffer())  # noqa: S301
                total = said if total is None else _added(total, said)
            yield message(group, total)


def _added(one: PartitionResult, other: PartitionResult) -> PartitionResult:
    try:
        return one + other
    except (TypeError, ValueError) as error:
        return PartitionResult(one.counts | other.counts, one.weight + other.weight, None, plain(error))


def message(number: int, said: PartitionResult | None) -> pa.RecordBatch:
    """Return what is said of a partition, or of a group of them, as a row."""
    content = pa.array([pickle.dumps(said, 5)], pa.binary())
    return pa.RecordBatch.from_pydict({"number": pa.array([number], pa.int32()), "said": content})


def plain(error: Exception) -> Exception:
    """Return an error that can travel, with the words of this one."""
    _log.debug("A task found the rows wrong.", exc_info=error)
    if isinstance(error, MissingValuesError):
        return error
    return (TypeError if isinstance(error, TypeError) else ValueError)(str(error))
