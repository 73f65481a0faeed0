"""Describe the features of a path for the report: splits per feature, price paid per feature, price per row."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.costs import Cost, PriceTable, needs
from secateur.data.rows import LocalRows
from secateur.forest.masks import NestedMasks
from secateur.forest.subforest import check_keep, kept_splits
from secateur.path import Path
from secateur.path.combine import JoinedPath
from secateur.plotting.split_labels import feature_name
from secateur.reporting._json import rounded

MOST_FEATURES = 60
_BINS = 24


def describe_features(path: Path) -> dict[str, Any]:
    """Return the number of splits on each feature as steps (point, count), sorted by the number before pruning."""
    forest = path.forest
    before = np.bincount(forest.feature[forest.is_split], minlength=forest.n_features)
    order = np.argsort(-before, kind="stable")
    used = order[before[order] > 0]
    shown = used[:MOST_FEATURES]
    counts = _splits_by_feature(path)[:, shown]
    return {
        "names": [feature_name(forest, int(k)) for k in shown],
        "steps": [_steps(column) for column in counts.T],
        "not_shown": len(used) - len(shown),
        "number": [int(k) for k in shown],
    }


def _splits_by_feature(path: Path) -> NDArray[np.int64]:
    """Return the number of splits on each feature at each point, (n_points, n_features)."""
    forest = path.forest
    counts = np.zeros((len(path), forest.n_features), np.int64)
    if isinstance(path.masks, NestedMasks) and not isinstance(path, JoinedPath):
        # A split disappears with its left child. Count removals by point, then sum from the last point backwards.
        split = np.flatnonzero(forest.is_split)
        removed_at = np.minimum(path.masks.removed_at[split + 1], len(path))
        change = np.zeros((len(path) + 1, forest.n_features), np.int64)
        np.add.at(change, (removed_at, forest.feature[split]), 1)
        return np.cumsum(change[::-1], axis=0)[::-1][1:]
    for point in range(len(path)):
        if isinstance(path, JoinedPath):
            used = path[point].forest.feature
            counts[point] = np.bincount(used[used >= 0], minlength=forest.n_features)
            continue
        keep = path.masks.keep(point)
        split_now = kept_splits(forest, keep, check_keep(forest, keep))
        counts[point] = np.bincount(forest.feature[split_now], minlength=forest.n_features)
    return counts


def _steps(column: NDArray[np.int64]) -> list[tuple[int, int]]:
    points = np.flatnonzero(np.diff(column, prepend=-1))
    return [(int(point), int(column[point])) for point in points]


def describe_bills(
    path: Path, sample: LocalRows, cost: Cost, points: NDArray[np.intp], shown: list[int]
) -> dict[str, Any]:
    """Return the feature cost of the rows at some points: the mean per feature, and a histogram over rows."""
    forest = path.forest
    price_table = cost.price_table(forest, sample)
    row_weight = sample.weight / sample.total_weight
    row_prices, resources, low, high = [], [], np.inf, 0.0
    for needed in needs(forest, sample, path.masks.take(points), price_table):
        price = (needed * price_table.prices).sum(axis=1)
        low, high = min(low, price.min()), max(high, price.max())
        row_prices.append(price)
        resources.append(row_weight @ (needed * price_table.prices))
    edges = np.linspace(min(low, high), high if high > low else low + 1.0, _BINS + 1)
    mean = np.array([row_weight @ price for price in row_prices])
    row_quantiles = [np.quantile(price, [0.1, 0.5, 0.9]) for price in row_prices]
    return {
        "edges": rounded(edges, 6),
        "rows": [np.histogram(price, edges)[0].tolist() for price in row_prices],
        "mean": mean.tolist(),
        "quantiles": [rounded(quantiles, 6) for quantiles in row_quantiles],
        "paid": [rounded(_by_feature(price_table, resource)[shown], 6) for resource in resources],
        "price": rounded(np.append(price_table.prices.mean(axis=0), 0.0)[price_table.resources[shown, 0]], 6),
        "groups": [rounded(resource[_group_resources(price_table)], 6) for resource in resources],
    }


def _by_feature(price_table: PriceTable, paid: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the amount paid for each feature without its group price, (n_features,)."""
    return np.append(paid, 0.0)[price_table.resources[:, 0]]


def _group_resources(price_table: PriceTable) -> NDArray[np.integer]:
    """Return the resources shared by the features of a group."""
    return np.unique(price_table.resources[price_table.resources[:, 1] != -1, 1])
