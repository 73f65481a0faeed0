"""Define the costs of a pruned forest; `COSTS` is the table of costs by name."""

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
    "needs",
    "paid",
]

COSTS: dict[str, type[Cost]] = {cost.name: cost for cost in (NodeCost, LeafCost, DepthCost, FeatureCost)}
