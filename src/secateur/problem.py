"""The question a solver is asked: this forest, these rows, this loss, this cost."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from secateur.costs import AdditiveCost, Bill, Cost, SharedCost
from secateur.decision import Decision, subforest
from secateur.forest import Forest
from secateur.losses import Loss
from secateur.masks import Masks, NestedMasks
from secateur.routing import route
from secateur.sample import Sample
from secateur.statistics import NodeStats, class_stats, node_weight, output_spread, value_stats

Floats = NDArray[np.float64]
Progress = Callable[[int, int, str], None]
"""Called as `progress(done, total, what)` during long work."""


@dataclass(frozen=True, eq=False)
class Problem:
    """Everything a solver may look at.

    Attributes
    ----------
    forest : Forest
    sample : Sample
    loss : Loss
    cost : Cost
    progress : callable, optional
        Called as `progress(done, total, what)` by solvers that take long.
    """

    forest: Forest
    sample: Sample
    loss: Loss
    cost: Cost
    progress: Progress | None = None

    def __post_init__(self) -> None:
        reason = self.loss.unsupported(self.forest)
        if reason:
            raise ValueError(reason)

    def pruned(self, decision: Decision) -> "Problem":
        """Return the same question about the pruned forest, with the rows sent through it."""
        if self.sample.rows is None:
            raise ValueError("Only the leaves of the rows are known. Pass the rows too to send them other ways.")
        forest = subforest(self.forest, decision)
        return replace(self, forest=forest, sample=replace(self.sample, leaves=route(forest, self.sample.rows)))

    def watch(self, what: str, run: int = 0, n_runs: int = 1) -> Callable[[int, int], None] | None:
        """Return what to call as `tell(done, total)` in the course of one of several runs; None if nobody listens."""
        progress = self.progress
        if progress is None:
            return None
        return lambda done, total: progress(run * total + done, n_runs * total, what)

    def weighted(self, weight: Floats) -> "Problem":
        """Return the same question with other row weights, (n_rows,)."""
        return replace(self, sample=replace(self.sample, weight=weight))

    @cached_property
    def stats(self) -> NodeStats:
        """Sums of the targets over the rows at each node."""
        collect = class_stats if self.forest.n_classes else value_stats
        return collect(self.forest, self.sample.leaves, self.sample.y, self.sample.weight)

    @cached_property
    def weight(self) -> Floats:
        """Row weight that reaches each node, (n_nodes,)."""
        if self.forest.trees_predict_target:
            return self.stats.weight  # needed for the risk anyway, and one pass over the rows is cheaper than two
        return node_weight(self.forest, self.sample.leaves, self.sample.weight)

    @cached_property
    def risk(self) -> Floats:
        """What each node adds to its tree's mean loss when it is a leaf, (n_nodes,).

        Where a tree predicts only a share of the target, its loss is the squared distance from what the whole tree
        says: for boosting with squared error that differs by a constant from the loss on the residuals.
        """
        if self.forest.trees_predict_target:
            total = self.loss.nodes(self.forest, self.stats)
        else:
            total = output_spread(self.forest, self.weight)
        return total / self.sample.total_weight

    @property
    def no_prices(self) -> str | None:
        """Why single nodes have no price, None if they have one."""
        if isinstance(self.cost, AdditiveCost):
            return None
        return (
            f"the cost {self.cost.name} is shared between nodes, and this method prices them one by one. Use min_cut."
        )

    @cached_property
    def prices(self) -> tuple[Floats, Floats]:
        """What each node costs as a leaf and what it costs as a split, both (n_nodes,); only of additive costs."""
        if not isinstance(self.cost, AdditiveCost):
            raise TypeError(f"The cost {self.cost.name} is shared between nodes; ask for `no_prices` first.")
        return self.cost.prices(self.forest, self.weight / self.sample.total_weight)

    @cached_property
    def bill(self) -> Bill:
        """What can be bought for a row, and for how much; only of shared costs."""
        if not isinstance(self.cost, SharedCost):
            raise TypeError(f"The cost {self.cost.name} is paid node by node; nothing is bought for rows.")
        return self.cost.bill(self.forest, self.sample)

    def costs(self, masks: Masks) -> Floats:
        """Return the cost of every point, (n_points,)."""
        if isinstance(self.cost, AdditiveCost):
            return masks.totals(self.forest, *self.prices)  # from sums that are there anyway
        return self.cost.totals(self.forest, self.sample, masks)

    @cached_property
    def unpruned_cost(self) -> float:
        """What the forest costs as it is."""
        return float(self.costs(NestedMasks(np.ones(self.forest.n_nodes, np.int32), 1))[0])
