"""Define the feature cost: the price of the distinct features a row needs, each bought once for all trees.

The features that rows need are counted by `secateur.kernels.feature_cost.row_items`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np

from secateur._util.text import quoted
from secateur.costs.base import Floats, PriceTable, SharedCost
from secateur.costs.price_file import read_prices
from secateur.data.rows import LocalRows
from secateur.data.targets import LARGEST
from secateur.errors import InvalidInputError
from secateur.forest import Forest
from secateur.forest.masks import NestedMasks

Groups = Mapping[str, tuple[float, Sequence[str | int]]]


@dataclass(frozen=True, eq=False)
class FeatureCost(SharedCost):
    """The price of the distinct features that trees test for a row, averaged over rows.

    A feature bought for a row is available to all trees and all later splits. Splits that a row does not reach cost it
    nothing, so the cost of a model varies from row to row.

    Parameters
    ----------
    prices : (n_features,), dict, or a file; optional
        A price for each feature, 0 for free ones, in the order of the model's features or by name. A .csv or .parquet
        file has the columns `feature` and `cost`, and optionally `group` and `discount_cost`: the price of a feature
        after another of its group has been bought. Default: 1 each, so that the cost is the number of distinct
        features.
    groups : dict of name: (price, features), optional
        A price paid once for a row that needs any feature of the group, in addition to the prices of the features.
    row_prices : (n_rows, n_features), optional
        The prices of the features for each of the rows passed, instead of `prices`.

    Examples
    --------
    >>> import secateur as sc
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    >>> tree.tree_.feature.tolist()
    [3, -2, 3, -2, -2]
    >>> sc.costs.FeatureCost([1, 1, 1, 2.5]).mean_price(tree, X)
    2.5
    """

    prices: Any = None
    groups: Groups | None = None
    row_prices: Any = None

    name = "features"

    def __post_init__(self) -> None:
        if self.row_prices is not None:
            _check_prices(np.asarray(self.row_prices, np.float64), "row_prices")
        for name, (price, _) in (self.groups or {}).items():
            _check_prices(np.array([price], np.float64), f"the price of group {name!r}")

    def price_table(self, forest: Forest, sample: LocalRows) -> PriceTable:
        """Return the resources and their prices for the rows of the sample.

        Raises
        ------
        InvalidInputError
            If prices or groups do not match the model or the rows.
        """
        listed, groups = self.listed
        if self.row_prices is None:
            feature_prices = _prices_by_feature(listed, forest)[None]
        else:
            feature_prices = self._prices_by_row(forest, sample)
        priced = np.flatnonzero((feature_prices > 0).any(axis=0))
        resources = np.full((forest.n_features, 2), -1, np.int32)
        resources[priced, 0] = np.arange(len(priced))
        for k, (name, (_, members)) in enumerate(groups.items()):
            indices = _feature_indices(members, forest, f"Group {name!r}")
            if (resources[indices, 1] != -1).any() or len(set(indices)) < len(indices):
                raise InvalidInputError(
                    f"Group {name!r} lists features that are already in a group, but a feature can be in one group "
                    "only. List each feature once."
                )
            resources[indices, 1] = len(priced) + k
        group_prices = np.array([price for price, _ in groups.values()], np.float64)
        prices = np.hstack([feature_prices[:, priced], np.tile(group_prices, (len(feature_prices), 1))])
        _check_largest(float(prices.max(initial=0.0)))
        return PriceTable(resources, np.ascontiguousarray(prices))

    def mean_price(self, model: Any, X: Any) -> float:
        """Return the average price of the distinct features that a model or Forest tests for the rows of X."""
        from secateur.forest.routing import route
        from secateur.libraries import adapt

        adapter = adapt(model)
        leaves = route(adapter.forest, adapter.rows(X))
        n_rows = leaves.shape[1]
        sample = LocalRows(leaves, np.zeros((n_rows, 1)), np.ones(n_rows))
        return float(self.totals(adapter.forest, sample, NestedMasks(np.ones(adapter.forest.n_nodes, np.int32), 1))[0])

    @cached_property
    def listed(self) -> tuple[Any, Groups]:
        """The prices and groups, read from the file if `prices` is one."""
        groups = dict(self.groups or {})
        if not isinstance(self.prices, str | PathLike):
            return self.prices, groups
        prices, more = read_prices(self.prices)
        return prices, {**more, **groups}

    def __getstate__(self) -> dict[str, Any]:
        """Return the state with the price file read: another machine may not have the file."""
        return {**self.__dict__, "listed": self.listed}

    def _prices_by_row(self, forest: Forest, sample: LocalRows) -> Floats:
        """Return the prices of the sample's rows, (n_rows, n_features)."""
        prices = np.asarray(self.row_prices, np.float64)
        n_rows = len(sample) if sample.row_index is None else int(sample.row_index.max(initial=-1)) + 1
        if prices.ndim != 2 or prices.shape[1] != forest.n_features or len(prices) < n_rows:
            raise InvalidInputError(
                f"row_prices has shape {prices.shape}, but there are {n_rows} rows and {forest.n_features} features. "
                "Pass one price for each row and feature."
            )
        if sample.row_index is not None:
            return prices[sample.row_index]
        if len(prices) != n_rows:
            raise InvalidInputError(
                f"row_prices has {len(prices)} rows, but X has {n_rows}. Pass one row of prices for each row of X."
            )
        return prices


def _prices_by_feature(prices: Any, forest: Forest) -> Floats:
    """Return the price of each feature, (n_features,)."""
    if prices is None:
        return np.ones(forest.n_features)
    if not isinstance(prices, Mapping):
        values = np.asarray(prices, np.float64)
        if values.shape != (forest.n_features,):
            raise InvalidInputError(
                f"prices has shape {values.shape}, but the model has {forest.n_features} features. Pass one price "
                "for each feature, in the model's order, or a dict by feature name."
            )
        return _check_prices(values, "prices")
    if forest.feature_names is None and all(isinstance(name, str) for name in prices):
        # The model has no feature names: use the order of the dict.
        return _prices_by_feature(list(prices.values()), forest)
    indices = _feature_indices(list(prices), forest, "prices")
    values = np.full(forest.n_features, np.nan)
    values[indices] = list(prices.values())
    missing = [_name(forest, int(k)) for k in np.flatnonzero(np.isnan(values)) if k not in set(indices)]
    if missing:
        raise InvalidInputError(
            f"prices has no entry for {quoted(missing)}, but each feature needs a price. Add the prices, 0 for free "
            "features."
        )
    return _check_prices(values, "prices")


def _feature_indices(features: Sequence[str | int], forest: Forest, what: str) -> list[int]:
    """Return the indices of features given by name or index."""
    index: dict[str | int, int] = {name: k for k, name in enumerate(forest.feature_names or ())}
    index.update({k: k for k in range(forest.n_features)})
    unknown = [feature for feature in features if feature not in index]
    if unknown:
        near = get_close_matches(str(unknown[0]), list(forest.feature_names or ()), n=1)
        hint = f"Did you mean {near[0]!r}?" if near else "Use the model's feature names, or indices from 0."
        raise InvalidInputError(
            f"{what} contains features that the model does not have: {quoted([str(name) for name in unknown])}. {hint}"
        )
    return [index[feature] for feature in features]


def _name(forest: Forest, k: int) -> str:
    """Return the name of a feature, or its index as text."""
    return forest.feature_names[k] if forest.feature_names else str(k)


def _check_largest(price: float) -> None:
    """Raise InvalidInputError if penalties on these prices, or sums of them, would overflow or underflow."""
    if price and not 1 / LARGEST <= price <= LARGEST:
        raise InvalidInputError(
            f"The largest price is {price:g}, but it must be between {1 / LARGEST:g} and {LARGEST:g}, so that sums of "
            "prices do not overflow. Give all prices in another unit."
        )


def _check_prices(values: Floats, what: str) -> Floats:
    """Return the prices; raise InvalidInputError if one is negative or not finite."""
    bad = ~(np.isfinite(values) & (values >= 0))
    if bad.any():
        raise InvalidInputError(
            f"{what} contains {values[bad].flat[0]:g}, but a price must be finite and at least 0. Correct that price."
        )
    return values
