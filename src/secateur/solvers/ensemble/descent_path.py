"""Run block descent along a decreasing sequence of penalties, with warm starts, local search and budgets.

The sequence starts from the empty ensemble. Each descent starts from the result at the next larger penalty
(ForestPrune, section 3.2). A node budget is met by bisection of the penalty and by trimming.

References
----------
Liu and Mazumder (2023), ForestPrune: compact depth-pruned tree ensembles, AISTATS. Section 3.1 (cyclic block coordinate
descent and local search) and section 3.2 (regularisation paths).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from secateur.data.rows import LocalRows
from secateur.forest import Forest
from secateur.kernels import Prices, State
from secateur.solvers.base import decreasing_penalties
from secateur.solvers.ensemble.additive_model import Additive, rounds, with_replacements

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
SCREENING = 0.1
"""Dropped trees are tested for entry down to this multiple of the penalty."""
_MARGIN = 0.5
"""A dropped tree is visited if its estimated entry penalty is at least this multiple of the penalty."""
_FEW_SWEEPS, _FEW_UPDATES, _NARROW_MARGIN = 3, 0.25, 0.8
"""Number of sweeps, number of updates as a fraction of the trees, and margin of a brief descent."""
_BISECTIONS, _FULL = 8, 0.995
"""Largest number of bisections of the penalty to meet a budget of nodes; they end when this fraction of it is used."""
_MORE_PENALTIES = 20
"""Number of penalties after the last that are visited until a budget of nodes is used up."""
_TRAIL = 4
"""Number of penalties before the last from which other ridges branch off."""


class Copyable(Protocol):
    """A state that can be copied, so that a descent can be undone."""

    def copy(self) -> Self:
        """Return an independent copy."""


class NodeStates(Protocol):
    """A state that has a status for every node."""

    @property
    def status(self) -> NDArray[np.int8]:
        """0 absent, 1 split, 2 leaf, (n_nodes,)."""


S = TypeVar("S", bound=Copyable)
Found = tuple[float, S]
"""A penalty and the state at it."""
N = TypeVar("N", bound=NodeStates)


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


class PathDescent(ABC, Generic[S]):
    """Block descent along decreasing penalties with warm starts; subclasses implement the sweep over the trees.

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
    brief : bool
        Whether the last state yielded by `run` was found by a brief descent.
    trail : list of (penalty, state)
        The last states of `walk`.
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
    updates = 0
    brief = False
    sweep_cost = 0
    trail: Sequence[Found[S]] = ()
    _penalty_index = (0, 1)
    _n_reported = 0

    def run(self) -> Iterator[tuple[float, S]]:
        """Yield the penalty and the state at every penalty, the largest first.

        With a node budget, stop at the first penalty that exceeds it, and yield the states of `meet`.
        """
        budget = self.settings.max_nodes
        yield from self.warm_up()
        if budget is not None:
            self.brief = True
            yield from self.walk(budget)
            self.brief = False
            yield from self.meet(budget, *self.bracket(budget))
            return
        penalties = self.penalties()
        for index, penalty in enumerate(penalties):
            self._penalty_index = (index, len(penalties))
            self.descend(penalty)
            yield penalty, self.improved(penalty)

    @property
    def brief_column(self) -> dict[str, float]:
        """The entry `brief` of the last state in the table of a path, if the path has prunings of brief descents."""
        has_brief = bool(self.settings.warm_up) or self.settings.max_nodes is not None
        return {"brief": float(self.brief)} if has_brief else {}

    def warm_up(self) -> Iterator[Found[S]]:
        """Yield the penalties and the states of brief descents before the first penalty."""
        self.brief = True
        for penalty, ridge in self.settings.warm_up:
            self.set_ridge(ridge)
            self.step(penalty)
            yield penalty, self.improved(penalty)
        self.brief = False
        self.set_ridge(self.settings.ridge)

    def set_ridge(self, ridge: float) -> None:
        """Change the ridge, in rows; by default values are not refitted and have none."""

    def improved(self, penalty: float) -> S:
        """Enforce the limit on the number of trees, then improve the state by local search; return it."""
        self.limit_trees(penalty)
        if self.settings.local_search:
            self.search(penalty)
        return self.state

    def walk(self, budget: float) -> Iterator[tuple[float, S]]:
        """Yield a quickly found state at every penalty, until the first that exceeds the budget of nodes.

        `trail` gets copies of the last states, from which `bracket` can start with other settings.
        """
        self.trail = [(np.inf, self.state.copy())]
        penalties = self.penalties_below(budget)
        sizes = [0]
        for index, penalty in enumerate(penalties):
            self._penalty_index = (index, len(penalties))
            self.step(penalty)
            yield penalty, self.improved(penalty)
            self.trail = [*self.trail[-_TRAIL:], (penalty, self.state.copy())]
            sizes.append(self.size(self.state))
            over = sizes[-1] > budget
            if over or (index >= len(self.penalties()) and sizes[-1] <= sizes[-2]):
                return

    def bracket(self, budget: int, back: int = 1) -> tuple[Found[S], Found[S] | None]:
        """Return the last state within a budget of nodes and the first over it, None if no state exceeds it.

        Start `back` penalties before the end of `trail` and walk on with the present ridge.
        """
        if back == 1:
            over = self.trail[-1] if self.size(self.trail[-1][1]) > budget else None
            return (self.trail[-1] if over is None else self.trail[-2]), over
        fits = self.trail[max(len(self.trail) - 1 - back, 0)]
        self.state = fits[1].copy()
        for penalty in self.penalties_below(budget):
            if penalty < fits[0]:
                self.step(penalty)
                if self.size(self.state) > budget:
                    return fits, (penalty, self.state.copy())
                fits = (penalty, self.state.copy())
        return fits, None

    def step(self, penalty: float) -> None:
        """Descend briefly, which is enough for a warm start at the next penalty.

        Only trees that are likely to enter are visited. After a few sweeps, or as soon as one gains less than the price
        of a node, the descent ends, but not before a fraction of the trees has been updated.
        """
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

    def limit_trees(self, penalty: float) -> None:
        """Enforce `max_trees`: drop the trees with the smallest increase in loss, then exclude all others for good.

        Trees of one boosting round are dropped together.
        """
        limit = self.settings.max_trees
        if limit is None or self.n_trees(self.state) <= limit:
            return
        round_of = rounds(self.ensemble.forest)
        while self.n_trees(self.state) > limit and self.used().any():
            rise = np.bincount(round_of, np.where(self.used(), self.rises(), 0.0))
            rise[np.bincount(round_of, self.used()) == 0] = np.inf
            for tree in np.flatnonzero((round_of == rise.argmin()) & self.used()):
                self.drop(int(tree))
        self.open = self.kept_trees(self.state)
        self.descend(penalty)

    def penalties(self) -> Floats:
        """Return the penalties, the largest first.

        At the largest one no tree pays off: the cheapest stump costs as much as the loss without trees.
        """
        largest = self.scale / max(self.stump_price, 1e-300)
        return decreasing_penalties(self.settings.penalties, largest, self.settings.smallest)

    def penalties_below(self, budget: float) -> Floats:
        """Return the penalties, followed by smaller ones in case that a budget of nodes is not used up by then."""
        penalties = self.penalties()
        if not isinstance(self.settings.penalties, int) or len(penalties) < 2 or budget > self.ensemble.forest.n_nodes:
            return penalties
        ratio = penalties[-1] / penalties[-2]
        return np.append(penalties, penalties[-1] * ratio ** np.arange(1, _MORE_PENALTIES + 1))

    @cached_property
    def stump_price(self) -> float:
        """The price of the cheapest tree with one split, 0 if all are free."""
        root = self.ensemble.forest.root
        root = root[self.ensemble.forest.is_split[root]]
        right = self.ensemble.forest.right[root]
        price = self.prices.as_split[root] + self.prices.as_leaf[root + 1] + self.prices.as_leaf[right]
        return float(price.min(initial=np.inf, where=price > 0))

    def search(self, penalty: float) -> None:
        """Improve the state by local search (ForestPrune, section 3.1).

        Drop a random tree, descend beginning with the first unused tree, and revert unless the objective decreased.
        """
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

    def meet(self, budget: int, fits: Found[S], over: Found[S] | None) -> Iterator[Found[S]]:
        """Yield states that use nearly all of a budget of nodes.

        The first is found by bisection of the penalty, with warm starts from the state within the budget. The second
        is the smallest state over the budget, trimmed; layers are not trimmed.

        Parameters
        ----------
        budget : int
        fits, over : (penalty, state)
            The last state within the budget and the first over it; None if no state exceeds it.
        """
        fits, over = self.bisect(budget, fits, over, _BISECTIONS, brief=False)
        self.state = fits[1].copy()
        self.descend(fits[0], frozen=True)
        yield fits[0], self.state
        if over is not None and not self.settings.layered:
            self.state = over[1].copy()
            self.trim(budget)
            self.descend(over[0], frozen=True)
            yield over[0], self.state

    def bisect(
        self, budget: int, fits: Found[S], over: Found[S] | None, n_steps: int, *, brief: bool
    ) -> tuple[Found[S], Found[S] | None]:
        """Return states within and over the budget at penalties that are closer together."""
        self.state = fits[1]
        closed = np.flatnonzero(self.used() & ~self.open)
        for tree in closed:
            self.drop(int(tree))
        if len(closed):
            fits = (fits[0], self.state.copy())
        # Invariant: `fits` is within the budget, `over` exceeds it, and fits[0] > over[0].
        for _ in range(n_steps):
            if over is None or self.size(fits[1]) >= _FULL * budget:
                break
            penalty = np.sqrt(min(fits[0], 1e3 * over[0]) * over[0])
            self.state = fits[1].copy()
            if brief:
                self.step(penalty)
            else:
                self.descend(penalty, screened=True)
            if self.size(self.state) > budget:
                over = (penalty, self.state)
            else:
                fits = (penalty, self.state)
        return fits, over

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

    def trim(self, budget: int) -> None:
        """Collapse the weakest splits until at most `budget` nodes are left. By default nothing is trimmed."""


class RowDescent(PathDescent[S]):
    """A descent on rows in memory, which can also start from the unpruned ensemble and predict other rows."""

    turns_back: ClassVar[bool] = False
    """Whether prunings found at increasing penalties, after decreasing ones, are better."""
    rising = False

    @abstractmethod
    def start_empty(self) -> None:
        """Let the state be the ensemble without trees, from which penalties decrease."""

    @abstractmethod
    def start_full(self) -> None:
        """Let the state be the unpruned ensemble, from which penalties increase."""

    def start_falling(self) -> None:
        """Turn to decreasing penalties."""
        self.rising = False

    def start_rising(self) -> None:
        """Turn to increasing penalties."""
        self.rising = True

    @abstractmethod
    def predict(self, state: S, rows: LocalRows) -> Floats:
        """Return the raw scores of a state for other rows, on the model's scale, (n_rows, n_outputs)."""

    @abstractmethod
    def raw(self, state: S) -> Floats:
        """Return the raw scores of a state for the rows it was fitted on, (n_rows, n_outputs)."""


def distinct(states: Iterable[tuple[float, N]], phase: Callable[[], object] = bool) -> Iterator[tuple[float, N]]:
    """Yield the states whose kept nodes differ from those of the state before, and the first one of every phase."""
    before, last = np.empty(0, np.int8), phase()
    for penalty, state in states:
        now = phase()
        if now != last or not np.array_equal(before, state.status):
            before, last = state.status.copy(), now
            yield penalty, state


def layer_prices(forest: Forest) -> Prices:
    """Return prices with which a layer below the root costs 1, charged to its first node."""
    tree = np.repeat(np.arange(forest.n_trees), np.diff(forest.tree_start))
    _, first = np.unique(tree * (forest.max_depth + 1) + forest.depth, return_index=True)
    price = np.zeros(forest.n_nodes)
    price[first] = 1.0
    price[forest.root] = 0.0
    return Prices(price, price)
