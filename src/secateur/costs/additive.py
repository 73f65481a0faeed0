"""Costs that are sums over nodes: how many there are, how many leaves, how deep rows go."""

import numpy as np

from secateur.costs.base import AdditiveCost, Floats
from secateur.forest import Forest


class NodeCost(AdditiveCost):
    """The number of nodes, leaves included: what a model takes on disk."""

    name = "nodes"

    def prices(self, forest: Forest, reach: Floats) -> tuple[Floats, Floats]:
        """Return 1 for every node."""
        return np.ones(forest.n_nodes), np.ones(forest.n_nodes)


class LeafCost(AdditiveCost):
    """The number of leaves: the complexity of Breiman's cost-complexity pruning."""

    name = "leaves"

    def prices(self, forest: Forest, reach: Floats) -> tuple[Floats, Floats]:
        """Return 1 for a leaf and 0 for a split."""
        return np.ones(forest.n_nodes), np.zeros(forest.n_nodes)


class DepthCost(AdditiveCost):
    """The number of splits a row passes, over all trees, on average: the work of one prediction."""

    name = "depth"

    def prices(self, forest: Forest, reach: Floats) -> tuple[Floats, Floats]:
        """Return 0 for a leaf and the share of rows that pass for a split."""
        return np.zeros(forest.n_nodes), reach
