"""Descents at falling penalties, each from where the one before ended, and budgets met exactly."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from secateur.forest import Forest
from secateur.solvers.ensemble.additive_model import Additive, State, rounds, with_stand_ins
from secateur.solvers.penalty_grid import falling

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class Copies(Protocol):
    """A state a descent can go back to."""

    def copy(self) -> Self:
        """Return a state of its own."""


S = TypeVar("S", bound=Copies)


@dataclass(frozen=True)
class DescentSettings:
    """How to descend.

    Attributes
    ----------
    layered : bool
        Whether trees are cut at a depth only.
    values : "keep", "refit", "scale" or "scale_sparse"
        What a kept leaf adds: its own value, a fitted one, or its own times a factor of the tree, the factor's square
        or its presence penalised.
    by_depth : bool
        Whether a layer costs 1, instead of the cost of its nodes.
    ridge : float
        In rows for fitted values; the penalty of factors.
    penalties, smallest, max_sweeps, local_search, max_nodes, max_trees, seed
        As in BlockDescent.
    """

    layered: bool
    values: str
    by_depth: bool
    ridge: float
    penalties: int | tuple[float, ...]
    smallest: float
    max_sweeps: int
    local_search: int
    max_nodes: int | None
    max_trees: int | None
    seed: int


class FallingDescent(ABC, Generic[S]):
    """Descents at falling penalties, each from where the one before ended; subclasses say how to descend.

    Attributes
    ----------
    ensemble : Additive
    settings : Settings
    as_leaf, as_split : (n_nodes,)
        Prices.
    state : S
        Where the last descent ended; at first the ensemble without trees.
    scale : float
        The loss without trees.
    open : (n_trees,) bool
        Which trees may change.
    rng : Generator
    enough : float
        A round that gains no more is the last.
    on_sweep : callable, optional
        Called as `on_sweep(done, total)` after every round over the trees.
    updates : int
        How many trees were looked at so far.
    """

    ensemble: Additive
    settings: DescentSettings
    as_leaf: Floats
    as_split: Floats
    state: S
    scale: float
    open: Bools
    rng: np.random.Generator
    enough = 0.0
    on_sweep: Callable[[int, int], None] | None = None
    updates = 0
    _place = (0, 1)
    _told = 0

    def run(self) -> Iterator[tuple[float, S]]:
        """Yield the state at every penalty, the largest first; with a node budget until it is used up, and there."""
        budget = self.settings.max_nodes
        fits = (np.inf, self.state.copy())
        penalties = self.penalties()
        for place, penalty in enumerate(penalties):
            self._place = (place, len(penalties))
            self.descend(penalty)
            self.limit_trees(penalty)
            if self.settings.local_search:
                self.search(penalty)
            yield penalty, self.state
            if budget is None:
                continue
            if self.size(self.state) > budget:
                yield from self.meet(budget, fits, (penalty, self.state.copy()))
                return
            fits = (penalty, self.state.copy())

    def descend(self, penalty: float, *, first: int = 0, frozen: bool = False) -> float:
        """Update trees until a whole round changes nothing, or as long as the settings allow; return what was gained.

        `frozen` changes nothing of what is kept.
        """
        total, rounds_left = 0.0, self.settings.max_sweeps
        while rounds_left > 0:
            gain, settled = self.sweep_and_tell(penalty, self.open, first, frozen)
            rounds_left -= 1
            total += gain
            if settled:
                break
            used, gain = self.converge(penalty, first, frozen, rounds_left - 1)
            rounds_left -= used
            total += gain
        return total

    def converge(self, penalty: float, first: int, frozen: bool, most: int) -> tuple[int, float]:
        """Update the trees in use, which have the most to gain, until they settle; return the rounds and the gain."""
        total = 0.0
        for done in range(1, most + 1):
            gain, settled = self.sweep_and_tell(penalty, self.open & self.used(), first, frozen)
            total += gain
            if settled:
                return done, total
        return max(most, 0), total

    def sweep_and_tell(self, penalty: float, trees: Bools, first: int, frozen: bool) -> tuple[float, bool]:
        """Update some trees once; return the gain, and whether it was so small that another round will not pay."""
        quiet, gain = self.sweep(penalty, trees, first, frozen)
        self.updates += int(np.count_nonzero(trees))
        if self.on_sweep:
            place, n_places = self._place
            self._told = max(self._told + 1, place * self.settings.max_sweeps + 1)
            self.on_sweep(min(self._told, (place + 1) * self.settings.max_sweeps), n_places * self.settings.max_sweeps)
        return gain, quiet or gain <= self.enough

    def limit_trees(self, penalty: float) -> None:
        """Once there are too many trees, drop the weakest and let no others in from then on."""
        most = self.settings.max_trees
        if most is None or self.n_trees(self.state) <= most:
            return
        together = rounds(self.ensemble.forest)
        while self.n_trees(self.state) > most and self.used().any():
            rise = np.bincount(together, np.where(self.used(), self.rises(), 0.0))
            rise[np.bincount(together, self.used()) == 0] = np.inf
            for tree in np.flatnonzero((together == rise.argmin()) & self.used()):
                self.drop(int(tree))
        self.open = self.standing(self.state)
        self.descend(penalty)

    def penalties(self) -> Floats:
        """Return the penalties, the largest first."""
        root = self.ensemble.forest.root
        root = root[self.ensemble.forest.is_split[root]]
        right = self.ensemble.forest.right[root]
        price = self.as_split[root] + self.as_leaf[root + 1] + self.as_leaf[right]
        largest = self.scale / max(price.min(initial=np.inf, where=price > 0), 1e-300)
        return falling(self.settings.penalties, largest, self.settings.smallest)

    def search(self, penalty: float) -> None:
        """Drop a tree, descend from the first that is not used, and go back if that was no better."""
        failures = 0
        while failures < self.settings.local_search:
            used = np.flatnonzero(self.used())
            if not len(used):
                return
            before, old = self.state, self.objective(penalty)
            self.state = before.copy()
            self.drop(int(self.rng.choice(used)))
            unused = np.flatnonzero(~self.used())
            self.descend(penalty, first=int(unused[0]))
            if self.objective(penalty) < old - 1e-12 * self.scale:
                failures = 0
            else:
                self.state, failures = before, failures + 1

    def meet(self, budget: int, fits: tuple[float, S], over: tuple[float, S]) -> Iterator[tuple[float, S]]:
        """Yield states that use nearly all of `budget` nodes: one by bisection, one by trimming what is over.

        Layers are not trimmed.
        """
        self.state = fits[1]
        for tree in np.flatnonzero(self.used() & ~self.open):
            self.drop(int(tree))
        for _ in range(14):
            if self.size(fits[1]) == budget or fits[0] / over[0] < 1.0005:
                break
            penalty = np.sqrt(min(fits[0], 1e3 * over[0]) * over[0])
            self.state = fits[1].copy()
            self.descend(penalty)
            if self.size(self.state) > budget:
                over = (penalty, self.state)
            else:
                fits = (penalty, self.state)
        yield fits
        if not self.settings.layered:
            self.state = over[1].copy()
            self.trim(budget)
            self.descend(over[0], frozen=True)
            yield over[0], self.state

    def standing(self, state: S) -> Bools:
        """Return which trees the pruned model has."""
        return with_stand_ins(self.ensemble, self.spread(state))[self.ensemble.forest.root] != 0

    def n_trees(self, state: S) -> int:
        """Return how many trees the pruned model has."""
        return int(np.count_nonzero(self.standing(state)))

    def size(self, state: S) -> int:
        """Return how many nodes the pruned model has."""
        return int(np.count_nonzero(with_stand_ins(self.ensemble, self.spread(state))))

    @abstractmethod
    def sweep(self, penalty: float, trees: Bools, first: int, frozen: bool) -> tuple[bool, float]:
        """Update some trees once, beginning with `first`; return whether nothing changed, and the gain."""

    @abstractmethod
    def objective(self, penalty: float) -> float:
        """Return what is being minimised."""

    @abstractmethod
    def spread(self, state: S) -> State:
        """Return the state of all nodes; its rows may be missing."""

    @abstractmethod
    def used(self) -> Bools:
        """Return which trees are there."""

    @abstractmethod
    def rises(self) -> Floats:
        """Return by how much the loss rises, to second order, when a tree is dropped, (n_trees,)."""

    @abstractmethod
    def drop(self, tree: int) -> None:
        """Take one tree out."""

    def trim(self, budget: int) -> None:
        """Collapse the weakest splits until at most `budget` nodes are left; layers are not trimmed."""


def distinct(states: Iterable[tuple[float, State]]) -> Iterator[tuple[float, State]]:
    """Yield the states whose shape is not that of the one before."""
    before = np.empty(0, np.int8)
    for penalty, state in states:
        if not np.array_equal(before, state.status):
            before = state.status.copy()
            yield penalty, state


def layer_prices(forest: Forest) -> tuple[Floats, Floats]:
    """Return prices by which a layer costs 1, paid by its first node."""
    tree = np.repeat(np.arange(forest.n_trees), np.diff(forest.tree_start))
    _, first = np.unique(tree * (forest.max_depth + 1) + forest.depth, return_index=True)
    price = np.zeros(forest.n_nodes)
    price[first] = 1.0
    price[forest.root] = 0.0
    return price, price
