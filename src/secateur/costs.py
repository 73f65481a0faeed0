"""What a forest costs: a price per leaf and per split, so that the cost of a pruning is a sum over its nodes."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from secateur.forest import Forest

Floats = NDArray[np.float64]


class Cost(ABC):
    """Something to be paid for a forest."""

    name: ClassVar[str]

    @abstractmethod
    def prices(self, forest: Forest, reach: Floats) -> tuple[Floats, Floats]:
        """Return what each node costs as a leaf and what it costs as a split, both (n_nodes,).

        `reach` (n_nodes,) is the share of the rows that come to each node.
        """


class NodeCost(Cost):
    """The number of nodes, leaves included: what a model takes on disk."""

    name = "nodes"

    def prices(self, forest: Forest, reach: Floats) -> tuple[Floats, Floats]:
        """Return 1 for every node."""
        return np.ones(forest.n_nodes), np.ones(forest.n_nodes)


class LeafCost(Cost):
    """The number of leaves: the complexity of Breiman's cost-complexity pruning."""

    name = "leaves"

    def prices(self, forest: Forest, reach: Floats) -> tuple[Floats, Floats]:
        """Return 1 for a leaf and 0 for a split."""
        return np.ones(forest.n_nodes), np.zeros(forest.n_nodes)


class DepthCost(Cost):
    """The number of splits a row passes, over all trees, on average: the work of one prediction."""

    name = "depth"

    def prices(self, forest: Forest, reach: Floats) -> tuple[Floats, Floats]:
        """Return 0 for a leaf and the share of rows that pass for a split."""
        return np.zeros(forest.n_nodes), reach


COSTS: dict[str, type[Cost]] = {cost.name: cost for cost in (NodeCost, LeafCost, DepthCost)}
