"""What executors do with a partition: read it, route it, ask, and say one thing about all of it.

A task that finds the data wrong says so instead of failing, as another attempt would find the same. Whatever else goes
wrong, a lost machine above all, is left to Spark, which tries again.
"""

import pickle
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
"""How large the leaves of the rows asked about at once may be."""
N_BYTES_OF_BLOCK = 2**22
"""How large the leaves in a block are, about: Spark is slow with cells much larger."""

opened = lru_cache(maxsize=4)(pickle.loads)
"""Return what was sent; the same bytes are opened once in each process."""


class Payload(Protocol):
    """Something sent to executors: a broadcast, or bytes that travel with each task."""

    @property
    def value(self) -> bytes:
        """What was sent, pickled."""


@dataclass(frozen=True)
class Enclosed:
    """Bytes that travel with each task."""

    value: bytes


class PartitionSource(Protocol):
    """Where a task has its rows from."""

    def samples(self, batches: Batches) -> Iterator[LocalRows]:
        """Return the rows of a partition, routed, a part at a time."""


@dataclass(frozen=True, eq=False)
class FromRows:
    """Rows as the user has them, routed as they come."""

    model: Payload
    columns: FrameColumns
    n_bytes: int = N_BYTES_AT_ONCE

    def samples(self, batches: Batches) -> Iterator[LocalRows]:
        """Return the rows of a partition, routed, a part at a time."""
        adapter: Adapter = opened(self.model.value)
        for places in _gathered(batches, _rows_at_once(adapter.forest, self.n_bytes)):
            table = places.rename_columns(self.columns.names)
            label, weight = read_label(table, self.columns), read_weight(table, self.columns)
            sample = read_sample(adapter, read_features(table, self.columns), label)
            yield replace(sample, weight=weight, rows=None)


class FromBlocks:
    """Rows that were routed before."""

    def samples(self, batches: Batches) -> Iterator[LocalRows]:
        """Return the rows of a partition, a block at a time."""
        for batch in batches:
            for block in batch.column(0):
                yield read_block(block.as_buffer())


def read_block(content: Any) -> LocalRows:
    """Return routed rows, or raise what was found to be wrong with them."""
    found = pickle.loads(content)  # noqa: S301
    if isinstance(found, Exception):
        raise found
    sample: LocalRows = found
    return sample


@dataclass(frozen=True, eq=False)
class Total:
    """Adds up what is said of the parts of a partition."""

    source: PartitionSource
    model: Payload
    forest: Payload | None
    ask: Callable[[Forest, LocalRows], Any]

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Say one thing about the partition."""
        yield from _say(self._of_partition, batches)

    def _of_partition(self, batches: Batches, part: int) -> PartitionResult | None:
        forest, said = _forest(self.model, self.forest), None
        for sample in self.source.samples(batches):
            found = PartitionResult({}, sample.total_weight, self.ask(forest, sample))
            n_rows = len(sample) + (said.counts[part] if said else 0)
            said = replace(said + found if said else found, counts={part: n_rows})
        return said


@dataclass(frozen=True, eq=False)
class Each:
    """Asks of a partition as a whole."""

    source: PartitionSource
    model: Payload
    forest: Payload | None
    ask: Callable[[Forest, LocalRows, int], Any]
    numbers: dict[int, int]

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Say one thing about the partition."""
        yield from _say(self._of_partition, batches)

    def _of_partition(self, batches: Batches, part: int) -> PartitionResult | None:
        samples = list(self.source.samples(batches))
        if not samples:
            return None
        sample = samples[0] if len(samples) == 1 else joined(samples)
        number = self.numbers.get(part, -1)
        answer = None if number < 0 else self.ask(_forest(self.model, self.forest), sample, number)
        return PartitionResult({part: len(sample)}, sample.total_weight, answer)


@dataclass(frozen=True, eq=False)
class Count:
    """Counts rows and adds up their weights, and looks at nothing else; they need not have more columns than that."""

    columns: FrameColumns

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Say one thing about the partition."""
        yield from _say(self._of_partition, batches)

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
    """Turns rows into blocks of routed rows."""

    source: FromRows

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Return the blocks of a partition, or one that says what is wrong."""
        try:
            for sample in replace(self.source, n_bytes=N_BYTES_OF_BLOCK).samples(batches):
                yield pa.RecordBatch.from_pydict({"block": pa.array([pickle.dumps(sample, 5)], pa.binary())})
        except (TypeError, ValueError) as error:
            yield pa.RecordBatch.from_pydict({"block": pa.array([pickle.dumps(plain(error))], pa.binary())})


def _say(ask: Callable[[Batches, int], PartitionResult | None], batches: Batches) -> Iterator[pa.RecordBatch]:
    """Say what there is to say of this task's partition; of an empty one nothing."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    part = context.partitionId()
    try:
        with one_blas_thread:
            said = ask(batches, part)
    except (TypeError, ValueError) as error:
        said = PartitionResult({part: 0}, 0.0, None, plain(error))
    if said:
        yield message(part, said)


def _forest(model: Payload, forest: Payload | None) -> Forest:
    """Return the forest asked about: the model's own, if no other was sent."""
    found: Forest = opened(model.value).forest if forest is None else opened(forest.value)
    return found


def _rows_at_once(forest: Forest, n_bytes: int) -> int:
    size = max(forest.n_trees, 1) * leaf_type(forest).itemsize
    return min(max(n_bytes // size, N_ROWS_AT_LEAST), N_ROWS_AT_MOST)


def _gathered(batches: Batches, n_rows: int) -> Iterator[pa.Table]:
    """Return the same rows in tables of so many; the last may have fewer."""
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
