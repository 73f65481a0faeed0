"""Represent any tree model as flat arrays, prune it, route rows through it and compute its scores."""

from secateur.forest.forest import Addition, Aggregation, Categories, Comparison, Forest, Leaves
from secateur.forest.forest_checks import check_forest

__all__ = ["Addition", "Aggregation", "Categories", "Comparison", "Forest", "Leaves", "check_forest"]
