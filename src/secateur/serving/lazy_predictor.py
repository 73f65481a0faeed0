"""Predict rows by acquiring features one by one, and stop when the prediction is certain."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from secateur.costs import FeatureCost, PriceTable, SharedCost
from secateur.errors import InvalidInputError, UnsupportedModelError
from secateur.libraries import adapt
from secateur.libraries.adapter import Adapter
from secateur.libraries.input_columns import InputColumns
from secateur.serving.batch import BatchState, Outcome
from secateur.serving.encoding import Encoder
from secateur.serving.plan import Options, Plan, Terms
from secateur.serving.purchases import ColumnWriter
from secateur.serving.results import FAILED, STOPPED, Answer, Answers, Feature, mask_failed
from secateur.serving.sources import FeatureSource, as_source, row_names

_CELLS = 20_000_000
"""Upper limit of rows · (trees + features + 4 · columns) in one batch; it bounds the memory of `BatchState`."""


@dataclass(frozen=True, eq=False)
class LazyPredictor:
    """Predict rows whose features have a price: buy each feature when a split needs it, and at most once per row.

    The next feature is chosen greedily. Every tree that waits for a feature contributes the range of leaf values it can
    still reach; the feature with the largest sum of ranges per unit of price is bought first. Features that are free,
    or already paid for with their group, come before all others.

    Parameters
    ----------
    model : fitted model or Forest
    cost : FeatureCost, optional
        Prices, groups, and prices by row. Default: 1 for each feature.
    example : DataFrame or array of one row, optional
        A row the model can predict. Needed where columns hold text or categories: it gives the column types, and its
        values fill the columns that have not been bought.

    Notes
    -----
    `predict_one`, `predict_one_async` and `predict` share these options:

    same : "value", "leaves" or "label"
        Which output must equal that of the full model. "leaves": every tree routes the row to its leaf, so the price
        equals that of `FeatureCost`. "value": the prediction is bit-identical; subtrees whose leaves all have the same
        value are not traversed. "label": the label is the same, and buying stops when the remaining trees cannot
        change it; if the rule from scores to labels is not known (see `why_not_label`), this is "value".
    tolerance : float
        With same="value", for models that predict the sum or mean of their trees: the largest allowed difference from
        the full prediction.
    max_cost : float, optional
        The price limit for a row, with a relative tolerance of 1e-12: prices 0.1 and 0.2 are within max_cost=0.3,
        although their floating-point sum is larger. When no further feature is affordable, each tree contributes the
        value of the node it has reached.
    missing : "model", "report" or "raise"
        How to treat a value that is None, NaN or unavailable. "model": follow the model's rule for missing values; if
        the answer depends on a value whose retrieval raised an error, it is not certain.
        "report": the row gets no prediction, and the answer gives the reason. "raise": raise FeatureUnavailableError.
        A missing value is paid for; a value whose retrieval raised an error is not.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from secateur.serving import LazyPredictor
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = RandomForestClassifier(20, random_state=0).fit(X, y)
    >>> answer = LazyPredictor(model).predict_one(X.iloc[0].get, same="label")
    >>> int(answer.prediction), answer.features
    (0, ('petal width (cm)', 'sepal length (cm)'))
    """

    model: Any
    cost: SharedCost | None = None
    example: Any = None

    def __post_init__(self) -> None:
        if self.cost is not None and not isinstance(self.cost, SharedCost):
            raise TypeError(
                f"cost is a {type(self.cost).__name__}, but lazy prediction requires feature prices. "
                "Pass FeatureCost(prices)."
            )
        adapter = self.adapter
        if adapter.offset(np.zeros((1, adapter.forest.n_features), adapter.forest.input_dtype)) is not None:
            raise UnsupportedModelError(
                "The model starts from the predictions of another model (init=), which uses all features of a row, so "
                "no feature can be saved. Pass a model trained without init=."
            )
        self._writer.encoder.check()
        # Compute the price table now, so that invalid prices raise here.
        self._price_table  # noqa: B018

    @cached_property
    def adapter(self) -> Adapter:
        """The adapter of the model."""
        return adapt(self.model)

    @cached_property
    def plan(self) -> Plan:
        """The quantities that do not depend on rows: bounds below each node, columns, prices, label rule."""
        return Plan(self.adapter, self._columns, self.cost or FeatureCost())

    @cached_property
    def _columns(self) -> InputColumns:
        columns = self.adapter.input_columns()
        if len(getattr(self.example, "columns", ())) == columns.n_columns:
            return replace(columns, names=tuple(str(name) for name in self.example.columns))
        prices: Any = self.cost.listed[0] if isinstance(self.cost, FeatureCost) else None
        named = isinstance(prices, dict) and all(isinstance(name, str) for name in prices)
        if columns.names is None and named and len(prices) == columns.n_columns:
            return replace(columns, names=tuple(prices))
        return columns

    @cached_property
    def _writer(self) -> ColumnWriter:
        return ColumnWriter(Encoder(self.adapter, self._columns, self.example), self.features)

    @cached_property
    def _price_table(self) -> PriceTable:
        return self.plan.price_table(1 if self.row_prices is None else len(self.row_prices))

    @property
    def row_prices(self) -> Any:
        """The prices by row, (n_rows, n_columns), or None."""
        return None if self.cost is None else self.cost.row_prices

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """The keys passed to `get`: names given by the model, the example or the prices, else numbers from 0."""
        return self._columns.names or tuple(range(self._columns.n_columns))

    @property
    def features_used(self) -> tuple[Feature, ...]:
        """The features used by at least one split."""
        return tuple(self.features[k] for k in np.unique(self.plan.split_column[self.plan.forest.is_split]).tolist())

    @property
    def why_not_label(self) -> str | None:
        """The reason why same="label" cannot stop early for this model; None if it can."""
        return self.plan.rule if isinstance(self.plan.rule, str) else None

    def full_price(self, n_rows: int = 1) -> NDArray[np.float64]:
        """Return the price of each row if every feature used by the model is bought, (n_rows,)."""
        price_table = self.plan.price_table(n_rows)
        resources = np.unique(price_table.resources[np.unique(self.plan.split_column[self.plan.forest.is_split])])
        return np.broadcast_to(price_table.prices[:, resources[resources >= 0]].sum(axis=1), (n_rows,))

    def predict_one(self, get: Callable[[Feature], Any], *, row: int = 0, **options: Unpack[Options]) -> Answer:
        """Return the prediction for one row; call `get(feature)` once for each feature needed.

        `row` is the index of this row in the cost's `row_prices`.

        Raises
        ------
        FeatureUnavailableError
            If a value is unavailable and the model has no rule for missing values, unless missing="report".
        """
        batch = self._single_row_batch(Terms(**options), row)
        while step := list(batch.purchases()):
            for column, _ in step:
                self._writer.write_one(batch, column, _value_or_error(get, self.features[column]))
        return self._answers([batch.outcome()])[0]

    async def predict_one_async(
        self, get: Callable[[Feature], Awaitable[Any]], *, row: int = 0, at_once: int = 1, **options: Unpack[Options]
    ) -> Answer:
        """Return the prediction for one row, as `predict_one` does, with an asynchronous `get`.

        Up to `at_once` features are requested concurrently. With same="leaves" or "value" every requested feature is
        needed anyway, so concurrency only changes latency. With "label" or `max_cost`, more features may be bought
        than with sequential requests.
        """
        _check_count(at_once, "at_once")
        batch = self._single_row_batch(Terms(**options), row)
        while columns := _next_columns(batch, at_once):
            requests = [_await_value_or_error(get, self.features[column]) for column in columns]
            for column, found in zip(columns, await asyncio.gather(*requests), strict=True):
                self._writer.write_one(batch, column, found)
        return self._answers([batch.outcome()])[0]

    def predict(
        self,
        source: Any,
        rows: Sequence[Any] | None = None,
        *,
        batch_size: int | None = None,
        **options: Unpack[Options],
    ) -> Answers:
        """Return the predictions for many rows; fetch one feature for many rows at a time.

        Parameters
        ----------
        source : FeatureSource, or an object that `as_source` can convert
            A table, a dict of columns, a function get(feature, row), or a database as `Sql`.
        rows : sequence, optional
            The identifiers of the rows in the source: positions in a table, keys in a database. Default: all rows, if
            the source has a length.
        batch_size : int, optional
            Number of rows processed together. Default: as many as fit into some hundred megabytes.

        Raises
        ------
        FeatureUnavailableError
            If missing="raise" and a value is unavailable. Otherwise only the affected rows fail.
        """
        terms, feature_source = Terms(**options), as_source(source, self.features)
        self.plan.check(terms)
        if batch_size is not None:
            _check_count(batch_size, "batch_size")
        names = row_names(feature_source, rows)
        if hasattr(feature_source, "check"):
            feature_source.check(self.features_used, names)
        price_table = self.plan.price_table(len(names))
        cells = self.plan.forest.n_trees + self.plan.forest.n_features + 4 * self._columns.n_columns
        step = batch_size or max(1, _CELLS // max(cells, 1))
        outcomes = []
        for first in range(0, len(names), step):
            batch_names = names[first : first + step]
            prices = price_table.prices[first : first + step] if len(price_table.prices) > 1 else price_table.prices
            batch = BatchState(self.plan, terms, PriceTable(price_table.resources, prices), len(batch_names))
            self._fetch_all(batch, feature_source, batch_names)
            outcomes.append(batch.outcome())
        return self._answers(outcomes)

    def _single_row_batch(self, terms: Terms, row: int) -> BatchState:
        """Return the batch state of a single row."""
        self.plan.check(terms)
        prices = self._price_table.prices
        if self.row_prices is not None:
            if not 0 <= row < len(prices):
                raise InvalidInputError(
                    f"row is {row}, but row_prices has prices for rows 0 to {len(prices) - 1}. Pass one of these rows."
                )
            prices = prices[row : row + 1]
        return BatchState(self.plan, terms, PriceTable(self._price_table.resources, prices), 1)

    def _fetch_all(self, batch: BatchState, source: FeatureSource, names: NDArray[Any]) -> None:
        """Fetch features for all rows of a batch until every row has stopped."""
        # Invariant: every (row, column) pair is fetched at most once, since `purchases` marks the pairs it yields.
        while step := list(batch.purchases()):
            for column, batch_rows in step:
                try:
                    found = source.fetch(self.features[column], names[batch_rows])
                except Exception as error:
                    found = [error] * len(batch_rows)
                self._writer.write(batch, column, batch_rows, found, names)

    def _answers(self, outcomes: list[Outcome]) -> Answers:
        """Return the outcomes of all batches as one `Answers`."""
        parts = list(zip(*outcomes, strict=True))
        raw, paid, order, missing, stopped = (np.concatenate(part) for part in parts[:5])
        starts = np.cumsum([0, *(len(outcome.paid) for outcome in outcomes)]).tolist()
        reasons = zip(starts, parts[5], strict=False)
        return Answers(
            prediction=mask_failed(np.asarray(self.adapter.predict(raw)), stopped == FAILED),
            price=paid,
            order=order,
            missing=missing,
            stopped=STOPPED[stopped],
            reasons={start + k: reason for start, found in reasons for k, reason in found.items()},
            features=self.features,
            raw=raw,
            source=self.adapter,
        )


def _check_count(count: int, name: str) -> None:
    if count < 1:
        raise InvalidInputError(f"{name} is {count}, but it must be at least 1. Pass a positive integer.")


def _next_columns(batch: BatchState, at_once: int) -> list[int]:
    """Return up to `at_once` columns to buy for the row of a single-row batch, best first."""
    columns: list[int] = []
    while len(columns) < at_once and (step := list(batch.purchases())):
        columns.append(step[0][0])
    return columns


def _value_or_error(get: Callable[[Feature], Any], feature: Feature) -> Any:
    """Return the value of a feature, or the exception that `get` raised."""
    try:
        return get(feature)
    except Exception as error:
        return error


async def _await_value_or_error(get: Callable[[Feature], Awaitable[Any]], feature: Feature) -> Any:
    """Return the awaited value of a feature, or the exception that `get` raised."""
    try:
        return await get(feature)
    except Exception as error:
        return error
