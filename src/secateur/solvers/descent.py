"""Descents over the trees of an ensemble at falling penalties, the search around them, and budgets met exactly."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.problem import Problem
from secateur.solvers.additive import Additive, State, empty_state, loss_of, with_stand_ins
from secateur.solvers.penalties import falling

Floats = NDArray[np.float64]
_VALUES = {
    "keep": kernels.KEEP,
    "refit": kernels.REFIT,
    "scale": kernels.SCALE,
    "scale_sparse": kernels.SCALE_SPARSE,
}


@dataclass(frozen=True)
class Settings:
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
    penalties, smallest, max_sweeps, local_search, max_nodes, seed
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
    seed: int


class Descent:
    """One sequence of descents from the empty ensemble, with the settings of a solver."""

    def __init__(self, ensemble: Additive, problem: Problem, settings: Settings) -> None:
        self.ensemble, self.settings = ensemble, settings
        self.as_leaf, self.as_split = _prices(problem, settings.by_depth)
        self.state = empty_state(ensemble)
        self.scale = loss_of(ensemble, self.state)
        self.values = _VALUES[settings.values]
        self.ridge = 0.0 if settings.values == "keep" else settings.ridge
        if settings.values == "refit":
            self.ridge *= ensemble.weight.sum() / len(ensemble.weight)
        self.rng = np.random.default_rng(settings.seed)

    def run(self) -> Iterator[tuple[float, State]]:
        """Yield the state at every penalty, the largest first, and at the node budget."""
        budget = self.settings.max_nodes
        fits, over = (np.inf, self.state.copy()), None
        for penalty in self.penalties():
            self.descend(penalty)
            if self.settings.local_search:
                self.search(penalty)
            yield penalty, self.state
            if budget is not None and over is None:
                if self.size(self.state) <= budget:
                    fits = (penalty, self.state.copy())
                else:
                    over = (penalty, self.state.copy())
        if budget is not None and over is not None:
            yield from self.meet(budget, fits, over)

    def penalties(self) -> Floats:
        """Return the penalties, the largest first."""
        root = self.ensemble.forest.root
        root = root[self.ensemble.forest.is_split[root]]
        right = self.ensemble.forest.right[root]
        price = self.as_split[root] + self.as_leaf[root + 1] + self.as_leaf[right]
        largest = self.scale / max(price.min(initial=np.inf, where=price > 0), 1e-300)
        return falling(self.settings.penalties, largest, self.settings.smallest)

    def descend(self, penalty: float, *, first: int = 0, frozen: bool = False) -> float:
        """Update trees until nothing changes, or as long as the settings allow; return what was gained."""
        ensemble, forest, state = self.ensemble, self.ensemble.forest, self.state
        exact = self.values == kernels.KEEP
        _, gain = kernels.descend_blocks(
            ensemble.leaves,
            ensemble.weight,
            state.pull,
            state.chance,
            state.intercept,
            forest.tree_start,
            forest.tree_output,
            forest.right,
            forest.depth,
            ensemble.share,
            ensemble.own,
            self.as_leaf,
            self.as_split,
            state.status,
            state.part,
            state.factor,
            penalty,
            self.ridge,
            self.values,
            self.settings.layered,
            frozen,
            first,
            self.settings.max_sweeps,
            1e-12 * self.scale,
            0.0 if exact else 1e-5 * self.scale,
        )
        return float(gain)

    def search(self, penalty: float) -> None:
        """Drop a tree, descend from the first that is not used, and go back if that was no better."""
        failures = 0
        while failures < self.settings.local_search:
            used = np.flatnonzero(self.state.status[self.ensemble.forest.root])
            if not len(used):
                return
            before, old = self.state, self.objective(penalty)
            self.state = before.copy()
            self.drop(int(self.rng.choice(used)))
            unused = np.flatnonzero(self.state.status[self.ensemble.forest.root] == 0)
            self.descend(penalty, first=int(unused[0]))
            if self.objective(penalty) < old - 1e-12 * self.scale:
                failures = 0
            else:
                self.state, failures = before, failures + 1

    def size(self, state: State) -> int:
        """Return how many nodes the pruned model has."""
        return int(np.count_nonzero(with_stand_ins(self.ensemble, state)))

    def objective(self, penalty: float) -> float:
        """Return what is being minimised."""
        state = self.state
        half = 0.5 if self.ensemble.logits else 1.0
        price = self.as_leaf[state.status == 2].sum() + self.as_split[state.status == 1].sum()
        extra = 0.0
        if self.values == kernels.REFIT:
            extra = half * self.ridge * float((state.part[state.status == 2] ** 2).sum())
        elif self.values == kernels.SCALE:
            extra = half * self.ridge * float((state.factor**2).sum())
        elif self.values == kernels.SCALE_SPARSE:
            extra = half * self.ridge * int(np.count_nonzero(state.status[self.ensemble.forest.root]))
        return loss_of(self.ensemble, state) + penalty * price + extra

    def drop(self, tree: int) -> None:
        """Take one tree out."""
        ensemble, forest, state = self.ensemble, self.ensemble.forest, self.state
        kernels.drop_tree(
            ensemble.leaves[tree],
            ensemble.weight,
            state.pull,
            state.chance,
            max(forest.tree_output[tree], 0),
            forest.tree_start[tree],
            forest.tree_start[tree + 1],
            state.status,
            state.part,
        )
        state.factor[tree] = 0.0

    def meet(self, budget: int, fits: tuple[float, State], over: tuple[float, State]) -> Iterator[tuple[float, State]]:
        """Yield states that use nearly all of `budget` nodes: one by bisection, one by trimming what is over."""
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
        self.state = over[1].copy()
        self.trim(budget)
        self.descend(over[0], frozen=True)
        yield over[0], self.state

    def trim(self, budget: int) -> None:
        """Collapse the weakest splits until at most `budget` nodes are left."""
        ensemble, forest, state = self.ensemble, self.ensemble.forest, self.state
        while self.size(state) > budget:
            node, rate, value = kernels.weakest_collapses(
                ensemble.leaves,
                ensemble.weight,
                state.pull,
                state.chance,
                forest.tree_start,
                forest.tree_output,
                forest.right,
                ensemble.share,
                ensemble.own,
                self.as_leaf,
                self.as_split,
                state.status,
                state.part,
                self.ridge if self.values == kernels.REFIT else 0.0,
                self.values,
            )
            found = np.flatnonzero(node >= 0)
            if not len(found):
                self.drop(int(np.flatnonzero(state.status[forest.root])[-1]))
                continue
            some = max(1, (self.size(state) - budget) // 8)
            for tree in found[np.argsort(rate[found], kind="stable")[:some]]:
                if self.size(state) <= budget:
                    break
                kernels.collapse(
                    ensemble.leaves[tree],
                    ensemble.weight,
                    state.pull,
                    state.chance,
                    max(forest.tree_output[tree], 0),
                    forest.tree_start[tree],
                    forest.tree_start[tree + 1],
                    node[tree],
                    forest.end[node[tree]],
                    value[tree],
                    state.status,
                    state.part,
                )


def _prices(problem: Problem, by_depth: bool) -> tuple[Floats, Floats]:
    """Return what a node costs as a leaf and as a split; by depth a layer costs 1, paid by its first node."""
    if not by_depth:
        return problem.prices
    forest = problem.forest
    tree = np.repeat(np.arange(forest.n_trees), np.diff(forest.tree_start))
    _, first = np.unique(tree * (forest.max_depth + 1) + forest.depth, return_index=True)
    price = np.zeros(forest.n_nodes)
    price[first] = 1.0
    price[forest.root] = 0.0
    return price, price
