"""Define the pruning problem passed to a solver: a forest, rows (local or remote), a loss and a cost."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from secateur.costs import Cost, PriceTable
from secateur.data.row_source import RowSource
from secateur.data.rows import LocalRows, weight_at_nodes
from secateur.data.targets import LARGEST
from secateur.errors import InvalidInputError, UnsupportedModelError, UnsupportedProblemError
from secateur.forest import Forest
from secateur.forest.masks import Masks, NestedMasks
from secateur.forest.node_sums import NodeStats, class_stats, output_spread, value_stats
from secateur.forest.routing import route
from secateur.forest.subforest import Decision, subforest
from secateur.losses import Loss

Floats = NDArray[np.float64]
Progress = Callable[[int, int, str], None]
"""Progress callback: `progress(done, total, what)`."""

_MANY_OUTPUTS = 16
"""Number of outputs from which the sums of `Problem.stats` are not computed for the row weights alone."""


@dataclass(frozen=True, eq=False)
class Problem:
    """Hold the input of a solver: the forest, the rows, the loss and the cost.

    Attributes
    ----------
    forest : Forest
    row_source : RowSource
        The rows, local or remote. Most methods need only sums over them, which remote rows provide as well.
    loss : Loss
    cost : Cost
    progress : callable, optional
        Called as `progress(done, total, what)` by solvers that take long.
    n_jobs : int, optional
        Number of threads for runs that do not depend on each other, as in scikit-learn.
    """

    forest: Forest
    row_source: RowSource
    loss: Loss
    cost: Cost
    progress: Progress | None = None
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        reason = self.loss.unsupported(self.forest)
        if reason:
            raise UnsupportedProblemError(reason)
        _check_size(self.forest)

    @cached_property
    def sample(self) -> LocalRows:
        """The rows in local memory, collected if they are remote."""
        return self.row_source.collect()

    def local(self) -> "Problem":
        """Return the problem with its rows in local memory."""
        return replace(self, row_source=self.sample)

    @property
    def total_weight(self) -> float:
        """Total weight of all rows."""
        return self.row_source.total_weight

    def pruned(self, decision: Decision) -> "Problem":
        """Return the problem for the pruned forest, with the rows routed through it."""
        if self.sample.rows is None:
            raise InvalidInputError(
                "The pruned forest routes rows differently, but only their leaves are known. Pass X in memory."
            )
        forest = subforest(self.forest, decision)
        return replace(self, forest=forest, row_source=replace(self.sample, leaves=route(forest, self.sample.rows)))

    def watch(self, what: str, run: int = 0, n_runs: int = 1) -> Callable[[int, int], None] | None:
        """Return a callback `report(done, total)` for one of several runs; None without a progress callback."""
        progress = self.progress
        if progress is None:
            return None
        return lambda done, total: progress(run * total + done, n_runs * total, what)

    def weighted(self, weight: Floats) -> "Problem":
        """Return the problem with other row weights, (n_rows,)."""
        return replace(self, row_source=replace(self.sample, weight=weight))

    @cached_property
    def stats(self) -> NodeStats:
        """Sums of the targets over the rows at each node."""
        if self.forest.n_classes:
            return self.row_source.total(self.forest, _class_stats)
        shift = _mean_root_value(self.forest) if self.row_source.is_remote else None
        return self.row_source.total(self.forest, partial(_value_stats, shift=shift))

    @cached_property
    def weight(self) -> Floats:
        """Row weight that reaches each node, (n_nodes,)."""
        if self.forest.trees_predict_target and (self.forest.n_outputs < _MANY_OUTPUTS or "stats" in vars(self)):
            # The risk needs `stats` anyway, and one pass over the rows is cheaper than two.
            return self.stats.weight
        return self.row_source.total(self.forest, weight_at_nodes)

    @cached_property
    def risk(self) -> Floats:
        """Contribution of each node to its tree's mean loss if the node is a leaf, (n_nodes,).

        If a tree predicts only a contribution to the target (boosting), its loss is the squared distance from the
        output of the unpruned tree. For boosting with squared error it differs from the loss on the residuals by a
        constant.
        """
        if self.forest.trees_predict_target:
            total = self.loss.nodes(self.forest, self.stats)
        else:
            total = output_spread(self.forest, self.weight)
        return total / self.total_weight

    @property
    def why_no_node_prices(self) -> str | None:
        """Reason why the cost is not a sum of node prices, None if it is."""
        if not self.cost.shared:
            return None
        return (
            f"the cost {self.cost.name} is shared between nodes, but this solver needs a price for each node. Use "
            "min_cut."
        )

    @cached_property
    def prices(self) -> tuple[Floats, Floats]:
        """Cost of each node as a leaf and as a split, both (n_nodes,); for additive costs only."""
        reach = self.weight / self.total_weight if self.cost.uses_reach else np.empty(0)
        return self.cost.prices(self.forest, reach)

    @cached_property
    def price_table(self) -> PriceTable:
        """Resources a row may require and their prices; for shared costs only."""
        return self.cost.price_table(self.forest, self.sample)

    def costs(self, masks: Masks) -> Floats:
        """Return the cost of every point, (n_points,)."""
        if self.cost.shared:
            return self.cost.totals(self.forest, self.row_source, masks)
        # The prices reuse cached node sums, so no further pass over the rows is needed.
        return masks.totals(self.forest, *self.prices)

    @cached_property
    def unpruned_cost(self) -> float:
        """Cost of the unpruned forest."""
        return float(self.costs(NestedMasks(np.ones(self.forest.n_nodes, np.int32), 1))[0])


def _check_size(forest: Forest) -> None:
    """Raise ValueError if the fourth power of the largest node value or base would overflow or underflow."""
    # Reducing tree by tree is faster than node by node, because nodes have few values.
    highest, lowest = (extreme.reduceat(forest.value, forest.root) for extreme in (np.maximum, np.minimum))
    size = np.maximum(highest.max(axis=1, initial=0.0), -lowest.min(axis=1, initial=0.0)) * np.abs(forest.tree_weight)
    largest = np.append(size, np.abs(forest.base)).max(initial=0.0)
    if largest == 0 or 1 / LARGEST <= largest <= LARGEST:
        return
    raise UnsupportedModelError(
        f"The largest value in the model's trees is {largest:g}; solvers square such values, so it must lie between "
        f"{1 / LARGEST:g} and {LARGEST:g}. Train the model on a rescaled target."
    )


def _class_stats(forest: Forest, sample: LocalRows) -> NodeStats:
    return class_stats(forest, sample.leaves, sample.y, sample.weight)


def _value_stats(forest: Forest, sample: LocalRows, shift: Floats | None) -> NodeStats:
    return value_stats(forest, sample.leaves, sample.y, sample.weight, shift)


def _mean_root_value(forest: Forest) -> Floats:
    """Return the mean value of the roots, which approximates the target mean and needs no pass over the rows."""
    return forest.value[forest.root].mean(axis=0) if forest.trees_predict_target else np.zeros(forest.n_outputs)
