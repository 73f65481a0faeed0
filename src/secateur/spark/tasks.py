"""Run queries on a partition inside an executor: read and route its rows, evaluate a function, return one result.

A task that finds invalid data returns the error as its result instead of failing, because a retry would find the same.
Any other failure, such as a lost machine, is left to Spark, which retries the task.
"""

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Protocol

import pyarrow as pa

from secateur._util.blas import one_blas_thread
from secateur.data.rows import LocalRows, joined, read_sample
from secateur.forest import Forest
from secateur.forest.routing import leaf_type
from secateur.libraries.adapter import Adapter
from secateur.spark.frame_columns import FrameColumns, read_features, read_label, read_weight
from secateur.spark.partition_results import PartitionResult, message, plain

Batches = Iterable[pa.RecordBatch]

BLOCKS = "block binary"
N_ROWS_AT_LEAST, N_ROWS_AT_MOST = 2**10, 2**16
N_BYTES_AT_ONCE = 2**26
"""Largest size of the leaf ids of the rows processed at once."""
N_BYTES_OF_BLOCK = 2**22
"""Approximate size of the leaf ids in a block; Spark is slow with much larger cells."""

opened = lru_cache(maxsize=4)(pickle.loads)
"""Unpickle a payload; the same bytes are unpickled once in each process."""


class Payload(Protocol):
    """Protocol of a value sent to executors: a broadcast, or bytes enclosed in each task."""

    @property
    def value(self) -> bytes:
        """The pickled value."""


@dataclass(frozen=True)
class Enclosed:
    """Payload enclosed in each task."""

    value: bytes


class PartitionSource(Protocol):
    """Protocol that reads the routed rows of a partition."""

    def samples(self, batches: Batches) -> Iterator[LocalRows]:
        """Yield the routed rows of a partition in chunks."""


@dataclass(frozen=True, eq=False)
class FromRows:
    """Route rows while they are read from the user's DataFrame."""

    model: Payload
    columns: FrameColumns
    n_bytes: int = N_BYTES_AT_ONCE

    def samples(self, batches: Batches) -> Iterator[LocalRows]:
        """Yield the routed rows of a partition in chunks whose leaf ids take about `n_bytes`."""
        adapter: Adapter = opened(self.model.value)
        for places in _gathered(batches, _rows_at_once(adapter.forest, self.n_bytes)):
            table = places.rename_columns(self.columns.names)
            label, weight = read_label(table, self.columns), read_weight(table, self.columns)
            sample = read_sample(adapter, read_features(table, self.columns), label)
            yield replace(sample, weight=weight, rows=None)


class FromBlocks:
    """Read rows from blocks that `Route` has written."""

    def samples(self, batches: Batches) -> Iterator[LocalRows]:
        """Yield the rows of a partition block by block."""
        for batch in batches:
            for block in batch.column(0):
                yield read_block(block.as_buffer())


def read_block(content: Any) -> LocalRows:
    """Return the routed rows of a block, or raise the data error stored in it."""
    found = pickle.loads(content)  # noqa: S301
    if isinstance(found, Exception):
        raise found
    sample: LocalRows = found
    return sample


class Task(ABC):
    """Compute one result for a partition."""

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Yield the result of this task's partition, or its data error; an empty partition yields nothing."""
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        part = context.partitionId()
        try:
            with one_blas_thread:
                result = self._of_partition(batches, part)
        except (TypeError, ValueError) as error:
            result = PartitionResult({part: 0}, 0.0, None, plain(error))
        if result:
            yield message(part, result)

    @abstractmethod
    def _of_partition(self, batches: Batches, part: int) -> PartitionResult | None:
        """Return the result of a partition, None if it is empty."""


@dataclass(frozen=True, eq=False)
class Total(Task):
    """Sum `query(forest, rows)` over the chunks of a partition."""

    source: PartitionSource
    model: Payload
    forest: Payload | None
    query: Callable[[Forest, LocalRows], Any]

    def _of_partition(self, batches: Batches, part: int) -> PartitionResult | None:
        forest, result = _forest(self.model, self.forest), None
        for sample in self.source.samples(batches):
            found = PartitionResult({}, sample.total_weight, self.query(forest, sample))
            n_rows = len(sample) + (result.counts[part] if result else 0)
            result = replace(result + found if result else found, counts={part: n_rows})
        return result


@dataclass(frozen=True, eq=False)
class Each(Task):
    """Evaluate `query(forest, rows, number)` on all rows of a partition at once."""

    source: PartitionSource
    model: Payload
    forest: Payload | None
    query: Callable[[Forest, LocalRows, int], Any]
    numbers: dict[int, int]

    def _of_partition(self, batches: Batches, part: int) -> PartitionResult | None:
        samples = list(self.source.samples(batches))
        if not samples:
            return None
        sample = samples[0] if len(samples) == 1 else joined(samples)
        number = self.numbers.get(part, -1)
        answer = None if number < 0 else self.query(_forest(self.model, self.forest), sample, number)
        return PartitionResult({part: len(sample)}, sample.total_weight, answer)


@dataclass(frozen=True, eq=False)
class Count(Task):
    """Count the rows of a partition and sum their weights; the weight column alone suffices."""

    columns: FrameColumns

    def _of_partition(self, batches: Batches, part: int) -> PartitionResult | None:
        n_rows, weight = 0, 0.0
        for batch in batches:
            n_rows += batch.num_rows
            names = self.columns.names if batch.num_columns > 1 else [self.columns.weight or ""]
            table = pa.Table.from_batches([batch]).rename_columns(names)
            weight += float(read_weight(table, self.columns).sum())
        return PartitionResult({part: n_rows}, weight, 0) if n_rows else None


@dataclass(frozen=True, eq=False)
class Route:
    """Route the rows of a partition and write them as blocks."""

    source: FromRows

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Yield the blocks of a partition; a data error becomes the last block."""
        try:
            for sample in replace(self.source, n_bytes=N_BYTES_OF_BLOCK).samples(batches):
                yield pa.RecordBatch.from_pydict({"block": pa.array([pickle.dumps(sample, 5)], pa.binary())})
        except (TypeError, ValueError) as error:
            yield pa.RecordBatch.from_pydict({"block": pa.array([pickle.dumps(plain(error))], pa.binary())})


def _forest(model: Payload, forest: Payload | None) -> Forest:
    """Return the forest to evaluate: the one sent, or that of the model if none was sent."""
    found: Forest = opened(model.value).forest if forest is None else opened(forest.value)
    return found


def _rows_at_once(forest: Forest, n_bytes: int) -> int:
    size = max(forest.n_trees, 1) * leaf_type(forest).itemsize
    return min(max(n_bytes // size, N_ROWS_AT_LEAST), N_ROWS_AT_MOST)


def _gathered(batches: Batches, n_rows: int) -> Iterator[pa.Table]:
    """Yield the rows regrouped into tables of `n_rows` rows; the last table may have fewer."""
    # Invariant: `held` has n_rows − room rows, and room > 0 whenever another batch is read.
    held: list[pa.RecordBatch] = []
    room = n_rows
    for batch in batches:
        while batch.num_rows:
            held.append(batch.slice(0, room))
            room -= held[-1].num_rows
            batch = batch.slice(held[-1].num_rows)
            if not room:
                yield pa.Table.from_batches(held)
                held, room = [], n_rows
    if held:
        yield pa.Table.from_batches(held)
