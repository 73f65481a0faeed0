"""Descend at one penalty: sweep over the trees until nothing changes, or briefly for a warm start.

References
----------
Liu and Mazumder (2023), ForestPrune: compact depth-pruned tree ensembles, AISTATS. Section 3.1 (cyclic block coordinate
descent).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from secateur.forest import Forest
from secateur.kernels import Prices, State
from secateur.solvers.ensemble.additive_model import Additive, with_replacements

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
_SCREENING = 0.1
"""A screened descent tests dropped trees for entry down to this multiple of the penalty."""
_MARGIN = 0.5
"""A dropped tree is visited if its estimated entry penalty is at least this multiple of the penalty."""
_FEW_SWEEPS, _FEW_UPDATES, _NARROW_MARGIN = 3, 0.25, 0.8
"""Number of sweeps, number of updates as a fraction of the trees, and margin of a brief descent."""


class Copyable(Protocol):
    """A state that can be copied, so that a descent can be undone."""

    def copy(self) -> Self:
        """Return an independent copy."""


S = TypeVar("S", bound=Copyable)


@dataclass(frozen=True)
class DescentSettings:
    """Settings of one run along the penalties.

    Attributes
    ----------
    layered : bool
        Whether trees are only cut at a depth.
    values : "keep", "refit", "scale" or "scale_sparse"
        Contribution of a kept leaf: the original value, a refitted value, or the original value times a weight of the
        tree. "scale" penalises the squared weight, "scale_sparse" the presence of the tree.
    by_depth : bool
        Whether a layer costs 1 instead of the cost of its nodes.
    ridge : float
        Number of extra rows with target 0 for refitted values; the penalty on tree weights for scaled ones.
    penalties, smallest, warm_up, max_sweeps, local_search, max_nodes, max_trees, seed
        As in BlockDescent.
    """

    layered: bool
    values: str
    by_depth: bool
    ridge: float
    penalties: int | tuple[float, ...]
    smallest: float
    warm_up: tuple[tuple[float, float], ...]
    max_sweeps: int
    local_search: int
    max_nodes: int | None
    max_trees: int | None
    seed: int


class PenaltyDescent(ABC, Generic[S]):
    """Block descent at one penalty; subclasses implement the sweep over the trees.

    Attributes
    ----------
    ensemble : Additive
    settings : DescentSettings
    prices : Prices
    state : S
        The result of the last descent; initially the ensemble without trees.
    scale : float
        The loss of the ensemble without trees.
    open : (n_trees,) bool
        Whether a tree may change.
    rng : Generator
    enough : float
        A sweep that gains no more than this is the last.
    on_sweep : callable, optional
        Called as `on_sweep(done, total)` after every sweep.
    screening : float
        Trees that stay dropped are tested for entry down to this multiple of the penalty; 0 for no test, which is
        enough for descents that visit all trees.
    updates : int
        Number of block updates so far.
    sweep_cost : int
        The cost of a sweep besides its updates, as a number of updates.
    """

    ensemble: Additive
    settings: DescentSettings
    prices: Prices
    state: S
    scale: float
    open: Bools
    rng: np.random.Generator
    enough = 0.0
    on_sweep: Callable[[int, int], None] | None = None
    screening = 0.0
    updates = 0
    sweep_cost = 0
    _penalty_index = (0, 1)
    _n_reported = 0

    def set_ridge(self, ridge: float) -> None:
        """Change the ridge, in rows; by default values are not refitted and have none."""

    def step(self, penalty: float) -> None:
        """Descend briefly, which is enough for a warm start at the next penalty.

        Only trees that are likely to enter are visited. After a few sweeps, or as soon as one gains less than the price
        of a node, the descent ends, but not before a fraction of the trees has been updated.
        """
        self.screening = _SCREENING
        trees, n_sweeps, n_updates = self.candidates(penalty, _NARROW_MARGIN), 0, 0
        while True:
            gain, converged = self.sweep_and_report(penalty, trees, 0, False)
            n_sweeps, n_updates = n_sweeps + 1, n_updates + int(np.count_nonzero(trees)) + self.sweep_cost
            few = n_sweeps < _FEW_SWEEPS and gain > penalty * self.stump_price / 3
            if converged or not (few or n_updates < _FEW_UPDATES * len(trees)):
                return
            trees = self.open & self.used()

    def descend(
        self,
        penalty: float,
        *,
        first: int = 0,
        frozen: bool = False,
        screened: bool = False,
        max_sweeps: int | None = None,
    ) -> float:
        """Sweep over the trees until a full sweep changes nothing or `max_sweeps` is reached; return the gain.

        Full sweeps alternate with sweeps over the trees in use. `frozen` refits values without changing the kept nodes.
        With `screened`, full sweeps visit the `candidates` only.
        """
        self.screening = _SCREENING if screened else 0.0
        total, rounds_left = 0.0, max_sweeps or self.settings.max_sweeps
        while rounds_left > 0:
            trees = self.candidates(penalty) if screened else self.open
            gain, converged = self.sweep_and_report(penalty, trees, first, frozen)
            rounds_left -= 1
            total += gain
            if converged:
                break
            used, gain = self.converge(penalty, first, frozen, rounds_left - 1)
            rounds_left -= used
            total += gain
        return total

    def candidates(self, penalty: float, margin: float = _MARGIN) -> Bools:
        """Return the trees that may change: those in use, and dropped ones that may enter at this penalty, (n_trees,).

        A dropped tree is screened by its entry penalty. It was computed when the tree was last visited, so this is a
        heuristic: other trees have changed since.
        """
        return self.open & (self.used() | (self.entry() >= margin * penalty))

    def entry(self) -> Floats:
        """Return an estimate of the penalty at which each dropped tree would enter, infinite if unknown, (n_trees,)."""
        return np.full(len(self.open), np.inf)

    def converge(self, penalty: float, first: int, frozen: bool, limit: int) -> tuple[int, float]:
        """Sweep over the trees in use, which gain most, until they stop changing; return the sweeps and the gain."""
        total = 0.0
        for done in range(1, limit + 1):
            gain, converged = self.sweep_and_report(penalty, self.open & self.used(), first, frozen)
            total += gain
            if converged:
                return done, total
        return max(limit, 0), total

    def sweep_and_report(self, penalty: float, trees: Bools, first: int, frozen: bool) -> tuple[float, bool]:
        """Sweep over some trees once and report progress; return the gain and whether the descent has converged."""
        unchanged, gain = self.sweep(penalty, trees, first, frozen)
        self.updates += int(np.count_nonzero(trees))
        if self.on_sweep:
            index, n_penalties = self._penalty_index
            self._n_reported = max(self._n_reported + 1, index * self.settings.max_sweeps + 1)
            self.on_sweep(
                min(self._n_reported, (index + 1) * self.settings.max_sweeps), n_penalties * self.settings.max_sweeps
            )
        return gain, unchanged or gain <= self.enough

    @cached_property
    def stump_price(self) -> float:
        """The price of the cheapest tree with one split, 0 if all are free."""
        root = self.ensemble.forest.root
        root = root[self.ensemble.forest.is_split[root]]
        right = self.ensemble.forest.right[root]
        price = self.prices.as_split[root] + self.prices.as_leaf[root + 1] + self.prices.as_leaf[right]
        return float(price.min(initial=np.inf, where=price > 0))

    def kept_trees(self, state: S) -> Bools:
        """Return which trees the pruned model has, including roots restored by `with_replacements`, (n_trees,)."""
        return with_replacements(self.ensemble, self.spread(state))[self.ensemble.forest.root] != 0

    def n_trees(self, state: S) -> int:
        """Return the number of trees of the pruned model."""
        return int(np.count_nonzero(self.kept_trees(state)))

    def size(self, state: S) -> int:
        """Return the number of nodes of the pruned model."""
        return int(np.count_nonzero(with_replacements(self.ensemble, self.spread(state))))

    @abstractmethod
    def sweep(self, penalty: float, trees: Bools, first: int, frozen: bool) -> tuple[bool, float]:
        """Update some trees once, beginning with `first`; return whether nothing changed, and the gain."""

    @abstractmethod
    def objective(self, penalty: float) -> float:
        """Return the objective at this penalty."""

    @abstractmethod
    def spread(self, state: S) -> State:
        """Return the state of all nodes; its row arrays may be empty."""

    @abstractmethod
    def used(self) -> Bools:
        """Return which trees are not dropped, (n_trees,)."""

    @abstractmethod
    def rises(self) -> Floats:
        """Return the second-order estimate of the increase in loss from dropping each tree, (n_trees,)."""

    @abstractmethod
    def drop(self, tree: int) -> None:
        """Drop one tree."""

    @abstractmethod
    def decide(self, state: S) -> tuple[Bools, Floats]:
        """Return the keep mask of a state and the values of the kept nodes, (n_kept, width)."""


def layer_prices(forest: Forest) -> Prices:
    """Return prices with which a layer below the root costs 1, charged to its first node."""
    tree = np.repeat(np.arange(forest.n_trees), np.diff(forest.tree_start))
    _, first = np.unique(tree * (forest.max_depth + 1) + forest.depth, return_index=True)
    price = np.zeros(forest.n_nodes)
    price[first] = 1.0
    price[forest.root] = 0.0
    return Prices(price, price)
