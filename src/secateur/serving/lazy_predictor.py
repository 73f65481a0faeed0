"""A model that buys the features it needs, one by one, and stops when the answer is settled."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from secateur.costs import FeatureCost, PriceTable, SharedCost
from secateur.libraries import adapt
from secateur.libraries.adapter import Adapter
from secateur.serving.batch import BatchState, Outcome
from secateur.serving.encoding import Encoder
from secateur.serving.feature_columns import Purchasable, purchasable
from secateur.serving.plan import Options, Plan, Terms
from secateur.serving.purchases import Intake
from secateur.serving.results import FAILED, STOPPED, Answer, Answers, Feature, without
from secateur.serving.sources import FeatureSource, as_source, row_names

_CELLS = 20_000_000
"""How many places of trees and features a batch may have."""


@dataclass(frozen=True, eq=False)
class LazyPredictor:
    """Predicts rows whose features cost something: each is asked for when a tree needs it, and at most once.

    Which feature is bought next: the one for which the trees that wait for it leave open the most per price; what is
    free, or has been paid with a group, comes first.

    Parameters
    ----------
    model : fitted model or Forest
    cost : FeatureCost, optional
        Prices, groups, and prices by row. Default: 1 for each feature.
    example : DataFrame or array of one row, optional
        A row the model can predict. Needed where columns hold text or categories: it says how values are held, and
        stands in for what has not been bought.

    Notes
    -----
    `predict_one`, `predict_one_async` and `predict` share these options:

    same : "value", "leaves" or "label"
        What is the same as for the full model. "leaves": every tree goes to its leaf, so that the price is what
        `FeatureCost` says. "value": every number, to the last bit; parts of trees whose leaves all say the same are not
        walked. "label": the label, and buying ends when the trees that are left cannot change it; where nothing is
        known of how labels follow from sums (see `why_not_label`), this is "value".
    tolerance : float
        With same="value", for models that predict the sum or mean of their trees: the prediction is at most this far
        from the full one.
    max_cost : float, optional
        What may be paid for a row. When nothing more can be bought, trees answer with the node they stand at.
    missing : "model", "report" or "raise"
        What to do when a value is None or NaN or cannot be had. "model": follow the model's rule for missing values.
        "report": the row has no answer, and says so. "raise": raise FeatureUnavailableError. A missing value is paid
        for, one that raised an error is not.

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
                f"cost is a {type(self.cost).__name__}; prices of features are needed. Pass FeatureCost(prices)."
            )
        adapter = self.adapter
        if adapter.offset(np.zeros((1, adapter.forest.n_features), adapter.forest.input_dtype)) is not None:
            raise ValueError(
                "The model starts from the predictions of another model, which looks at all features of a row, so "
                "that nothing is left to save. Train it without init=."
            )
        self._intake.encoder.check()
        self._bill  # noqa: B018 - says what is wrong with the prices

    @cached_property
    def adapter(self) -> Adapter:
        """The model as secateur sees it."""
        return adapt(self.model)

    @cached_property
    def plan(self) -> Plan:
        """What is known before any row comes."""
        return Plan(self.adapter, self._columns, self.cost or FeatureCost())

    @cached_property
    def _columns(self) -> Purchasable:
        found = purchasable(self.adapter, self.example)
        listed: Any = self.cost.listed[0] if isinstance(self.cost, FeatureCost) else None
        named = isinstance(listed, dict) and all(isinstance(name, str) for name in listed)
        if found.names is None and named and len(listed) == found.n_columns:
            return replace(found, names=tuple(listed))
        return found

    @cached_property
    def _intake(self) -> Intake:
        return Intake(Encoder(self.adapter, self._columns, self.example), self.features)

    @cached_property
    def _bill(self) -> PriceTable:
        return self.plan.price_table(1 if self.row_prices is None else len(self.row_prices))

    @property
    def row_prices(self) -> Any:
        """Prices by row, if there are any."""
        return getattr(self.cost, "row_prices", None)

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """What `get` is asked for: names where the model, the example or the prices have them, else numbers from 0."""
        return self._columns.names or tuple(range(self._columns.n_columns))

    @property
    def features_used(self) -> tuple[Feature, ...]:
        """The features some split looks at."""
        return tuple(self.features[k] for k in np.unique(self.plan.asks[self.plan.forest.is_split]).tolist())

    @property
    def why_not_label(self) -> str | None:
        """Why same="label" does not stop early for this model; None if it does."""
        return self.plan.rule if isinstance(self.plan.rule, str) else None

    def full_price(self, n_rows: int = 1) -> NDArray[np.float64]:
        """Return what rows cost for which every feature is bought that any split looks at, (n_rows,)."""
        price_table = self.plan.price_table(n_rows)
        resources = np.unique(price_table.resources[np.unique(self.plan.asks[self.plan.forest.is_split])])
        return np.broadcast_to(price_table.prices[:, resources[resources >= 0]].sum(axis=1), (n_rows,))

    def predict_one(self, get: Callable[[Feature], Any], *, row: int = 0, **terms: Unpack[Options]) -> Answer:
        """Return the prediction for one row, `get(feature)` being called for each feature needed, once.

        `row` says which of the cost's `row_prices` are this row's.

        Raises
        ------
        FeatureUnavailableError
            If a value cannot be had and there is no rule for that, unless missing="report".
        """
        batch = self._basket(Terms(**terms), row)
        while step := list(batch.wanted()):
            for column, _ in step:
                self._intake.take_one(batch, column, _outcome(get, self.features[column]))
        return self._answers([batch.outcome()])[0]

    async def predict_one_async(
        self, get: Callable[[Feature], Awaitable[Any]], *, row: int = 0, at_once: int = 1, **terms: Unpack[Options]
    ) -> Answer:
        """Do what `predict_one` does with a `get` that is awaited.

        `at_once` features are asked for at the same time. With same="leaves" or "value" all of them are needed, so
        that waiting is all that is saved or lost; with "label" or a cap, more may be bought than one by one.
        """
        _check_count(at_once, "at_once")
        batch = self._basket(Terms(**terms), row)
        while columns := _several(batch, at_once):
            asked = [_await_outcome(get, self.features[column]) for column in columns]
            for column, found in zip(columns, await asyncio.gather(*asked), strict=True):
                self._intake.take_one(batch, column, found)
        return self._answers([batch.outcome()])[0]

    def predict(
        self, source: Any, rows: Sequence[Any] | None = None, *, batch_size: int | None = None, **terms: Unpack[Options]
    ) -> Answers:
        """Return the predictions for many rows, the source being asked for one feature of many rows at a time.

        Parameters
        ----------
        source : FeatureSource, or what `as_source` makes one of
            A table, a dict of columns, a function get(feature, row), or a database as `Sql`.
        rows : sequence, optional
            What the source knows the rows by: places in a table, keys in a database. Default: all, if it can count.
        batch_size : int, optional
            How many rows are under way together; default: as many as fit some hundred megabytes.

        Raises
        ------
        FeatureUnavailableError
            If missing="raise" and a value cannot be had. Otherwise rows fail one by one, and others are not affected.
        """
        agreed, asked = Terms(**terms), as_source(source, self.features)
        self.plan.check(agreed)
        if batch_size is not None:
            _check_count(batch_size, "batch_size")
        names = row_names(asked, rows)
        if hasattr(asked, "check"):
            asked.check(self.features_used, names)
        price_table = self.plan.price_table(len(names))
        cells = self.plan.forest.n_trees + self.plan.forest.n_features + 4 * self._columns.n_columns
        step = batch_size or max(1, _CELLS // max(cells, 1))
        outcomes = []
        for first in range(0, len(names), step):
            some = names[first : first + step]
            prices = price_table.prices[first : first + step] if len(price_table.prices) > 1 else price_table.prices
            batch = BatchState(self.plan, agreed, PriceTable(price_table.resources, prices), len(some))
            self._shop(batch, asked, some)
            outcomes.append(batch.outcome())
        return self._answers(outcomes)

    def _basket(self, terms: Terms, row: int) -> BatchState:
        """Return a basket for one row."""
        self.plan.check(terms)
        prices = self._bill.prices
        if self.row_prices is not None:
            if not 0 <= row < len(prices):
                raise ValueError(
                    f"row is {row}, but there are prices for rows 0 to {len(prices) - 1}. Name one of them."
                )
            prices = prices[row : row + 1]
        return BatchState(self.plan, terms, PriceTable(self._bill.resources, prices), 1)

    def _shop(self, batch: BatchState, source: FeatureSource, names: NDArray[Any]) -> None:
        """Buy for all rows what they need."""
        while step := list(batch.wanted()):
            for column, places in step:
                try:
                    found = source.fetch(self.features[column], names[places])
                except Exception as error:
                    found = [error] * len(places)
                self._intake.take(batch, column, places, found, names)

    def _answers(self, outcomes: list[Outcome]) -> Answers:
        """Return what has become of the rows of all batches."""
        parts = list(zip(*outcomes, strict=True))
        raw, paid, order, missing, stopped = (np.concatenate(part) for part in parts[:5])
        starts = np.cumsum([0, *(len(outcome.paid) for outcome in outcomes)]).tolist()
        reasons = zip(starts, parts[5], strict=False)
        return Answers(
            prediction=without(np.asarray(self.adapter.predict(raw)), stopped == FAILED),
            price=paid,
            order=order,
            missing=missing,
            stopped=STOPPED[stopped],
            reasons={start + k: why for start, found in reasons for k, why in found.items()},
            features=self.features,
            raw=raw,
            source=self.adapter,
        )


def _check_count(count: int, what: str) -> None:
    if count < 1:
        raise ValueError(f"{what} is {count}; a number of at least 1 is needed.")


def _several(batch: BatchState, at_once: int) -> list[int]:
    """Return up to so many columns to buy for the one row of a basket, the best first."""
    columns: list[int] = []
    while len(columns) < at_once and (step := list(batch.wanted())):
        columns.append(step[0][0])
    return columns


def _outcome(get: Callable[[Feature], Any], feature: Feature) -> Any:
    """Return a value, or the error that came instead."""
    try:
        return get(feature)
    except Exception as error:
        return error


async def _await_outcome(get: Callable[[Feature], Awaitable[Any]], feature: Feature) -> Any:
    """Return a value, or the error that came instead."""
    try:
        return await get(feature)
    except Exception as error:
        return error
