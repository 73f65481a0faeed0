"""Define the costs of a pruned forest; `COSTS` is the table of costs by name."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from secateur._util.registry import object_of
from secateur.costs.additive import DepthCost, LeafCost, NodeCost
from secateur.costs.base import AdditiveCost, Cost, PriceTable, SharedCost, needs, paid
from secateur.costs.features import FeatureCost

__all__ = [
    "COSTS",
    "AdditiveCost",
    "Cost",
    "DepthCost",
    "FeatureCost",
    "LeafCost",
    "NodeCost",
    "PriceTable",
    "SharedCost",
    "as_cost",
    "needs",
    "paid",
]

COSTS: dict[str, type[Cost]] = {cost.name: cost for cost in (NodeCost, LeafCost, DepthCost, FeatureCost)}


def as_cost(cost: Any) -> Cost | None:
    """Return a cost given as an object, by name, or as prices of the features for a FeatureCost; None stays None.

    Raises
    ------
    InvalidInputError
        If it is none of these.
    """
    if isinstance(cost, Mapping | list | tuple | np.ndarray):
        return FeatureCost(cost)
    found: Cost | None = object_of(cost, COSTS, Cost, "cost")
    return found
