"""Prune a forest that averages its trees under feature prices, with leaf values in the range of its predictions."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.costs import NodeCost
from secateur.kernels import MeanProblem, Pricing, State
from secateur.problem import Problem
from secateur.solvers.ensemble.additive_model import Additive, fill_splits, mean_loss
from secateur.solvers.ensemble.mean_of_trees import MeanDescent
from secateur.solvers.ensemble.mean_values import refit_settings
from secateur.solvers.feature_cost._backward_elimination import Elimination
from secateur.solvers.feature_cost._priced_descent import Bools, Floats, PricedDescentSettings


class PricedMean(Elimination):
    """Prune a mean of trees under feature prices, starting from the whole forest.

    The searches are those of `PricedDescent` and `Elimination`; the update of a tree is that of `MeanDescent`, which
    keeps every leaf value in the range of the model's predictions.
    """

    def __init__(self, ensemble: Additive, problem: Problem, settings: PricedDescentSettings) -> None:
        super().__init__(ensemble, problem, settings)
        values = "keep" if settings.keep else "refit"
        self.mean = MeanDescent(ensemble, replace(problem, cost=NodeCost()), refit_settings(values, settings.ridge))
        self.mean.start_from(np.ones(self.forest.n_nodes, bool))
        self.trees = self.mean.trees._replace(as_leaf=np.zeros(self.forest.n_nodes), as_split=self.prices.as_split)
        self.now = replace(self.now, state=self.mean.state)

    def sweep(self, penalty: float, price_fraction: Floats, budget: float = -1.0) -> float:
        """Update each tree in turn; return the gain. Stop early when the budget is met."""
        now, mean = self.now, self.mean
        kernels.recompute_scores(mean.rows, self.trees, mean.range, now.state.arrays)
        pricing = Pricing(penalty, self.settings.per_split, price_fraction, now.banned)
        gain, spent = self._sweep_means(pricing, budget, frozen=False)
        self._pay(spent)
        return gain

    def refit(self) -> None:
        """Refit the leaf values without changing the splits."""
        for _ in range(0 if self.settings.keep else self.settings.sweeps):
            gain, _ = self._sweep_means(self.free(), -np.inf, frozen=True)
            if gain <= 1e-4 * self.scale:
                return

    def _sweep_means(self, pricing: Pricing, budget: float, *, frozen: bool) -> tuple[float, float]:
        now, mean = self.now, self.mean
        return kernels.sweep_priced_means(
            mean.rows,
            self.trees,
            mean.range,
            now.state.arrays,
            mean.scratch,
            MeanProblem(1.0, mean.ridge, mean.keeps_values, frozen, 1e-12 * self.scale),
            self.purchases,
            now.counts,
            pricing,
            now.spent,
            budget,
        )

    def decide(self, state: Any, problem: Problem) -> tuple[Bools, Floats, float]:
        """Return keep mask, node values and risk of a state."""
        return *self.mean.decide(state), mean_loss(self.ensemble, problem, self.mean.raw(state))

    def loss_and_ridge(self) -> float:
        """Return the loss plus the ridge term."""
        self.mean.state = self.now.state
        return self.mean.objective(0.0)

    def ban(self, features: NDArray[np.intp]) -> None:
        """Forbid these features from now on; the next sweep collapses every split on them, as it costs infinity."""
        banned = self.now.banned.copy()
        banned[features] = True
        self.now = replace(self.now, banned=banned)

    def collapsible(self) -> tuple[State, Floats]:
        """Return the state as a sum of contributions, and the contribution of each node once its split collapses."""
        state, ensemble = self.now.state, self.mean.ensemble
        n_trees = max(int(state.size[0]), 1)
        neg_gradient = ensemble.weight * (ensemble.target - state.score).T
        none, status = np.empty((0, 0)), state.status
        empty, value = np.empty(0), state.value / n_trees
        view = State(neg_gradient, none, none, np.zeros(1), empty, status, value, empty, empty)
        return view, fill_splits(ensemble, status, state.value) / n_trees

    def loss_increase(self, shift: Floats) -> float:
        """Return the loss increase when the predictions move by `shift` (n_rows, n_outputs)."""
        ensemble = self.mean.ensemble
        residual = ensemble.target - self.now.state.score
        return float(ensemble.weight @ (shift * (shift - 2 * residual)).sum(axis=1))
