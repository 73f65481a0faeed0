"""Aggregate the results of partitions: sum them in groups on the cluster if there are many, then on the driver."""

import logging
import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pyarrow as pa

from secateur.errors import SecateurError
from secateur.spark.frame_columns import MissingValuesError

RESULT_SCHEMA = "number int, result binary"
MOST_ANSWERS = 8
"""Largest number of results the driver sums itself; more are first summed in groups on the cluster."""
_N_ADDING = 4
"""Number of tasks that sum on the cluster; starting a task takes longer than adding two results."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class PartitionResult:
    """Summable result of one or more partitions.

    Attributes
    ----------
    counts : dict
        The number of rows of each partition.
    weight : float
        The sum of their weights.
    answer : object
        The result of the query; None if there is an error.
    error : Exception or None
        The first data error.
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
    """Return a DataFrame of results summed by groups of partitions, in the order of partition numbers."""
    from pyspark.sql import functions as F  # noqa: N812

    number = F.col("number")
    grouped = frame.select(F.pmod(number, F.lit(MOST_ANSWERS)).alias("group"), number, F.col("result"))
    return (
        grouped.repartition(_N_ADDING, "group")
        .sortWithinPartitions("group", "number")
        .mapInArrow(AddUp(), RESULT_SCHEMA)
    )


def collected(frame: Any) -> list[PartitionResult]:
    """Return the results in the order of partitions or groups."""
    rows = sorted(frame.collect(), key=lambda row: row["number"])
    return [pickle.loads(bytes(row["result"])) for row in rows]  # noqa: S301


def added_up(frame: Any) -> PartitionResult | None:
    """Return the sum of the results, None if there are none; each result is freed as soon as it has been added."""
    rows = sorted(frame.collect(), key=lambda row: row["number"], reverse=True)
    total: PartitionResult | None = None
    while rows:
        result: PartitionResult = pickle.loads(bytes(rows.pop()["result"]))  # noqa: S301
        total = result if total is None else total + result
    return total


class AddUp:
    """Task that sums the results of each group; partitions arrive in the order of their numbers."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield one summed result per group."""
        rows = (row for batch in batches for row in zip(*(batch.column(k) for k in range(3)), strict=True))
        for group, members in groupby(rows, key=lambda row: row[0].as_py()):
            total: PartitionResult | None = None
            for _, _, content in members:
                result: PartitionResult = pickle.loads(content.as_buffer())  # noqa: S301
                total = result if total is None else _added(total, result)
            yield message(group, total)


def _added(one: PartitionResult, other: PartitionResult) -> PartitionResult:
    try:
        return one + other
    except (TypeError, ValueError) as error:
        return PartitionResult(one.counts | other.counts, one.weight + other.weight, None, plain(error))


def message(number: int, result: PartitionResult | None) -> pa.RecordBatch:
    """Return the result of a partition or group as a record batch with one row."""
    content = pa.array([pickle.dumps(result, 5)], pa.binary())
    return pa.RecordBatch.from_pydict({"number": pa.array([number], pa.int32()), "result": content})


def plain(error: Exception) -> Exception:
    """Return a picklable error with the same message; errors of secateur keep their class."""
    _log.debug("A task rejected its rows.", exc_info=error)
    if isinstance(error, MissingValuesError):
        return error
    if isinstance(error, SecateurError):
        return type(error)(str(error))
    return (TypeError if isinstance(error, TypeError) else ValueError)(str(error))
