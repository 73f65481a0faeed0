"""Hold rows in memory, routed through a forest once and checked once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.data.batches import in_memory, parts_of
from secateur.data.given_rows import GivenRows
from secateur.data.row_source import A, RowSource, T, add_up
from secateur.data.targets import LARGEST
from secateur.errors import InvalidInputError
from secateur.forest import Forest, Leaves
from secateur.forest.node_sums import node_weight
from secateur.forest.routing import leaf_type, raw_scores, route
from secateur.forest.subforest import Decision, kept_decision, kept_trees, raises, subforest
from secateur.libraries.adapter import Adapter
from secateur.libraries.numeric_columns import check_missing

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LocalRows(RowSource):
    """Rows routed through a forest: leaf indices, encoded targets and weights.

    Attributes
    ----------
    leaves : (n_trees, n_rows) unsigned
        The leaf of each row in each tree.
    y : (n_rows, n_targets)
        Class codes, or real values.
    weight : (n_rows,)
    offset : (n_rows, n_outputs), or None
        The initial raw score, if it differs by row.
    rows : (n_rows, n_features), or None
        The features, for prunings that route rows differently from the unpruned forest.
    voters : (n_trees, n_rows) bool, or None
        Whether a tree may predict a row: out-of-bag trees only. None if all trees may.
    row_index : (n_rows,), or None
        The indices of these rows among the user's rows; None if they are all of them in order.
    sampled_from : int, or None
        The number of rows these were drawn from, if not all of them fit into memory.
    given : GivenRows, or None
        The rows and targets as the user passed them; None for rows of a cluster.
    groups : (n_rows,) of integers, or None
        The group of each row: the rows of a group are not independent, and stay together. None if each row is its own.
    """

    leaves: Leaves
    y: NDArray[Any]
    weight: Floats
    offset: Floats | None = None
    rows: NDArray[np.floating] | None = None
    voters: NDArray[np.bool_] | None = None
    row_index: NDArray[np.intp] | None = None
    sampled_from: int | None = None
    given: GivenRows | None = None
    groups: NDArray[np.intp] | None = None

    is_remote = False

    def __len__(self) -> int:
        return len(self.y)

    @cached_property
    def total_weight(self) -> float:
        """The sum of all row weights."""
        return float(self.weight.sum())

    def take(self, index: NDArray[np.intp]) -> "LocalRows":
        """Return the rows with these indices."""
        return LocalRows(
            self.leaves.take(index, axis=1),
            self.y[index],
            self.weight[index],
            None if self.offset is None else self.offset[index],
            None if self.rows is None else self.rows[index],
            None if self.voters is None else self.voters.take(index, axis=1),
            index if self.row_index is None else self.row_index[index],
            self.sampled_from,
            None if self.given is None else self.given.take(index),
            None if self.groups is None else self.groups[index],
        )

    @cached_property
    def units(self) -> NDArray[np.intp]:
        """What is drawn independently: the group of each row, or the row, from 0 on, (n_rows,)."""
        if self.groups is None:
            return np.arange(len(self))
        return np.unique(self.groups, return_inverse=True)[1]

    @property
    def n_units(self) -> int:
        """The number of groups, or of rows."""
        return int(self.units.max(initial=-1)) + 1

    def total(self, forest: Forest, query: Callable[[Forest, "LocalRows"], A]) -> A:
        """Return `query(forest, rows)` for all rows, which form one part."""
        return query(forest, self)

    def each(self, forest: Forest, query: Callable[[Forest, "LocalRows", int], T]) -> list[T]:
        """Return `[query(forest, rows, 0)]`; all rows form one part."""
        return [query(forest, self, 0)]

    def split(self, fraction: float, rng: np.random.Generator) -> tuple["LocalRows", "LocalRows"]:
        """Split the rows, or their groups, at random: return the remaining ones, and a fraction `fraction` of all."""
        units, what = self.units, "row(s)" if self.groups is None else "group(s) of rows"
        n_units = self.n_units
        n_drawn = round(n_units * fraction)
        if not 0 < n_drawn < n_units:
            raise InvalidInputError(
                f"A validation fraction of {fraction:g} cannot be split off {n_units} {what}, because pruning and "
                "validation need at least one each. Pass more rows, or validation=(X_val, y_val)."
            )
        drawn = np.zeros(n_units, bool)
        drawn[rng.permutation(n_units)[:n_drawn]] = True
        return self.take(np.flatnonzero(~drawn[units])), self.take(np.flatnonzero(drawn[units]))

    def collect(self) -> "LocalRows":
        """Return the rows themselves."""
        return self

    def scores(self, forest: Forest, decision: Decision | None = None, kept_value: Floats | None = None) -> Floats:
        """Return the raw scores of the forest, pruned or not, (n_rows, n_outputs).

        `kept_value` (n_kept, width) has the values of the kept nodes, if they are not in the decision.
        """
        if decision is None or not raises(forest, decision.keep):
            raw = raw_scores(forest, self.leaves, decision, self.offset, self.voters, kept_value)
            return raw.astype(np.float64, copy=False)
        if self.rows is None:
            raise InvalidInputError(
                "This pruning raises subtrees, so the rows must be routed again, but X was read in batches and only "
                "its leaves were stored. Pass X as an array in memory."
            )
        if kept_value is not None:
            decision = replace(decision, value=kept_decision(forest, decision.keep, kept_value).value)
        pruned = subforest(forest, decision)
        voters = None if self.voters is None else self.voters[kept_trees(forest, decision.keep)]
        raw = raw_scores(pruned, route(pruned, self.rows), None, self.offset, voters)
        return raw.astype(np.float64, copy=False)


@dataclass(frozen=True, eq=False)
class Parts(RowSource):
    """Rows in several parts, all in memory."""

    parts: tuple[LocalRows, ...]

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    @property
    def total_weight(self) -> float:
        """The sum of all row weights."""
        return float(sum(part.total_weight for part in self.parts))

    def total(self, forest: Forest, query: Callable[[Forest, LocalRows], A]) -> A:
        """Return the sum of `query(forest, part)` over the parts."""
        return add_up([query(forest, part) for part in self.parts])

    def each(self, forest: Forest, query: Callable[[Forest, LocalRows, int], T]) -> list[T]:
        """Return `query(forest, part, number)` for each part."""
        return [query(forest, part, number) for number, part in enumerate(self.parts)]

    def split(self, fraction: float, rng: np.random.Generator) -> tuple["Parts", "Parts"]:
        """Split the rows at random: return the remaining rows, and a fraction `fraction` of all rows, both in parts."""
        chosen = np.zeros(len(self), bool)
        chosen[rng.permutation(len(self))[: round(len(self) * fraction)]] = True
        ends = np.cumsum([len(part) for part in self.parts])[:-1]
        pairs = list(zip(self.parts, np.split(chosen, ends), strict=True))
        rest = tuple(part.take(np.flatnonzero(~mask)) for part, mask in pairs)
        return Parts(rest), Parts(tuple(part.take(np.flatnonzero(mask)) for part, mask in pairs))

    def collect(self) -> LocalRows:
        """Return all rows as one part."""
        return joined(self.parts)


def in_parts(sample: LocalRows, n_parts: int) -> Parts:
    """Return rows in `n_parts` parts of consecutive rows, of nearly equal size."""
    return Parts(tuple(sample.take(index) for index in np.array_split(np.arange(len(sample)), n_parts)))


def joined(parts: Sequence[LocalRows]) -> LocalRows:
    """Return the concatenated rows of several parts; fields that some parts lack become None."""

    def stack(name: str, axis: int = 0) -> Any:
        found = [getattr(part, name) for part in parts]
        return None if any(field is None for field in found) else np.concatenate(found, axis=axis)

    return LocalRows(
        stack("leaves", 1),
        stack("y"),
        stack("weight"),
        stack("offset"),
        stack("rows"),
        stack("voters", 1),
        stack("row_index"),
    )


def content_order(rows: LocalRows) -> NDArray[np.intp]:
    """Return an order of the rows that depends on their contents alone, (n_rows,): that of a 64-bit hash.

    Rows of equal contents are interchangeable, so that any permutation of the rows gives the same sequence.
    """
    numbers = [rows.y.astype(np.float64), rows.weight[:, None], *([] if rows.offset is None else [rows.offset])]
    columns = [*rows.leaves, *(np.ascontiguousarray(column).view(np.uint64) for part in numbers for column in part.T)]
    code = np.zeros(len(rows), np.uint64)
    for column in columns:
        # One round of multiply and shift per column (splitmix64).
        code = (code ^ column) * np.uint64(0xBF58476D1CE4E5B9)
        code ^= code >> np.uint64(31)
    return np.argsort(code, kind="stable")


def weight_at_nodes(forest: Forest, sample: LocalRows) -> Floats:
    """Return the total row weight at each node, (n_nodes,)."""
    return node_weight(forest, sample.leaves, sample.weight)


def read_sample(adapter: Adapter, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> LocalRows:
    """Route the user's rows once, and check rows, targets and weights.

    For a model trained without a target, the unpruned model's predictions are the target, and `y` is ignored.
    `Batches` and memory maps are read in batches, and only the leaves they reach are kept.

    Raises
    ------
    InvalidInputError
        If rows, targets and weights are inconsistent with each other or with the model.
    """
    _check_is_table(X)
    rows, leaves, offset = _route(adapter, X)
    n_rows = leaves.shape[1]
    if not adapter.supervised:
        target: NDArray[Any] = raw_scores(adapter.forest, leaves, offset=offset).astype(np.float64)
        if adapter.forest.objective != "score_error":
            target = adapter.forest.response.mean(target, ())[0]
    elif y is None:
        raise InvalidInputError("y is missing, but this model predicts a target, so its loss depends on y. Pass y.")
    else:
        target = adapter.target(y)
    if len(target) != n_rows:
        raise InvalidInputError(f"X has {n_rows} rows, but y has {len(target)}. Pass one target for each row of X.")
    weight = _check_weight(sample_weight, n_rows)
    return LocalRows(leaves, target, weight, offset, rows, given=GivenRows(X, y), groups=_group_codes(groups, n_rows))


def _check_is_table(X: Any) -> None:
    """Raise InvalidInputError if X has no columns, as a target has none."""
    shape = getattr(X, "shape", None)
    if X is None or isinstance(X, str) or (isinstance(shape, tuple) and len(shape) < 2):
        found = "None" if X is None else f"{type(X).__name__} of shape {shape}" if shape is not None else repr(X)[:60]
        raise InvalidInputError(
            f"X is {found}, but a table or matrix with a row per sample and a column per feature is needed. Pass X "
            "first, then y."
        )


def _route(adapter: Adapter, X: Any) -> tuple[NDArray[np.floating] | None, Leaves, Floats | None]:
    """Return the encoded rows (None if X is read in batches), the leaves, and the initial raw scores or None."""
    if in_memory(X):
        rows = _encoded(adapter, X)
        return rows, route(adapter.forest, rows), adapter.offset(rows)
    leaves = np.empty((adapter.forest.n_trees, len(X)), leaf_type(adapter.forest))
    offsets: list[Floats] = []
    done = 0
    for part in parts_of(X):
        rows = _encoded(adapter, part)
        if done + len(rows) <= len(X):
            leaves[:, done : done + len(rows)] = route(adapter.forest, rows)
        offset = adapter.offset(rows)
        offsets += [] if offset is None else [offset]
        done += len(rows)
    if done != len(X):
        raise InvalidInputError(
            f"X declares {len(X)} rows, but its batches have {done}. The file may have changed; open it again."
        )
    return None, leaves, np.concatenate(offsets) if offsets else None


def _encoded(adapter: Adapter, X: Any) -> NDArray[np.floating]:
    """Return the encoded rows; refuse missing values if the model refuses them."""
    rows = adapter.rows(X)
    if not adapter.routes_missing:
        check_missing(rows, adapter.forest.feature_names, type(adapter.model).__name__)
    return rows


def _group_codes(groups: Any, n_rows: int) -> NDArray[np.intp] | None:
    """Return the groups of the rows as integers; two rows have the same if their groups are equal."""
    if groups is None:
        return None
    groups = np.asarray(groups)
    if groups.shape != (n_rows,):
        raise InvalidInputError(
            f"groups has the shape {groups.shape}, but X has {n_rows} rows. Pass one group for each row: the number of "
            "its query or customer, not the sizes of the groups."
        )
    if groups.dtype.kind == "f" and np.isnan(groups).any():
        raise InvalidInputError("groups contains NaN. Pass a group for each row, or drop the rows without one.")
    return np.unique(groups, return_inverse=True)[1]


def _check_weight(sample_weight: Any, n_rows: int) -> Floats:
    if sample_weight is None:
        return np.ones(n_rows)
    try:
        weight = np.asarray(sample_weight, np.float64)
    except (TypeError, ValueError):
        raise InvalidInputError(
            f"sample_weight={sample_weight!r:.60} is not one number per row. Pass one weight per row."
        ) from None
    if weight.shape != (n_rows,):
        raise InvalidInputError(
            f"sample_weight has shape {weight.shape}, but X has {n_rows} rows. Pass one weight per row."
        )
    if not np.isfinite(weight).all() or (weight < 0).any() or not weight.any():
        raise InvalidInputError(
            "sample_weight contains NaN, infinite or negative values, or sums to zero. Fix or drop those rows."
        )
    largest = weight.max()
    if not 1 / LARGEST <= largest <= LARGEST:
        raise InvalidInputError(
            f"The largest sample_weight is {largest:g}, but it must be between {1 / LARGEST:g} and {LARGEST:g}, so "
            "that sums of weighted squares do not overflow. Divide all weights by their mean; this does not change "
            "the result."
        )
    return weight
