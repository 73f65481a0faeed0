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
        A price paid once for a row that needs any feature of the group, in addition to the features' own prices.
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
        ValueError
            If prices or groups do not match the model or the rows.
        """
        listed, groups = self.listed
        own = _per_feature(listed, forest)[None] if self.row_prices is None else self._of_rows(forest, sample)
        priced = np.flatnonzero((own > 0).any(axis=0))
        resources = np.full((forest.n_features, 2), -1, np.int32)
        resources[priced, 0] = np.arange(len(priced))
        for k, (name, (_, members)) in enumerate(groups.items()):
            places = _places(members, forest, f"Group {name!r}")
            if (resources[places, 1] != -1).any() or len(set(places)) < len(places):
                raise ValueError(f"Group {name!r} has features that are in a group already. Name each feature once.")
            resources[places, 1] = len(priced) + k
        shared = np.array([price for price, _ in groups.values()], np.float64)
        prices = np.hstack([own[:, priced], np.tile(shared, (len(own), 1))])
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

    def _of_rows(self, forest: Forest, sample: LocalRows) -> Floats:
        """Return the prices of the sample's rows, (n_rows, n_features)."""
        prices = np.asarray(self.row_prices, np.float64)
        n_rows = len(sample) if sample.place is None else int(sample.place.max(initial=-1)) + 1
        if prices.ndim != 2 or prices.shape[1] != forest.n_features or len(prices) < n_rows:
            raise ValueError(
                f"row_prices has shape {prices.shape}; there are {n_rows} rows and {forest.n_features} features. "
                "Pass a price for every row and feature."
            )
        if sample.place is not None:
            return prices[sample.place]
        if len(prices) != n_rows:
            raise ValueError(f"row_prices has {len(prices)} rows, X has {n_rows}. Pass a price for every row.")
        return prices


def _per_feature(prices: Any, forest: Forest) -> Floats:
    """Return the price of each feature, (n_features,)."""
    if prices is None:
        return np.ones(forest.n_features)
    if not isinstance(prices, Mapping):
        values = np.asarray(prices, np.float64)
        if values.shape != (forest.n_features,):
            raise ValueError(
                f"prices has shape {values.shape}, but the model has {forest.n_features} features. Pass a price for "
                "each, in their order, or a dict by name."
            )
        return _check_prices(values, "prices")
    if forest.feature_names is None and all(isinstance(name, str) for name in prices):
        # The model has no feature names: use the order of the dict.
        return _per_feature(list(prices.values()), forest)
    places = _places(list(prices), forest, "prices")
    values = np.full(forest.n_features, np.nan)
    values[places] = list(prices.values())
    missing = [_name(forest, int(k)) for k in np.flatnonzero(np.isnan(values)) if k not in set(places)]
    if missing:
        raise ValueError(f"prices says nothing of {quoted(missing)}. Give a price for each feature, 0 for free ones.")
    return _check_prices(values, "prices")


def _places(features: Sequence[str | int], forest: Forest, what: str) -> list[int]:
    """Return the indices of features given by name or index."""
    number = {name: k for k, name in enumerate(forest.feature_names or ())}
    number.update({k: k for k in range(forest.n_features)})  # type: ignore[misc]
    unknown = [feature for feature in features if feature not in number]
    if unknown:
        near = get_close_matches(str(unknown[0]), list(forest.feature_names or ()), n=1)
        hint = (
            f" Did you mean {near[0]!r}?" if near else " Use the names the model was trained with, or numbers from 0."
        )
        raise ValueError(
            f"{what} names {quoted([str(name) for name in unknown])}, which the model does not know.{hint}"
        )
    return [number[feature] for feature in features]  # type: ignore[index]


def _name(forest: Forest, k: int) -> str:
    """Return the name of a feature, or its index as text."""
    return forest.feature_names[k] if forest.feature_names else str(k)


def _check_largest(price: float) -> None:
    """Raise ValueError if penalties on these prices, or sums of them, would overflow or underflow."""
    if price and not 1 / LARGEST <= price <= LARGEST:
        raise ValueError(
            f"The largest price is {price:g}; penalties and sums of prices need it between {1 / LARGEST:g} and "
            f"{LARGEST:g}. Give prices in another unit, which changes nothing else."
        )


def _check_prices(values: Floats, what: str) -> Floats:
    """Return the prices; raise ValueError if one is negative or not finite."""
    bad = ~(np.isfinite(values) & (values >= 0))
    if bad.any():
        raise ValueError(
            f"{what} has {values[bad].flat[0]:g} among its values; a price is a finite number, at least 0. Correct it."
        )
    return values
