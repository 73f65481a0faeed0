"""Track the rows of a batch during lazy routing: purchased columns, prices paid, and the node reached in each tree."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from secateur.costs import PriceTable
from secateur.forest.routing import leaf_type, raw_scores
from secateur.kernels.serving.lazy_routing import (
    ARRIVED,
    NOTHING,
    REQUESTED,
    UNAFFORDABLE,
    Progress,
    advance,
    next_column,
)
from secateur.serving.plan import Plan, Terms
from secateur.serving.results import CAPPED, COMPLETE, DECIDED, FAILED, OPEN, UNAVAILABLE

RowIndex = NDArray[np.intp]


class BatchState:
    """Mutable state of a batch of rows: purchases, prices and the node reached in each tree.

    The caller alternates between `purchases`, which yields the columns to fetch, and `record` or `refund`, which store
    the result, until `purchases` yields nothing.

    Attributes
    ----------
    progress : Progress
        The columns requested, the node reached in each tree, and bounds of the scores.
    X : (n_rows, n_features)
        The encoded features, NaN where not acquired.
    owned : (n_rows, n_resources) bool
        The resources of the price table that are paid for.
    paid : (n_rows,)
        The total price of the purchases.
    order : (n_rows, n_columns) int16
        The position of each column in the sequence of purchases, −1 if not bought.
    unavailable : (n_rows, n_columns) bool
        The columns whose retrieval failed; they are routed as missing.
    stopped : (n_rows,) int8
        OPEN, or the reason why the row has stopped.
    """

    def __init__(self, plan: Plan, terms: Terms, price_table: PriceTable, n_rows: int) -> None:
        n_columns, forest = plan.columns.n_columns, plan.forest
        self.plan, self.terms, self.price_table = plan, terms, price_table
        self.X = np.full((n_rows, forest.n_features), np.nan, forest.input_dtype)
        self.progress = self._start(n_rows)
        self.owned = np.zeros((n_rows, price_table.prices.shape[1]), bool)
        self.paid = np.zeros(n_rows)
        self.order = np.full((n_rows, n_columns), -1, np.int16)
        self.count = np.zeros(n_rows, np.int16)
        self.missing = np.zeros((n_rows, n_columns), bool)
        self.unavailable = np.zeros((n_rows, n_columns), bool)
        self.stopped = np.full(n_rows, OPEN, np.int8)
        self.reasons: dict[int, str] = {}

    def purchases(self) -> Iterator[tuple[int, RowIndex]]:
        """Yield each column to buy next with the rows that need it, and charge its price to them.

        First all trees advance as far as the values in X allow. Then a row stops if every tree is at a leaf, the bounds
        determine the answer, or no needed column is affordable. Rows that wait for requested columns yield nothing.
        """
        # Invariant: `rows` and `chosen` stay aligned while rows that have stopped are removed from both.
        rows = np.flatnonzero(self.stopped == OPEN)
        plan, progress = self.plan, self.progress
        self._advance(rows, self.X, progress)
        chosen = self._next_columns(rows)
        self.stopped[rows[chosen == NOTHING]] = COMPLETE
        rows, chosen = rows[chosen != NOTHING], chosen[chosen != NOTHING]
        if plan.can_stop_early(self.terms):
            certain = plan.is_certain(self.terms, progress.lower[rows], progress.upper[rows])
            self.stopped[rows[certain]] = DECIDED
            rows, chosen = rows[~certain], chosen[~certain]
        self.stopped[rows[chosen == UNAFFORDABLE]] = CAPPED
        rows, chosen = rows[chosen >= 0], chosen[chosen >= 0]
        # Group the remaining rows by column.
        order = np.argsort(chosen, kind="stable")
        columns, first = np.unique(chosen[order], return_index=True)
        for column, rows_of_column in zip(columns.tolist(), np.split(rows[order], first)[1:], strict=True):
            progress.state[rows_of_column, column] = REQUESTED
            self._charge(column, rows_of_column)
            yield column, rows_of_column

    def _start(self, n_rows: int) -> Progress:
        return Progress._make(np.tile(array, (n_rows, 1)) for array in self.plan.start(self.terms))

    def _advance(self, rows: RowIndex, X: NDArray[np.floating], progress: Progress) -> None:
        plan = self.plan
        subtrees = plan.subtrees(self.terms)
        advance(rows, X, progress, plan.splits, plan.categories, subtrees, plan.forest.tree_output)

    def _next_columns(self, rows: RowIndex) -> NDArray[np.int64]:
        chosen = np.empty(len(rows), np.int64)
        next_column(
            rows,
            self.progress.state,
            self.progress.needed,
            self.progress.gain,
            self.price_table.resources,
            self.price_table.prices,
            self.owned,
            self.paid,
            np.inf if self.terms.max_cost is None else self.terms.max_cost,
            chosen,
        )
        return chosen

    def _charge(self, column: int, rows: RowIndex) -> None:
        for resource in self.price_table.resources[column]:
            if resource != -1:
                unpaid = rows[~self.owned[rows, resource]]
                prices = self.price_table.prices
                self.paid[unpaid] += prices[unpaid if len(prices) > 1 else 0, resource]
                self.owned[unpaid, resource] = True

    def record(self, column: int, rows: RowIndex, missing: NDArray[np.bool_]) -> None:
        """Record that a column has arrived for some rows; its value may be missing."""
        self.progress.state[rows, column] = ARRIVED
        self.order[rows, column] = self.count[rows]
        self.count[rows] += 1
        self.missing[rows, column] = missing

    def refund(self, column: int, rows: RowIndex) -> None:
        """Record that a column is unavailable for some rows: treat it as missing and refund its price."""
        self.progress.state[rows, column] = ARRIVED
        self.missing[rows, column] = self.unavailable[rows, column] = True
        # A group price may be shared with other columns, so all columns still paid for are charged again from zero.
        self.owned[rows], self.paid[rows] = False, 0.0
        paid_for = (self.order[rows] >= 0) | (self.progress.state[rows] == REQUESTED)
        for other in np.flatnonzero(paid_for.any(axis=0)).tolist():
            self._charge(other, rows[paid_for[:, other]])

    def fail(self, rows: RowIndex) -> None:
        """Mark rows as failed: they get no prediction."""
        self.stopped[rows] = FAILED

    def _mark_dependent_on_unavailable(self) -> None:
        """Mark the rows whose answer could differ if their unavailable columns were known.

        They are routed again as if these columns had not been bought: the answer is certain if every tree still
        reaches a leaf, or the bounds determine it.
        """
        answered = (self.stopped == COMPLETE) | (self.stopped == DECIDED)
        rows = np.flatnonzero(answered & self.unavailable.any(axis=1))
        if not len(rows):
            return
        progress = self._start(len(rows))
        progress.state[:] = np.where(self.unavailable[rows], 0, self.progress.state[rows])
        self._advance(np.arange(len(rows)), self.X[rows], progress)
        certain = (progress.needed == -1).all(axis=1)
        if self.plan.can_stop_early(self.terms):
            certain |= self.plan.is_certain(self.terms, progress.lower, progress.upper)
        self.stopped[rows[~certain]] = UNAVAILABLE

    def raw(self) -> NDArray[np.floating]:
        """Return the raw scores of the nodes the trees have reached, (n_rows, n_outputs)."""
        forest = self.plan.replacement
        leaves = np.ascontiguousarray((self.progress.at - forest.root[None]).T, dtype=leaf_type(forest))
        return raw_scores(forest, leaves)

    def outcome(self) -> "Outcome":
        """Return the final results of the rows."""
        self._mark_dependent_on_unavailable()
        return Outcome(self.raw(), self.paid, self.order, self.missing, self.stopped, self.reasons)


class Outcome(NamedTuple):
    """Results of a batch.

    Attributes
    ----------
    raw : (n_rows, n_outputs)
        Raw scores, before the link.
    paid : (n_rows,)
        Total price of the purchases.
    order : (n_rows, n_columns)
        Position of each column in the sequence of purchases, −1 if not bought.
    missing : (n_rows, n_columns)
        Requested columns without a value.
    stopped : (n_rows,)
        One of the codes OPEN, COMPLETE, DECIDED, CAPPED, FAILED and UNAVAILABLE of `secateur.serving.results`.
    reasons : dict of row: str
        Why a value is unavailable.
    """

    raw: NDArray[np.floating]
    paid: NDArray[np.float64]
    order: NDArray[np.int16]
    missing: NDArray[np.bool_]
    stopped: NDArray[np.int8]
    reasons: dict[int, str]
