"""Run block descent along a decreasing sequence of penalties, with warm starts, local search and budgets.

The sequence starts from the empty ensemble. Each descent starts from the result at the next larger penalty
(ForestPrune, section 3.2). A node budget is met by bisection of the penalty and by trimming.

References
----------
Liu and Mazumder (2023), ForestPrune: compact depth-pruned tree ensembles, AISTATS. Section 3.1 (local search) and
section 3.2 (regularisation paths).
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from secateur.data.rows import LocalRows
from secateur.solvers.base import decreasing_penalties
from secateur.solvers.ensemble.additive_model import rounds
from secateur.solvers.ensemble.penalty_descent import PenaltyDescent, S

Floats = NDArray[np.float64]
_BISECTIONS, _FULL = 8, 0.995
"""Largest number of bisections of the penalty to meet a budget of nodes; they end when this fraction of it is used."""
_MORE_PENALTIES = 20
"""Number of penalties after the last that are visited until a budget of nodes is used up."""
_TRAIL = 4
"""Number of penalties before the last from which other ridges branch off."""


class NodeStates(Protocol):
    """A state that has a status for every node."""

    @property
    def status(self) -> NDArray[np.int8]:
        """0 absent, 1 split, 2 leaf, (n_nodes,)."""


Found = tuple[float, S]
"""A penalty and the state at it."""
N = TypeVar("N", bound=NodeStates)


class PathDescent(PenaltyDescent[S]):
    """Block descent along decreasing penalties with warm starts.

    Attributes
    ----------
    brief : bool
        Whether the last state yielded by `run` was found by a brief descent.
    trail : list of (penalty, state)
        The last states of `walk`.
    """

    brief = False
    trail: Sequence[Found[S]] = ()

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
