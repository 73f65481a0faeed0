"""The neutral form of every tree model, and what can be done with it: prune, route rows, add up scores."""

from secateur.forest.forest import Addition, Aggregation, Categories, Comparison, Forest, Leaves
from secateur.forest.forest_checks import check_forest

__all__ = ["Addition", "Aggregation", "Categories", "Comparison", "Forest", "Leaves", "check_forest"]
