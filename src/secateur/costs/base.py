"""Define the interfaces of costs: sums over nodes, and resources bought once per row."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.data.row_source import RowSource
from secateur.data.rows import LocalRows, weight_at_nodes
from secateur.forest import Forest
from secateur.forest.masks import Masks

Floats = NDArray[np.float64]


class Cost(ABC):
    """Base class of costs of a pruned forest."""

    name: ClassVar[str]
    shared: ClassVar[bool]
    """Whether trees share what is paid for, so that the cost is not a sum over nodes."""
    uses_reach: ClassVar[bool] = True
    """Whether `prices` depends on the rows that reach a node; otherwise it gets an empty array."""
    row_prices: Any = None
    """The prices of the features for each row, (n_rows, n_features); None if all rows pay the same prices."""

    @abstractmethod
    def totals(self, forest: Forest, row_source: RowSource, masks: Masks) -> Floats:
        """Return the cost of the forest on these rows at each point of a path, (n_points,)."""

    def prices(self, forest: Forest, reach: Floats) -> tuple[Floats, Floats]:
        """Return the price of each node as a leaf and as a split, both (n_nodes,); for costs that are not shared.

        `reach` (n_nodes,) is the fraction of rows that reach each node.
        """
        raise TypeError(f"The cost {self.name} is shared between nodes, which have no prices. Check `shared` first.")

    def price_table(self, forest: Forest, sample: LocalRows) -> "PriceTable":
        """Return the resources that rows buy and their prices; for shared costs."""
        raise TypeError(f"The cost {self.name} is a sum over nodes; rows buy nothing. Check `shared` first.")


class AdditiveCost(Cost):
    """Base class of costs that are sums over nodes; a node has one price as a leaf and another as a split."""

    shared = False

    @abstractmethod
    def prices(self, forest: Forest, reach: Floats) -> tuple[Floats, Floats]:
        """Return the price of each node as a leaf and its price as a split, both (n_nodes,).

        `reach` (n_nodes,) is the fraction of rows that reach each node.
        """

    def totals(self, forest: Forest, row_source: RowSource, masks: Masks) -> Floats:
        """Return the sum of the prices of the remaining nodes at each point, (n_points,)."""
        reach = row_source.total(forest, weight_at_nodes) / row_source.total_weight
        return masks.totals(forest, *self.prices(forest, reach))


class PriceTable(NamedTuple):
    """The resources that can be bought for a row, and their prices.

    A resource is a feature with its own price, or the shared price of a group of features.

    Attributes
    ----------
    resources : (n_features, 2) int32
        The resources a feature needs, −1 for none.
    prices : (n_rows or 1, n_resources)
        The price of each resource, by row or for all rows.
    """

    resources: NDArray[np.int32]
    prices: Floats


class SharedCost(Cost):
    """Base class of costs of resources that are bought once per row and shared by all trees.

    A row buys a resource at the first split, of any tree, that needs it.
    """

    shared = True

    @abstractmethod
    def price_table(self, forest: Forest, sample: LocalRows) -> PriceTable:
        """Return the resources and their prices for the rows of the sample."""

    def totals(self, forest: Forest, row_source: RowSource, masks: Masks) -> Floats:
        """Return the average price that a row pays at each point, (n_points,)."""
        return row_source.total(forest, partial(self._paid, masks=masks)) / row_source.total_weight

    def _paid(self, forest: Forest, sample: LocalRows, masks: Masks) -> Floats:
        """Return the price that all rows of the sample pay at each point, (n_points,)."""
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
    """Return the weighted sum over rows of the price each pays, at each point, (n_points,)."""
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
