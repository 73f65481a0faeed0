"""Feature cost for the ensemble's own loss: every budget reachable, by annealed descent and by elimination."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, final

import numpy as np

from secateur.costs import Cost, FeatureCost, SharedCost
from secateur.path import Path
from secateur.path.build import Point, trace_points
from secateur.problem import Problem
from secateur.solvers.base import Solver, check_choices
from secateur.solvers.ensemble.additive_model import Additive, additive, decide, not_additive, risk_of
from secateur.solvers.feature_cost._backward_elimination import Elimination
from secateur.solvers.feature_cost._priced_descent import Found, PricedDescent, PricedDescentSettings
from secateur.solvers.penalty_grid import check_penalties, falling

_RANGE = (1e-4, 30.0)
"""The penalties, as shares of the loss of a constant over the price of the whole model."""


@final
@dataclass(frozen=True, repr=False)
class CostDescent(Solver):
    """Prune all trees together against the price of the features rows need, each bought once for all trees.

    It minimises, over all subtrees of all trees, their leaf values and one intercept,

        loss(y, intercept + Σ_trees tree(x)) + penalty · average price of the distinct features of a row
        + node_penalty · splits + ridge / n · Σ_leaves (value − own value)²  [boosters: value²]

    with squared error for numbers and for class probabilities (Brier), log loss for boosted classifiers. One update
    gives a tree its best subtree given the others, exactly. As a feature that two trees need is free to each of them,
    trees would never leave it together; so the price is annealed: first a tree pays (1 + other trees)^−θ of it, with
    the θ of `anneal` in turn, at last the truth. Penalties rise from the whole ensemble. Besides, features are
    eliminated one after the other, the least missed for its price first. All points are on one path, the column
    `origin` says which is which; `max_cost` is met exactly, by stopping inside a round.

    It is a descent: no bound is known. O(rows · trees · features on the way) per round, and as much memory; and 2 bytes
    for each row and feature.

    Parameters
    ----------
    anneal : tuple of float
        The stages; an empty one descends by the true price alone.
    values : "refit" or "keep"
        Whether leaf values are fitted anew, or stay.
    ridge : float
        How many rows the leaf's own value counts; where trees are added up, instead of averaged, the value 0.
    penalties : int or tuple of float
        How many, on a logarithmic scale; or which.
    elimination : bool
        Whether to eliminate features, too.
    node_penalty : float
        What a split costs besides, in units of the loss.
    max_sweeps : int
        Rounds over all trees at each penalty and stage.
    max_cost : float or tuple of float, optional
        Make sure that points just meet this price, or these.
    """

    anneal: tuple[float, ...] = (1.0, 2.0, 4.0)
    values: Literal["refit", "keep"] = "refit"
    ridge: float = 10.0
    penalties: int | tuple[float, ...] = 16
    elimination: bool = True
    node_penalty: float = 0.0
    max_sweeps: int = 5
    max_cost: float | tuple[float, ...] | None = None

    name = "cost_descent"

    def __post_init__(self) -> None:
        check_choices(self, values=("refit", "keep"))
        check_penalties(self.penalties, _RANGE[0])
        _check(self)

    @property
    def changes(self) -> tuple[str, ...]:
        """Values: also kept ones, as the intercept and the number of trees are in them."""
        return ("value",)

    @property
    def uses_ensemble_loss(self) -> bool:
        """Yes: that is the point."""
        return True

    def default_cost(self) -> Cost | None:
        """Return the number of distinct features a row needs."""
        return FeatureCost()

    def with_budget(
        self, *, max_nodes: int | None = None, max_trees: int | None = None, max_cost: float | None = None
    ) -> "CostDescent":
        """Return the same with a price to be met, unless there is one."""
        return self if self.max_cost is not None else replace(self, max_cost=max_cost)

    def unsupported(self, problem: Problem) -> str | None:
        """Return a reason for models that are no sums, and for costs nobody shares."""
        reason = not_additive(problem.forest)
        if reason:
            return f"{reason}Use min_cut."
        if not isinstance(problem.cost, SharedCost):
            return f"the cost {problem.cost.name} is paid node by node. Use cost=FeatureCost(prices), or block_descent."
        if problem.forest.n_trees > np.iinfo(np.int16).max - 1:
            return f"it counts trees in 16 bits, and there are {problem.forest.n_trees}. Use min_cut."
        return None

    def path(self, problem: Problem) -> Path:
        """Return the unpruned forest and what was found at each penalty and after each elimination, by falling size."""
        return trace_points(problem, self._points(problem), repr(self), ensemble=True)

    def _points(self, problem: Problem) -> Iterator[Point]:
        """Yield what was found, without repeating a shape."""
        ensemble = additive(problem)
        seen: set[bytes] = set()
        for found in self._searches(ensemble, problem):
            for origin, penalty, state in found:
                shape = np.packbits(state.status == 1).tobytes()
                if shape in seen:
                    continue
                seen.add(shape)
                keep, value = decide(ensemble, state)
                yield Point(penalty, keep, value, {"origin": origin}, risk_of(ensemble, state, problem))

    def _searches(self, ensemble: Additive, problem: Problem) -> Iterator[Found]:
        """Yield the searches to be made, each from the whole ensemble."""
        settings = replace(self.settings, centre=1.0 if problem.forest.aggregation == "mean" else 0.0)
        descent = PricedDescent(ensemble, problem, settings)
        descent.tell = problem.watch("pruning", 0, 1 + self.elimination)
        unit = (descent.scale or 1.0) / (descent.now.spent or 1.0)  # a constant target has no scale of its own
        largest, smallest = _RANGE[1] * unit, _RANGE[0] * unit
        yield descent.anneal(falling(self.penalties, largest, smallest / largest)[::-1], self.budgets)
        if self.elimination:
            elimination = Elimination(ensemble, problem, settings)
            elimination.tell = problem.watch("pruning", 1, 2)
            yield elimination.eliminate(smallest, self.budgets)

    @property
    def budgets(self) -> tuple[float, ...]:
        """The prices to be met."""
        if self.max_cost is None:
            return ()
        return self.max_cost if isinstance(self.max_cost, tuple) else (self.max_cost,)

    @property
    def settings(self) -> PricedDescentSettings:
        """How to descend."""
        return PricedDescentSettings(
            keep=self.values == "keep",
            ridge=self.ridge,
            centre=1.0,
            per_split=self.node_penalty,
            anneal=self.anneal,
            sweeps=self.max_sweeps,
        )


def _check(solver: CostDescent) -> None:
    """Raise ValueError for settings that mean nothing."""
    least_of = {"ridge": 0, "node_penalty": 0, "max_sweeps": 1}
    given = [(name, getattr(solver, name), least) for name, least in least_of.items()]
    given += [("max_cost", budget, 0) for budget in solver.budgets]
    for name, number, least in given:
        if not (np.isfinite(number) and number >= least):
            raise ValueError(f"{name}={number!r}; it must be a number, at least {least}. Correct it.")
    if not isinstance(solver.anneal, tuple) or not all(np.isfinite(theta) and theta > 0 for theta in solver.anneal):
        raise ValueError(f"anneal={solver.anneal!r}; it must be a tuple of numbers above 0. Try (1.0, 2.0, 4.0).")
