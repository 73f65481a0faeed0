"""Features given up one after the other, the least missed for its price first, and trees repaired after each."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.solvers.ensemble.additive_model import fill_splits
from secateur.solvers.feature_cost._priced_descent import Floats, Found, PricedDescent, Purchases

_AT_ONCE = 64
"""From how many features on more than one is dropped at a time."""
_TRIED = 3
"""How many of the features that look least useful are dropped on trial."""
_ROOM = 2**25
"""How many numbers may be held while features are compared."""


class Elimination(PricedDescent):
    """A descent that bans features, one by one or in groups, until none is left that costs."""

    def eliminate(self, least: float, budgets: tuple[float, ...]) -> Found:
        """Yield what is left when features, and groups of them, go one after the other: the least missed per price.

        `least` is the penalty to begin with; later it is the rate at which loss was given for price.
        """
        rate = least
        self.descend(rate, anneal=False)
        yield "eliminate", rate, self.now.state
        n_sets = len(self.droppable())
        while sets := self.droppable():
            if self.tell:
                self.tell(n_sets - len(sets), n_sets)
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
        """Return the features that cost and are used, each by itself, and groups of them."""
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
        """Ban the features of the set least missed, and repair; return how much loss was given for the price saved.

        Of many sets several go at once, as long as there are many.
        """
        rise, saved = self.price_of_dropping(sets)
        order = np.argsort(rise / np.maximum(saved, 1e-300))
        start, cost, spent = self.now, self.objective(0.0), self.now.spent
        if len(sets) > _AT_ONCE:
            first = [sets[k] for k in order[: len(sets) // _AT_ONCE]]
            trials = [np.unique(np.concatenate(first))]
        else:
            trials = [sets[k] for k in order[:_TRIED]]
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
        """Collapse every split by these features, and let none come back."""
        ensemble, forest, now = self.ensemble, self.forest, self.now
        banned = now.banned.copy()
        banned[features] = True
        change = kernels.collapse_features(
            ensemble.leaves,
            ensemble.weight,
            now.state.neg_gradient,
            now.state.probability,
            forest.tree_start,
            forest.tree_output,
            forest.end,
            fill_splits(ensemble, now.state.status, now.state.contribution),
            now.state.status,
            now.state.contribution,
            forest.feature,
            banned,
            *self.purchases,
            now.counts,
        )
        self.now = replace(now, spent=now.spent + change, banned=banned)

    def price_of_dropping(self, sets: list[NDArray[np.intp]]) -> tuple[Floats, Floats]:
        """Return by how much the loss would rise without each set of features, unrepaired, and what that would save."""
        rise, saved = np.empty(len(sets)), np.empty(len(sets))
        at_once = max(1, _ROOM // max(self.ensemble.target.size, 1))
        for first in range(0, len(sets), at_once):
            some = sets[first : first + at_once]
            rise[first : first + at_once] = self.rises(some)
        for k, members in enumerate(sets):
            resources = np.unique(self.purchases.resources[members])
            resources = resources[resources >= 0]
            if len(members) == 1:
                resources = self.purchases.resources[members[0], :1]
                resources = resources[resources >= 0]
            needed = self.now.counts[:, resources] > 0
            saved[k] = float((self.purchases.reach[:, None] * needed * self.purchases.prices[:, resources]).sum())
        return rise, saved

    def rises(self, sets: list[NDArray[np.intp]]) -> Floats:
        """Return by how much the loss rises when the splits of each set of features collapse to their means."""
        ensemble, forest, state = self.ensemble, self.forest, self.now.state
        mean = fill_splits(ensemble, state.status, state.contribution)
        rise = np.empty(len(sets))
        single = [k for k, members in enumerate(sets) if len(members) == 1]
        rounds = [single] if single else []
        rounds += [[k] for k, members in enumerate(sets) if len(members) > 1]
        for which in rounds:
            asked = np.full(forest.n_features, -1, np.int64)
            for place, k in enumerate(which):
                asked[sets[k]] = place
            shift = kernels.shifts_without(
                ensemble.leaves,
                forest.tree_start,
                forest.tree_output,
                forest.parent,
                mean,
                state.status,
                state.contribution,
                forest.feature,
                asked,
                ensemble.target.shape[1],
                len(which),
            )
            rise[which] = [self.rise_by(one) for one in shift]
        return rise

    def rise_by(self, shift: Floats) -> float:
        """Return by how much the loss rises when the sums of rows move, (n_rows, n_outputs)."""
        ensemble, state = self.ensemble, self.now.state
        if not ensemble.logits:
            return float((shift * (ensemble.weight[:, None] * shift - 2 * state.neg_gradient)).sum())
        if shift.shape[1] == 1:
            rest = np.log1p(state.probability * np.expm1(shift))[:, 0]
        else:
            rest = np.log((state.probability * np.exp(shift)).sum(axis=1))
        return float(ensemble.weight @ (rest - (ensemble.target * shift).sum(axis=1)))
