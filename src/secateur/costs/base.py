"""What a cost is: something to be paid for a pruned forest."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.data.row_source import RowSource
from secateur.data.rows import LocalRows, weight_at_nodes
from secateur.forest import Forest
from secateur.forest.masks import Masks

Floats = NDArray[np.float64]


class Cost(ABC):
    """Something to be paid for a forest."""

    name: ClassVar[str]

    @abstractmethod
    def totals(self, forest: Forest, row_source: RowSource, masks: Masks) -> Floats:
        """Return what the forest costs at each point, for rows like these, (n_points,)."""


class AdditiveCost(Cost):
    """A cost that is a sum over nodes, each with a price as a leaf and one as a split."""

    @abstractmethod
    def prices(self, forest: Forest, reach: Floats) -> tuple[Floats, Floats]:
        """Return what each node costs as a leaf and what it costs as a split, both (n_nodes,).

        `reach` (n_nodes,) is the share of the rows that come to each node.
        """

    def totals(self, forest: Forest, row_source: RowSource, masks: Masks) -> Floats:
        """Return the sums of the prices."""
        reach = row_source.total(forest, weight_at_nodes) / row_source.total_weight
        return masks.totals(forest, *self.prices(forest, reach))


class PriceTable(NamedTuple):
    """What can be bought for a row: features with a price of their own, and what features of a group share.

    Attributes
    ----------
    resources : (n_features, 2) int32
        What a feature needs, −1 for nothing.
    prices : (n_rows or 1, n_resources)
        For each row, or for all.
    """

    resources: NDArray[np.int32]
    prices: Floats


class SharedCost(Cost):
    """What is bought for rows, each resource once for a row, at whatever split of whatever tree needs it first."""

    @abstractmethod
    def price_table(self, forest: Forest, sample: LocalRows) -> PriceTable:
        """Return what can be bought for the rows of the sample, and for how much."""

    def totals(self, forest: Forest, row_source: RowSource, masks: Masks) -> Floats:
        """Return what is bought for a row at each point, on average."""
        return row_source.total(forest, partial(self._paid, masks=masks)) / row_source.total_weight

    def _paid(self, forest: Forest, sample: LocalRows, masks: Masks) -> Floats:
        return paid(forest, sample, masks, self.price_table(forest, sample))


def needs(forest: Forest, sample: LocalRows, masks: Masks, price_table: PriceTable) -> Iterator[NDArray[np.bool_]]:
    """Yield for every point which resources each row needs, (n_rows, n_resources)."""
    n_resources = price_table.prices.shape[1]
    for points, until in masks.lifetimes(forest):
        last = kernels.needed_until(
            sample.leaves, forest.tree_start, forest.parent, forest.feature, until, price_table.resources, n_resources
        )
        for point in range(points.stop - points.start):
            yield last > point


def paid(forest: Forest, sample: LocalRows, masks: Masks, price_table: PriceTable) -> Floats:
    """Return what is bought for all rows together at each point, rows counting by their weight, (n_points,)."""
    total = np.empty(masks.n_points)
    for points, until in masks.lifetimes(forest):
        total[points] = kernels.cost_of_points(
            sample.leaves,
            forest.tree_start,
            forest.parent,
            forest.feature,
            until,
            price_table.resources,
            price_table.prices,
            sample.weight,
            points.stop - points.start,
        )
    return total
