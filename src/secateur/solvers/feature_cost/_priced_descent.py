"""Prune an ensemble by block coordinate descent under feature prices: tree by tree, at rising penalties, to budgets."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.kernels import BlockProblem, Prices, Pricing, PurchaseTable
from secateur.problem import Problem
from secateur.solvers.ensemble.additive_model import (
    Additive,
    decide,
    empty_state,
    full_state,
    loss_of,
    renew_parabolas,
    risk_of,
)
from secateur.solvers.ensemble.mean_state import MeanState

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Found = Iterator[tuple[str, float, Any]]
"""Tuples of the origin of a state, its penalty, and the state."""


@dataclass(frozen=True, eq=False)
class Purchases:
    """The state of an ensemble during the descent, and the purchases of its rows.

    Attributes
    ----------
    state : State, or MeanState for a mean of trees
    counts : (n_rows, n_resources) int16
        The number of trees in which a row needs a resource.
    spent : float
        The average price a row pays.
    banned : (n_features,) bool
        Features that no split may use.
    """

    state: Any
    counts: NDArray[np.int16]
    spent: float
    banned: Bools

    def copy(self) -> "Purchases":
        """Return an independent copy."""
        # The copy of a mean with many values would be packed, and could not be descended on.
        state = self.state.independent() if isinstance(self.state, MeanState) else self.state.copy()
        return Purchases(state, self.counts.copy(), self.spent, self.banned.copy())


@dataclass(frozen=True)
class PricedDescentSettings:
    """Settings of the descent.

    `ridge`, `centre` and `per_split` weigh the terms of the objective of `CostDescent`: leaf values are shrunk
    towards `centre` times their original values. `keep` keeps the leaf values, `anneal` has the annealing exponents,
    and `sweeps` limits the sweeps.
    """

    keep: bool
    ridge: float
    centre: float
    per_split: float
    anneal: tuple[float, ...]
    sweeps: int


class PricedDescent:
    """Prune an ensemble under feature prices, starting from the whole ensemble.

    Attributes
    ----------
    now : Purchases
        The state at the end of the last descent.
    scale : float
        The loss of a constant prediction; gains are compared with it.
    on_progress : callable, optional
        Called as `on_progress(done, total)` before every penalty or elimination.
    """

    on_progress: Callable[[int, int], None] | None = None

    def __init__(self, ensemble: Additive, problem: Problem, settings: PricedDescentSettings) -> None:
        self.ensemble, self.settings = ensemble, settings
        forest = self.forest = ensemble.forest
        has_weight = problem.sample.weight > 0
        price_table = problem.price_table
        prices = (
            price_table.prices if has_weight.all() or len(price_table.prices) == 1 else price_table.prices[has_weight]
        )
        n_resources = price_table.prices.shape[1]
        begin, listed = kernels.list_rows(
            ensemble.leaves, forest.tree_start, forest.parent, forest.feature, price_table.resources, n_resources
        )
        reach = problem.sample.weight[has_weight] / problem.total_weight
        self.purchases = PurchaseTable(
            forest.feature, price_table.resources, np.ascontiguousarray(prices), reach, begin, listed
        )
        self.prices = Prices(np.zeros(forest.n_nodes), np.zeros(forest.n_nodes))
        self.prices.as_leaf[forest.root] = np.inf
        self.ridge = 0.0 if settings.keep else settings.ridge * ensemble.ridge_unit
        self.scale = _constant_loss(ensemble)
        values = kernels.KEEP if settings.keep else kernels.REFIT
        self.block_problem = BlockProblem(1.0, self.ridge, settings.centre, values, False, 1e-12 * self.scale)
        state, counts = full_state(ensemble), np.zeros((len(ensemble.weight), n_resources), np.int16)
        spent = kernels.count_tree(0, forest.n_nodes, 1, self.purchases, state.status, counts)
        self.now = Purchases(state, counts, spent, np.zeros(forest.n_features, bool))

    def price_fraction(self, theta: float | None) -> Floats:
        """Return the fraction of its price that a resource costs a tree, by the number of other trees that need it.

        The fraction is (1 + others)^−θ, or for None the true price: 1 if no other tree needs the resource, else 0.
        """
        others = np.arange(self.forest.n_trees + 1.0)
        return (others == 0).astype(np.float64) if theta is None else (1.0 + others) ** -theta

    def descend(self, penalty: float, *, anneal: bool = True, sweeps: int | None = None, budget: float = -1.0) -> None:
        """Sweep over the trees at a penalty, stage by stage, until the gain is negligible or the budget is met."""
        for theta in (*self.settings.anneal, None) if anneal else (None,):
            most = sweeps or (self.settings.sweeps if theta is None else max(1, self.settings.sweeps // 2 + 1))
            for _ in range(most):
                gain = self.sweep(penalty, self.price_fraction(theta), budget)
                if self.now.spent <= budget:
                    return
                if gain <= 1e-4 * self.scale:
                    break

    def sweep(self, penalty: float, price_fraction: Floats, budget: float = -1.0) -> float:
        """Update each tree in turn, then the intercept; return the gain. Stop early when the budget is met."""
        if self.ensemble.objective.quadratic:
            return self._sweep_once(penalty, price_fraction, budget)[0]
        for attempt in range(self.ensemble.objective.n_curvatures):
            before = self.now.copy()
            if attempt:
                renew_parabolas(self.ensemble, self.now.state, attempt)
            _, saved = self._sweep_once(penalty, price_fraction, budget)
            gain = before.state.loss[0] - renew_parabolas(self.ensemble, self.now.state) + saved
            if gain > self.block_problem.tolerance:
                return float(gain)
            # The parabolas were too flat: undo the sweep.
            self.now = before
        return 0.0

    def _sweep_once(self, penalty: float, price_fraction: Floats, budget: float) -> tuple[float, float]:
        """Update each tree in turn, then the intercept; return the gain and its part that is penalty and ridge."""
        now = self.now
        pricing = Pricing(penalty, self.settings.per_split, price_fraction, now.banned)
        gain, saved, spent = self._sweep_blocks(self.block_problem, pricing, budget)
        self._pay(spent)
        return gain, saved

    def _sweep_blocks(self, problem: BlockProblem, pricing: Pricing, budget: float) -> tuple[float, float, float]:
        ensemble, now = self.ensemble, self.now
        return kernels.sweep_priced_blocks(
            ensemble.rows,
            ensemble.trees,
            self.prices,
            now.state,
            problem,
            self.purchases,
            now.counts,
            pricing,
            now.spent,
            budget,
        )

    def _pay(self, spent: float) -> None:
        """Set the average price a row pays; without splits nothing is bought, which clears the rounding error."""
        has_splits = (self.now.state.status[self.forest.root] == 1).any()
        self.now = replace(self.now, spent=spent if has_splits else 0.0)

    def free(self) -> Pricing:
        """Return the pricing with which no split costs anything, for sweeps that keep the splits."""
        return Pricing(0.0, 0.0, np.zeros(self.forest.n_trees + 1), np.zeros(self.forest.n_features, bool))

    def refit(self) -> None:
        """Refit the leaf values and the intercept without changing the splits."""
        if self.settings.keep:
            return
        ensemble, quadratic, problem = self.ensemble, self.ensemble.objective.quadratic, self.block_problem
        for _ in range(self.settings.sweeps):
            before = None if quadratic else self.now.state.copy()
            # Sweeps with prices also do this: another kernel for it would take a second to compile.
            gain, saved, _ = self._sweep_blocks(problem._replace(frozen=True), self.free(), -np.inf)
            if before is not None:
                gain = before.loss[0] - renew_parabolas(ensemble, self.now.state) + saved
                if gain < 0:
                    self.now = replace(self.now, state=before)
            if gain <= 1e-4 * self.scale:
                return

    def decide(self, state: Any, problem: Problem) -> tuple[Bools, Floats, float]:
        """Return keep mask, node values and risk of a state."""
        return *decide(self.ensemble, state), risk_of(self.ensemble, state, problem)

    def anneal(self, penalties: Floats, budgets: tuple[float, ...]) -> Found:
        """Yield the states at increasing penalties and those that just meet the budgets.

        Each penalty is warm-started from the state of the previous one.
        """
        last = 0.0
        for index, penalty in enumerate(penalties):
            if self.on_progress:
                self.on_progress(index, len(penalties))
            before = self.now.copy()
            self.descend(penalty)
            yield from self.between(before, budgets, np.sqrt(max(last, penalty / 100) * penalty))
            yield "anneal", penalty, self.now.state
            last = penalty
            if not (self.now.state.status[self.forest.root] == 1).any():
                return

    def between(self, before: Purchases, budgets: tuple[float, ...], penalty: float) -> Found:
        """Yield the states that just meet the budgets between the price of `before` and the current price."""
        after = self.now
        for budget in sorted(budgets, reverse=True):
            if before.spent > budget >= after.spent:
                self.now = before.copy()
                penalty = self.meet(budget, penalty)
                yield "budget", penalty, self.now.state
        self.now = after

    def meet(self, budget: float, penalty: float) -> float:
        """Descend at increasing penalties, stop as soon as the budget is met, and refit the leaf values.

        Return the penalty at which the budget was met.
        """
        just_below = budget * (1 - 1e-9)
        for _ in range(200):
            self.descend(penalty, budget=just_below)
            if self.now.spent <= just_below:
                break
            penalty *= 1.5
        self.refit()
        return penalty

    def objective(self, penalty: float, theta: float | None = None) -> float:
        """Return the objective of an annealing stage."""
        state, purchases = self.now.state, self.purchases
        cumulated = np.concatenate([[0.0], np.cumsum(self.price_fraction(theta))])
        price = (
            float((purchases.reach[:, None] * purchases.prices * cumulated[self.now.counts]).sum()) if penalty else 0.0
        )
        splits = self.settings.per_split * np.count_nonzero(state.status == 1)
        return self.loss_and_ridge() + penalty * price + splits

    def loss_and_ridge(self) -> float:
        """Return the loss plus the ridge term."""
        state = self.now.state
        at_leaf = state.status == 2
        deviation = state.contribution[at_leaf] - self.settings.centre * self.ensemble.original[at_leaf]
        return loss_of(self.ensemble, state) + self.ridge * float((deviation**2).sum())


def _constant_loss(ensemble: Additive) -> float:
    """Return the loss of the best constant prediction; for squared error without the offsets of the rows."""
    if not ensemble.objective.quadratic:
        return loss_of(ensemble, empty_state(ensemble))
    mean = ensemble.weight @ ensemble.target / ensemble.weight.sum()
    return float(ensemble.weight @ ((ensemble.target - mean) ** 2).sum(axis=1))
