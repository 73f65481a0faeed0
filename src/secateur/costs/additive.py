"""Define costs that are sums over nodes: number of nodes, number of leaves, expected depth."""

import numpy as np

from secateur.costs.base import AdditiveCost, Floats
from secateur.forest import Forest


class NodeCost(AdditiveCost):
    """The number of nodes, leaves included: proportional to the size of the model on disk."""

    name = "nodes"
    uses_reach = False

    def prices(self, forest: Forest, reach: Floats) -> tuple[Floats, Floats]:
        """Return 1 for every node."""
        one = np.ones(forest.n_nodes)
        return one, one


class LeafCost(AdditiveCost):
    """The number of leaves: the complexity term of Breiman's cost-complexity pruning."""

    name = "leaves"
    uses_reach = False

    def prices(self, forest: Forest, reach: Floats) -> tuple[Floats, Floats]:
        """Return 1 for a leaf and 0 for a split."""
        return np.ones(forest.n_nodes), np.zeros(forest.n_nodes)


class DepthCost(AdditiveCost):
    """The average number of splits a row passes, summed over trees: the work of one prediction."""

    name = "depth"

    def prices(self, forest: Forest, reach: Floats) -> tuple[Floats, Floats]:
        """Return 0 for a leaf, and for a split the fraction of rows that pass it."""
        return np.zeros(forest.n_nodes), reach
