"""The rows a forest is judged by, as the forest sees them: routed once, checked once."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.decision import Decision, kept_trees, raises, subforest
from secateur.forest import Forest, Leaves
from secateur.io.adapter import Adapter
from secateur.io.batches import in_memory, parts_of
from secateur.routing import leaf_type, raw_scores, route

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows as a forest sees them: already leaves, labels already numbers.

    Attributes
    ----------
    leaves : (n_trees, n_rows) unsigned
    y : (n_rows, n_targets)
        Class codes, or real values.
    weight : (n_rows,)
    offset : (n_rows, n_outputs), or None
        Where the sums start, if that differs by row.
    rows : (n_rows, n_features), or None
        The features, for prunings that send rows other ways than the unpruned forest does.
    voters : (n_trees, n_rows) bool, or None
        Which trees may speak for a row, when not all may: those that were not grown on it.
    place : (n_rows,), or None
        Which of the rows the user passed these are, if not all in their order.
    """

    leaves: Leaves
    y: NDArray[Any]
    weight: Floats
    offset: Floats | None = None
    rows: NDArray[np.floating] | None = None
    voters: NDArray[np.bool_] | None = None
    place: NDArray[np.intp] | None = None

    def __len__(self) -> int:
        return len(self.y)

    @cached_property
    def total_weight(self) -> float:
        """What the weights of all rows add up to."""
        return float(self.weight.sum())

    def take(self, index: NDArray[np.intp]) -> "Sample":
        """Return some of the rows."""
        return Sample(
            np.ascontiguousarray(self.leaves[:, index]),
            self.y[index],
            self.weight[index],
            None if self.offset is None else self.offset[index],
            None if self.rows is None else self.rows[index],
            None if self.voters is None else np.ascontiguousarray(self.voters[:, index]),
            index if self.place is None else self.place[index],
        )

    def scores(self, forest: Forest, decision: Decision | None = None) -> Floats:
        """Return the sums the forest, pruned or not, gives these rows, (n_rows, n_outputs)."""
        if decision is None or not raises(forest, decision.keep):
            return raw_scores(forest, self.leaves, decision, self.offset, self.voters).astype(np.float64, copy=False)
        if self.rows is None:
            raise ValueError("This pruning sends rows new ways, but only their leaves are known. Pass the rows too.")
        pruned = subforest(forest, decision)
        voters = None if self.voters is None else self.voters[kept_trees(forest, decision.keep)]
        raw = raw_scores(pruned, route(pruned, self.rows), None, self.offset, voters)
        return raw.astype(np.float64, copy=False)


def read_sample(adapter: Adapter, X: Any, y: Any, sample_weight: Any = None) -> Sample:
    """Route the user's rows once and check everything that came with them.

    A model that learned without a target is judged by its own unpruned answers, so `y` is not looked at then. `Batches`
    and memory maps are read a part at a time, and only the leaves they reach are kept.

    Raises
    ------
    ValueError
        If rows, targets and weights do not fit together, or do not fit the model.
    """
    rows, leaves, offset = _route(adapter, X)
    n_rows = leaves.shape[1]
    if not adapter.supervised:
        raw = raw_scores(adapter.forest, leaves, offset=offset)
        target: NDArray[Any] = adapter.forest.response.mean(raw, ())[0]
    elif y is None:
        raise ValueError("y is missing; this model predicts a target, and pruning must know it. Pass y.")
    else:
        target = adapter.target(y)
    if len(target) != n_rows:
        raise ValueError(f"X has {n_rows} rows and y has {len(target)}; they must match. Pass y for these rows.")
    return Sample(leaves, target, _check_weight(sample_weight, n_rows), offset, rows)


def _route(adapter: Adapter, X: Any) -> tuple[NDArray[np.floating] | None, Leaves, Floats | None]:
    """Return X as the trees see it, None where that would not fit into memory, the leaves, and where the sums start."""
    if in_memory(X):
        rows = adapter.rows(X)
        return rows, route(adapter.forest, rows), adapter.offset(rows)
    leaves = np.empty((adapter.forest.n_trees, len(X)), leaf_type(adapter.forest))
    offsets: list[Floats] = []
    done = 0
    for part in parts_of(X):
        rows = adapter.rows(part)
        if done + len(rows) <= len(X):
            leaves[:, done : done + len(rows)] = route(adapter.forest, rows)
        offset = adapter.offset(rows)
        offsets += [] if offset is None else [offset]
        done += len(rows)
    if done != len(X):
        raise ValueError(
            f"X says it has {len(X)} rows, but its parts have {done}. Has the file changed? Open it again."
        )
    return None, leaves, np.concatenate(offsets) if offsets else None


def _check_weight(sample_weight: Any, n_rows: int) -> Floats:
    if sample_weight is None:
        return np.ones(n_rows)
    weight = np.asarray(sample_weight, np.float64)
    if weight.shape != (n_rows,):
        raise ValueError(f"sample_weight has shape {weight.shape}; there are {n_rows} rows. Pass one weight per row.")
    if not np.isfinite(weight).all() or (weight < 0).any() or not weight.any():
        raise ValueError(
            "sample_weight must be finite, not negative, and not all zero. Drop or mend the rows that are not so."
        )
    return weight
