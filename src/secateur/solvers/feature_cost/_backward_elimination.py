"""Eliminate features backwards: drop the one with the smallest loss increase per cost saved, then repair the trees."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.kernels import State
from secateur.solvers.ensemble.additive_model import fill_splits, renew_parabolas
from secateur.solvers.feature_cost._priced_descent import Floats, Found, PricedDescent, Purchases

_MAX_SETS = 64
"""Above this number of sets, more than one set is dropped at a time."""
_N_TRIALS = 3
"""Number of candidate sets that are dropped on trial, with repair, before one is chosen."""
_MAX_FLOATS = 2**25
"""Maximum number of floats held while sets are compared."""


class Elimination(PricedDescent):
    """Eliminate features, singly or by price group, until no feature with a cost is left."""

    def eliminate(self, least: float, budgets: tuple[float, ...]) -> Found:
        """Yield the state after each elimination, together with the states that just meet the budgets.

        `least` is the initial penalty. The penalty is later raised to the largest ratio of loss increase to cost
        saved seen so far. After each elimination the descent is also run at three times the penalty, as a side
        branch.
        """
        rate = least
        self.descend(rate, anneal=False)
        yield "eliminate", rate, self.now.state
        n_sets = len(self.droppable())
        while sets := self.droppable():
            if self.on_progress:
                self.on_progress(n_sets - len(sets), n_sets)
            before = self.now.copy()
            rate = max(rate, self.drop_one_of(sets, rate))
            yield from self.between(before, budgets, rate)
            branch = self.now.copy()
            self.descend(3.0 * rate, anneal=False, sweeps=2)
            yield "eliminate", 3.0 * rate, self.now.state
            self.now = branch
            self.descend(rate, anneal=False, sweeps=3)
            yield "eliminate", rate, self.now.state

    def droppable(self) -> list[NDArray[np.intp]]:
        """Return the sets of features to try: each used feature with a cost, and each group with several of them."""
        resources, feature = self.purchases.resources, self.forest.feature
        used = np.unique(feature[self.now.state.status == 1])
        priced = used[(resources[used] >= 0).any(axis=1)]
        sets = [np.array([k]) for k in priced]
        for group in np.unique(resources[priced, 1][resources[priced, 1] >= 0]):
            members = priced[resources[priced, 1] == group]
            if len(members) > 1:
                sets.append(members)
        return sets

    def drop_one_of(self, sets: list[NDArray[np.intp]], rate: float) -> float:
        """Ban the set of features with the smallest loss increase per cost saved, and repair the trees.

        The few sets that look best before repair are tried, and the one that is best after repair is banned. With
        more than `_MAX_SETS` sets, several are banned at once without trial.

        Returns
        -------
        float
            The loss increase per cost saved.
        """
        increase, saved = self.drop_effects(sets)
        order = np.argsort(increase / np.maximum(saved, 1e-300))
        start, cost, spent = self.now, self.objective(0.0), self.now.spent
        if len(sets) > _MAX_SETS:
            first = [sets[k] for k in order[: len(sets) // _MAX_SETS]]
            trials = [np.unique(np.concatenate(first))]
        else:
            trials = [sets[k] for k in order[:_N_TRIALS]]
        best: tuple[float, Purchases] | None = None
        for trial in trials:
            self.now = start.copy()
            self.ban(trial)
            self.descend(rate, anneal=False, sweeps=1)
            paid = (self.objective(0.0) - cost) / max(spent - self.now.spent, 1e-300)
            if best is None or paid < best[0]:
                best = paid, self.now
        assert best is not None
        self.now = best[1]
        return best[0]

    def ban(self, features: NDArray[np.intp]) -> None:
        """Collapse every split on these features and forbid them from now on."""
        ensemble, now = self.ensemble, self.now
        banned = now.banned.copy()
        banned[features] = True
        change = kernels.collapse_features(
            ensemble.rows,
            ensemble.trees,
            now.state,
            self.forest.end,
            fill_splits(ensemble, now.state.status, now.state.contribution),
            self.purchases,
            now.counts,
            banned,
        )
        self.now = replace(now, spent=now.spent + change, banned=banned)
        if not ensemble.objective.quadratic:
            renew_parabolas(ensemble, now.state)

    def drop_effects(self, sets: list[NDArray[np.intp]]) -> tuple[Floats, Floats]:
        """Return the loss increase without each set of features, before repair, and the cost saved, both (n_sets,)."""
        increase, saved = np.empty(len(sets)), np.empty(len(sets))
        batch_size = max(1, _MAX_FLOATS // max(self.ensemble.target.size, 1))
        for first in range(0, len(sets), batch_size):
            batch = sets[first : first + batch_size]
            increase[first : first + batch_size] = self.loss_increases(batch)
        for k, members in enumerate(sets):
            resources = np.unique(self.purchases.resources[members])
            resources = resources[resources >= 0]
            # A single feature saves its own price only: the group price is still paid if other members are used.
            if len(members) == 1:
                resources = self.purchases.resources[members[0], :1]
                resources = resources[resources >= 0]
            needed = self.now.counts[:, resources] > 0
            saved[k] = float((self.purchases.reach[:, None] * needed * self.purchases.prices[:, resources]).sum())
        return increase, saved

    def loss_increases(self, sets: list[NDArray[np.intp]]) -> Floats:
        """Return the loss increase when the splits of each set collapse to their mean leaf values, (n_sets,)."""
        ensemble, forest = self.ensemble, self.forest
        state, mean = self.collapsible()
        increase = np.empty(len(sets))
        single = [k for k, members in enumerate(sets) if len(members) == 1]
        # Single features are disjoint and share one pass over the rows. A group needs a pass: it overlaps its members.
        passes = [single] if single else []
        passes += [[k] for k, members in enumerate(sets) if len(members) > 1]
        for indices in passes:
            set_index = np.full(forest.n_features, -1, np.int64)
            for position, k in enumerate(indices):
                set_index[sets[k]] = position
            shift = kernels.shifts_without(
                ensemble.rows, ensemble.trees, state, forest.parent, mean, forest.feature, set_index, len(indices)
            )
            increase[indices] = [self.loss_increase(one) for one in shift]
        return increase

    def collapsible(self) -> tuple[State, Floats]:
        """Return the state, and the contribution of each node once its split collapses; a collapsed root adds 0."""
        state = self.now.state
        mean = fill_splits(self.ensemble, state.status, state.contribution)
        mean[self.forest.root] = 0.0
        return state, mean

    def loss_increase(self, shift: Floats) -> float:
        """Return the loss increase when the raw predictions move by `shift` (n_rows, n_outputs)."""
        ensemble, state = self.ensemble, self.now.state
        # Squared error: w (r − s)² − w r² = s (w s − 2 w r), with w r the negative gradient.
        if ensemble.objective.quadratic:
            return float((shift * (ensemble.weight[:, None] * shift - 2 * state.neg_gradient.T)).sum())
        return float(ensemble.weight @ ensemble.objective.rows(state.score.T + shift, ensemble.target)) - state.loss[0]
