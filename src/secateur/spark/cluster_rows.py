"""Route the rows of a Spark DataFrame on the executors, and return only aggregates to the driver.

Every query is one ordinary Spark job. A task reads its partition once, sums its results and emits one row. The driver
adds these in the order of partition numbers. So the sum does not depend on which task finishes first, is retried or
runs twice.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from secateur.data.row_source import A, RowSource, T
from secateur.data.rows import LocalRows, content_order, joined
from secateur.errors import InvalidInputError
from secateur.forest import Forest
from secateur.forest.routing import leaf_type
from secateur.libraries.adapter import Adapter
from secateur.spark.broadcast import Broadcaster
from secateur.spark.frame_columns import FrameColumns, MissingValuesError, select
from secateur.spark.partition_results import (
    MOST_ANSWERS,
    RESULT_SCHEMA,
    PartitionResult,
    added_up,
    collected,
    in_groups,
)
from secateur.spark.split import by_content
from secateur.spark.tasks import BLOCKS, Count, Each, FromBlocks, FromRows, Route, Total, read_block

_DRAW_SEED = -1
"""Seed of the share that is collected; the seeds of validation splits are not negative."""


@dataclass
class RowCounts:
    """Row counts and weights known from earlier passes.

    Attributes
    ----------
    n_rows : int or None
        The number of rows, None before the first pass.
    weight : float
        The total weight of the rows.
    parts : dict or None
        The number of rows of each nonempty partition, by partition number.
    """

    n_rows: int | None = None
    weight: float = 0.0
    parts: dict[int, int] | None = None


@dataclass(frozen=True, eq=False)
class ClusterSample(RowSource):
    """Rows of a Spark DataFrame as a `RowSource`.

    The DataFrame is read again at every query, so it must return the same rows each time, in the same partitions.
    After a shuffle, the order of rows within a partition may differ between reads, and with it the last bits of sums.

    Attributes
    ----------
    frame : pyspark.sql.DataFrame
        The columns needed and no others, as returned by `frame_columns.select`.
    adapter : Adapter
        The model in serialisable form; see `Adapter.portable`.
    columns : FrameColumns
    broadcaster : Broadcaster
        Sends values to the executors.
    driver_bytes : int
        The largest size of the rows that `collect` may bring to the driver.
    blocks : pyspark.sql.DataFrame, or None
        The routed rows, if they are persisted.
    row_counts : RowCounts
    """

    frame: Any
    adapter: Adapter
    columns: FrameColumns
    broadcaster: Broadcaster
    driver_bytes: int = 2**30
    blocks: Any = None
    row_counts: RowCounts = field(default_factory=RowCounts, repr=False)

    @classmethod
    def of(cls, frame: Any, adapter: Adapter, columns: FrameColumns, *, driver_bytes: int = 2**30) -> "ClusterSample":
        """Return the rows of a DataFrame as a row source, without reading them.

        Raises
        ------
        ValueError
            If a column does not exist or has an unsuitable type, or if the model cannot be pickled.
        """
        sample = cls(select(frame, columns), adapter.portable(), columns, Broadcaster(frame), driver_bytes)
        sample.broadcaster.send(sample.adapter)
        return sample

    def __len__(self) -> int:
        self._count()
        return self.row_counts.n_rows or 0

    @property
    def total_weight(self) -> float:
        """The sum of the row weights."""
        self._count()
        return self.row_counts.weight

    def total(self, forest: Forest, query: Callable[[Forest, LocalRows], A]) -> A:
        """Return the sum of `query(forest, rows)` over chunks of all partitions, in one pass over the rows."""
        task = Total(self._source, self.broadcaster.send(self.adapter), self._other(forest), query)
        answer: A = self._summed(self._data.mapInArrow(task, RESULT_SCHEMA)).answer
        return answer

    def each(self, forest: Forest, query: Callable[[Forest, LocalRows, int], T]) -> list[T]:
        """Return `query(forest, rows, number)` for each nonempty partition; these are numbered from 0 in order."""
        parts = self._parts()
        numbers = {part: number for number, part in enumerate(sorted(parts))}
        task = Each(self._source, self.broadcaster.send(self.adapter), self._other(forest), query, numbers)
        found = collected(self._data.mapInArrow(task, RESULT_SCHEMA))
        for result in found:
            self._check(result)
        if {part: n for result in found for part, n in result.counts.items()} != parts:
            raise _changed(sum(parts.values()), sum(sum(result.counts.values()) for result in found))
        return [result.answer for result in found]

    def split(self, fraction: float, rng: np.random.Generator) -> tuple["ClusterSample", "ClusterSample"]:
        """Split the rows at random into the rest and a `fraction` of them; both are unrouted.

        A hash of its columns assigns each row, so the split is the same for any partitioning and at every attempt. Rows
        that are equal in every column stay together.
        """
        rest, chosen = by_content(self.frame, self.frame.columns, fraction, int(rng.integers(2**31)))
        return self._with(rest), self._with(chosen)

    @property
    def fits_in_memory(self) -> bool:
        """Whether the leaf ids, targets and weights of all rows fit into `driver_bytes`."""
        return self._rows_in_memory() >= len(self)

    def _rows_in_memory(self) -> int:
        """Return how many rows fit into `driver_bytes`."""
        forest = self.adapter.forest
        n_numbers = 1 + max(len(forest.n_classes), 1) + forest.n_outputs
        return int(self.driver_bytes // (forest.n_trees * leaf_type(forest).itemsize + 8 * n_numbers))

    def collect(self) -> LocalRows:
        """Return the routed rows on the driver: all of them, or a share drawn by content that fits.

        The order depends on the contents alone, so it is the same for any partitioning. The rows are kept on the
        driver, so that a second fit on them does not read the DataFrame again.
        """
        return self._collected

    @cached_property
    def _collected(self) -> LocalRows:
        if not self.fits_in_memory:
            return self._drawn()
        if self.blocks is None:
            with self.routed() as routed:
                return routed.collect()
        # This job routes all partitions in parallel and raises data errors; toLocalIterator reads them one by one.
        self.total(self.adapter.forest, _nothing)
        rows = self.blocks.toLocalIterator(prefetchPartitions=True)
        found = joined([read_block(bytes(row[0])) for row in rows])
        return found.take(content_order(found))

    def _drawn(self) -> LocalRows:
        """Return a share of the rows that fits, drawn by a hash of the rows' contents."""
        share = 0.95 * self._rows_in_memory() / len(self)
        while share * len(self) >= 1:
            _, chosen = by_content(self.frame, self.frame.columns, share, _DRAW_SEED)
            drawn = self._with(chosen)
            if drawn.fits_in_memory:
                return replace(drawn.collect(), sampled_from=len(self))
            # Equal rows are drawn together, so the share may turn out larger.
            share /= 2
        raise InvalidInputError(
            f"driver_bytes={self.driver_bytes} is too small for a share of {len(self)} rows in "
            f"{self.adapter.forest.n_trees} trees. Raise driver_bytes, or use a solver that needs sums only, such as "
            "weakest_link."
        )

    def routed(self) -> "ClusterSample":
        """Return the same rows for many queries: routed once, and persisted by the executors until `unpersist`.

        Blocks lost with an executor are routed again from the DataFrame.
        """
        if self.blocks is not None:
            return self
        task = Route(FromRows(self.broadcaster.send(self.adapter), self.columns))
        # The default storage level spills to disk what does not fit into memory.
        blocks = self.frame.mapInArrow(task, BLOCKS).persist()
        return replace(self, blocks=blocks, row_counts=replace(self.row_counts))

    @contextmanager
    def persisted(self) -> Iterator["ClusterSample"]:
        """Persist the routed rows until the block ends."""
        with self.routed() as rows:
            yield rows

    def unpersist(self) -> None:
        """Release the routed rows on the executors."""
        if self.blocks is not None:
            self.blocks.unpersist()

    def __enter__(self) -> "ClusterSample":
        return self

    def __exit__(self, *_: object) -> None:
        self.unpersist()

    @property
    def _source(self) -> FromRows | FromBlocks:
        return FromBlocks() if self.blocks is not None else FromRows(self.broadcaster.send(self.adapter), self.columns)

    @property
    def _data(self) -> Any:
        return self.frame if self.blocks is None else self.blocks

    def _other(self, forest: Forest) -> Any:
        """Return the payload of a forest, None if it is the forest of the model, which executors already have."""
        return None if forest is self.adapter.forest else self.broadcaster.send(forest)

    def _with(self, frame: Any) -> "ClusterSample":
        return replace(self, frame=frame, blocks=None, row_counts=RowCounts())

    def _count(self) -> None:
        """Count the rows and sum their weights, unless an earlier pass has done so."""
        from pyspark.sql import functions as F  # noqa: N812

        if self.row_counts.n_rows is not None:
            return
        if self.blocks is not None:
            self.total(self.adapter.forest, _nothing)
            return
        # Without weights Spark counts by itself, with no Python on the executors.
        if self.columns.weight is None:
            self._remember(n_rows := self.frame.count(), float(n_rows))
            return
        weight = F.col(self.columns.place(self.columns.weight))
        self._summed(self.frame.select(weight).mapInArrow(Count(self.columns), RESULT_SCHEMA), whole=False)

    def _parts(self) -> dict[int, int]:
        """Return the number of rows of each nonempty partition."""
        if self.row_counts.parts is None:
            if self.blocks is not None:
                self.total(self.adapter.forest, _nothing)
            else:
                self._summed(self.frame.mapInArrow(Count(self.columns), RESULT_SCHEMA))
        return self.row_counts.parts or {}

    def _summed(self, frame: Any, whole: bool = True) -> PartitionResult:
        """Run a job, return the sum of its partition results, and check or record the row counts.

        `whole` states that the counts of all partitions are valid for later jobs.
        """
        if self.row_counts.parts is None or len(self.row_counts.parts) > MOST_ANSWERS:
            frame = in_groups(frame)
        result = added_up(frame) or PartitionResult({}, 0.0)
        self._check(result)
        n_rows = sum(result.counts.values())
        if self.row_counts.n_rows is None:
            self._remember(n_rows, result.weight)
        elif n_rows != self.row_counts.n_rows:
            raise _changed(self.row_counts.n_rows, n_rows)
        if whole:
            self.row_counts.parts = result.counts
        return result

    def _check(self, result: PartitionResult) -> None:
        """Raise the data error that a task has returned, if any."""
        from pyspark.sql import functions as F  # noqa: N812

        if isinstance(result.error, MissingValuesError):
            name = result.error.column
            n_nulls = self.frame.filter(F.col(self.columns.place(name)).isNull()).count()
            raise InvalidInputError(
                f"The column {name!r} has {n_nulls} null(s), but every row needs a value. "
                f"Drop those rows, for example by frame.dropna(subset=[{name!r}])."
            )
        if result.error is not None:
            raise result.error

    def _remember(self, n_rows: int, weight: float) -> None:
        """Record the row count and weight of the first pass; raise ValueError if either is zero."""
        if not n_rows:
            raise InvalidInputError(
                "The DataFrame has no rows, but pruning needs at least one. Check whether a filter drops all of them."
            )
        if not weight:
            raise InvalidInputError(
                f"The weight column {self.columns.weight!r} is zero in all {n_rows} rows, but some weight must be "
                "positive. Pass another weight column, or none."
            )
        self.row_counts.n_rows, self.row_counts.weight = n_rows, weight


def _nothing(forest: Forest, sample: LocalRows) -> int:
    """Return 0: a query that only needs the row counts every job returns."""
    return 0


def _changed(before: int, now: int) -> InvalidInputError:
    return InvalidInputError(
        f"The DataFrame had {before} rows before and has {now} now, or has them in other partitions, but "
        "every pass must read the same rows. Write the DataFrame to a table, or persist it, and pass the result."
    )
