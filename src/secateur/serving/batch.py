"""Track the rows of a batch during lazy routing: purchased columns, prices paid, and the node reached in each tree."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from secateur.costs import PriceTable
from secateur.forest.routing import leaf_type, raw_scores
from secateur.kernels.serving.lazy_routing import ASKED, NOTHING, THERE, TOO_DEAR, next_column, walk
from secateur.serving.plan import Plan, Terms
from secateur.serving.results import CAPPED, COMPLETE, DECIDED, FAILED, OPEN

Places = NDArray[np.intp]


class BatchState:
    """Mutable state of a batch of rows: purchases, prices and the node reached in each tree.

    The caller alternates between `wanted`, which yields the columns to fetch, and `put` or `give_back`, which record
    the result, until `wanted` yields nothing. `secateur.kernels.serving.lazy_routing` documents the arrays `state`,
    `at`, `waits`, `gain`, `least` and `most`.

    Attributes
    ----------
    X : (n_rows, n_features)
        The encoded features, NaN where not acquired.
    owned : (n_rows, n_resources) bool
        The resources of the price table that are paid for.
    paid : (n_rows,)
        The total price of the purchases.
    order : (n_rows, n_columns) int16
        The position of each column in the sequence of purchases, −1 if not bought.
    stopped : (n_rows,) int8
        OPEN, or the reason why the row has stopped.
    """

    def __init__(self, plan: Plan, terms: Terms, price_table: PriceTable, n_rows: int) -> None:
        n_columns, forest = plan.columns.n_columns, plan.forest
        self.plan, self.terms, self.price_table = plan, terms, price_table
        self.X = np.full((n_rows, forest.n_features), np.nan, forest.input_dtype)
        self.state = np.zeros((n_rows, n_columns), np.uint8)
        start = plan.start(terms)
        self.at, self.waits = np.tile(start.at, (n_rows, 1)), np.tile(start.waits, (n_rows, 1))
        self.gain = np.tile(start.gain, (n_rows, 1))
        self.least, self.most = np.tile(start.least, (n_rows, 1)), np.tile(start.most, (n_rows, 1))
        self.owned = np.zeros((n_rows, price_table.prices.shape[1]), bool)
        self.paid = np.zeros(n_rows)
        self.order = np.full((n_rows, n_columns), -1, np.int16)
        self.count = np.zeros(n_rows, np.int16)
        self.missing = np.zeros((n_rows, n_columns), bool)
        self.stopped = np.full(n_rows, OPEN, np.int8)
        self.reasons: dict[int, str] = {}

    def wanted(self) -> Iterator[tuple[int, Places]]:
        """Yield each column to buy next with the rows that need it, and charge its price to them.

        First all trees advance as far as the values in X allow. Then rows stop for which every tree is at a leaf, the
        bounds settle the answer, or no needed column is affordable. Rows that wait for requested columns yield nothing.
        """
        # Invariant: `rows` and `wanted` stay aligned while rows that have stopped are removed from both.
        rows = np.flatnonzero(self.stopped == OPEN)
        under_way = (self.X, self.state, self.at, self.waits, self.gain, self.least, self.most)
        walk(rows, *under_way, *self.plan.walked(self.terms))
        wanted = self._next(rows)
        self.stopped[rows[wanted == NOTHING]] = COMPLETE
        rows, wanted = rows[wanted != NOTHING], wanted[wanted != NOTHING]
        if self.plan.bounds_matter(self.terms):
            sure = self.plan.sure(self.terms, self.least[rows], self.most[rows])
            self.stopped[rows[sure]] = DECIDED
            rows, wanted = rows[~sure], wanted[~sure]
        self.stopped[rows[wanted == TOO_DEAR]] = CAPPED
        rows, wanted = rows[wanted >= 0], wanted[wanted >= 0]
        # Group the remaining rows by column.
        order = np.argsort(wanted, kind="stable")
        columns, first = np.unique(wanted[order], return_index=True)
        for column, places in zip(columns.tolist(), np.split(rows[order], first)[1:], strict=True):
            self.state[places, column] = ASKED
            self._charge(column, places)
            yield column, places

    def _next(self, rows: Places) -> NDArray[np.int64]:
        wanted = np.empty(len(rows), np.int64)
        next_column(
            rows,
            self.state,
            self.waits,
            self.gain,
            self.price_table.resources,
            self.price_table.prices,
            self.owned,
            self.paid,
            np.inf if self.terms.max_cost is None else self.terms.max_cost,
            wanted,
        )
        return wanted

    def _charge(self, column: int, places: Places) -> None:
        for resource in self.price_table.resources[column]:
            if resource != -1:
                new = places[~self.owned[places, resource]]
                self.paid[new] += self.price_table.prices[new if len(self.price_table.prices) > 1 else 0, resource]
                self.owned[new, resource] = True

    def put(self, column: int, places: Places, missing: NDArray[np.bool_]) -> None:
        """Record that a column has arrived for some rows; its value may be missing."""
        self.state[places, column] = THERE
        self.order[places, column] = self.count[places]
        self.count[places] += 1
        self.missing[places, column] = missing

    def give_back(self, column: int, places: Places) -> None:
        """Record that a column is unavailable for some rows: treat it as missing and refund its price."""
        self.state[places, column] = THERE
        self.missing[places, column] = True
        # A group price may be shared with other columns. So all columns still paid for are charged anew from zero.
        self.owned[places], self.paid[places] = False, 0.0
        paid_for = (self.order[places] >= 0) | (self.state[places] == ASKED)
        for other in np.flatnonzero(paid_for.any(axis=0)).tolist():
            self._charge(other, places[paid_for[:, other]])

    def fail(self, places: Places) -> None:
        """Mark rows as failed: they get no prediction."""
        self.stopped[places] = FAILED

    def raw(self) -> NDArray[np.floating]:
        """Return the raw scores of the nodes the trees have reached, (n_rows, n_outputs)."""
        forest = self.plan.replacement
        leaves = np.ascontiguousarray((self.at - forest.root[None]).T, dtype=leaf_type(forest))
        return raw_scores(forest, leaves)

    def outcome(self) -> "Outcome":
        """Return the final results of the rows."""
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
        One of the codes OPEN, COMPLETE, DECIDED, CAPPED and FAILED of `secateur.serving.results`.
    reasons : dict of row: str
        Why a value is unavailable.
    """

    raw: NDArray[np.floating]
    paid: NDArray[np.float64]
    order: NDArray[np.int16]
    missing: NDArray[np.bool_]
    stopped: NDArray[np.int8]
    reasons: dict[int, str]
