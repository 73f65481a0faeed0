"""Choose a depth for every tree by block coordinate descent on the Gram matrix of the tree layers.

This solves ForestPrune's Problem (1) without access to the rows: `secateur.solvers.ensemble.gram` collects the inner
products once, and `secateur.kernels.ensemble.gram_descent` does the block updates.

References
----------
Liu and Mazumder (2023), ForestPrune: compact depth-pruned tree ensembles, AISTATS. Problem (1); the block update is
Problem (4).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.forest import Forest
from secateur.kernels import Prices, State
from secateur.path.build import Point
from secateur.solvers.ensemble.additive_model import decide, n_targets, without_rows
from secateur.solvers.ensemble.descent_path import PathDescent, distinct
from secateur.solvers.ensemble.gram import Gram, columns
from secateur.solvers.ensemble.penalty_descent import DescentSettings, layer_prices

Floats = NDArray[np.float64]


def gram_points(
    forest: Forest, prices: tuple[Floats, Floats], gram: Gram, settings: DescentSettings
) -> Iterator[Point]:
    """Yield one point per penalty from a `GramDescent`, skipping penalties that do not change the set of kept nodes."""
    descent = GramDescent(forest, prices, gram, settings)
    for penalty, state in distinct(descent.states(), lambda: descent.brief):
        keep, value = decide(descent.ensemble, state)
        yield Point(penalty, keep, value, {"ridge": 0.0, "kept": 1.0, **descent.brief_column})


@dataclass(frozen=True, eq=False)
class Cut:
    """The state of the descent: the depth of every tree. The descent updates the arrays in place.

    See `secateur.kernels.ensemble.gram_descent`.

    Attributes
    ----------
    depth : (n_trees,)
        The depth at which each tree is cut; -1 for a dropped tree.
    neg_gradient : (n_columns,)
        The inner product of each column with the current residual.
    """

    depth: NDArray[np.int64]
    neg_gradient: Floats

    def copy(self) -> "Cut":
        """Return an independent copy."""
        return Cut(self.depth.copy(), self.neg_gradient.copy())


class GramDescent(PathDescent[Cut]):
    """Descend over the depths of all trees at a decreasing sequence of penalties, on inner products only.

    The path equals that of `Descent` with layers and original values. The intercept is eliminated beforehand by
    centring the columns and the target.

    Parameters
    ----------
    forest : Forest
    prices : (n_nodes,) and (n_nodes,)
        The price of a node as a leaf and as a split.
    gram : Gram
    settings : DescentSettings
    """

    def __init__(self, forest: Forest, prices: tuple[Floats, Floats], gram: Gram, settings: DescentSettings) -> None:
        unit = gram.weight * n_targets(forest)
        self.ensemble, self.settings, self.gram = without_rows(forest, gram.reach / unit), settings, gram
        self.prices = layer_prices(forest) if settings.by_depth else Prices(*prices)
        self.column_start = columns(forest)
        self.price = _depth_prices(forest, self.column_start, self.prices)
        # Centring the columns and the residual eliminates the unpenalised intercept.
        mean = gram.added / gram.weight
        self.inner = (gram.inner - gram.added @ mean.T) / unit
        self.match = (gram.match - mean @ gram.rest) / unit
        self.scale = (gram.square - float(gram.rest @ gram.rest) / gram.weight) / unit
        self.state = Cut(np.full(forest.n_trees, -1), self.match.copy())
        self.rng = np.random.default_rng(settings.seed)
        self.open = np.ones(forest.n_trees, bool)

    def states(self) -> Iterator[tuple[float, State]]:
        """Yield the penalties and states of `run`, with each state expanded to all nodes."""
        for penalty, cut in self.run():
            yield penalty, self.spread(cut)

    def spread(self, cut: Cut) -> State:
        """Return the state of all nodes, with empty row arrays."""
        ensemble, forest = self.ensemble, self.ensemble.forest
        depth = np.repeat(cut.depth, np.diff(forest.tree_start))
        keep = forest.depth <= depth
        status = np.where(keep, np.where((forest.depth == depth) | ~forest.is_split, 2, 1), 0).astype(np.int8)
        kept_ancestor = kernels.lift(forest.parent, keep)
        no_contribution = (kept_ancestor == -1) | (status == 1)
        contribution = np.where(no_contribution[:, None], 0.0, ensemble.original[kept_ancestor])
        left = self.gram.rest - self.gram.added[self.inside(cut)].sum(axis=0)
        return State(
            np.empty((forest.n_outputs, 0)),
            np.empty((0, 0)),
            np.empty((0, 0)),
            np.zeros(1),
            self.gram.shift + left / self.gram.weight,
            status,
            contribution,
            (cut.depth >= 0).astype(np.float64),
            np.empty(0),
        )

    def decide(self, cut: Cut) -> tuple[NDArray[np.bool_], Floats]:
        """Return the keep mask of a state and the values of the kept nodes, (n_kept, width)."""
        return decide(self.ensemble, self.spread(cut))

    def inside(self, cut: Cut) -> NDArray[np.bool_]:
        """Return whether each column is part of the pruned ensemble, (n_columns,)."""
        layer = np.arange(len(self.match)) - np.repeat(self.column_start[:-1], np.diff(self.column_start))
        return layer < np.repeat(cut.depth, np.diff(self.column_start))

    def sweep(self, penalty: float, trees: NDArray[np.bool_], first: int, frozen: bool) -> tuple[bool, float]:
        """Update the depth of some trees once.

        With `frozen` nothing changes, as the depths are the only variables.
        """
        if frozen:
            return True, 0.0
        changed, gain = kernels.sweep_layers(
            self.inner,
            self.column_start,
            self.price,
            trees,
            self.state.depth,
            self.state.neg_gradient,
            penalty,
            first,
            1e-12 * self.scale,
        )
        return changed == 0, gain

    def objective(self, penalty: float) -> float:
        """Return the objective: squared error plus penalty times price."""
        inside = self.inside(self.state)
        loss = self.scale - float((self.match + self.state.neg_gradient)[inside].sum())
        return loss + penalty * float(self.price[self.price_index()][self.used()].sum())

    def used(self) -> NDArray[np.bool_]:
        """Return which trees are not dropped, (n_trees,)."""
        return self.state.depth >= 0

    def rises(self) -> Floats:
        """Return the increase in loss from dropping each tree, (n_trees,)."""
        rise = np.zeros(len(self.open))
        for tree in np.flatnonzero(self.used()):
            kept = slice(self.column_start[tree], self.column_start[tree] + self.state.depth[tree])
            rise[tree] = 2 * self.state.neg_gradient[kept].sum() + self.inner[kept, kept].sum()
        return rise

    def drop(self, tree: int) -> None:
        """Drop one tree."""
        self.move(tree, -1)

    def move(self, tree: int, depth: int) -> None:
        """Cut a tree at another depth."""
        kernels.move_cut(tree, depth, self.inner, self.column_start, self.state.depth, self.state.neg_gradient)

    def price_index(self) -> NDArray[np.int64]:
        """Return the index into `price` of each tree's depth, (n_trees,); for a dropped tree that of depth 0."""
        return self.column_start[:-1] + np.arange(len(self.state.depth)) + np.maximum(self.state.depth, 0)


def _depth_prices(forest: Forest, column_start: NDArray[np.int64], prices: Prices) -> Floats:
    """Return the price of every tree at every depth from 0 to its full depth, the trees concatenated."""
    tree = np.repeat(np.arange(forest.n_trees), np.diff(forest.tree_start))
    first = column_start + np.arange(forest.n_trees + 1)
    index = first[tree] + forest.depth
    # Price increments per depth: a node enters as a leaf at its own depth, and a split turns from a leaf into a split
    # one depth further down. The cumulative sum over depths gives the prices.
    increments = np.bincount(index, prices.as_leaf, first[-1])
    split = forest.is_split
    increments += np.bincount(index[split] + 1, (prices.as_split - prices.as_leaf)[split], first[-1])
    return np.concatenate([np.empty(0), *(np.cumsum(increments[a:b]) for a, b in pairwise(first))])
