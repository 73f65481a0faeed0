"""Prune an ensemble under feature cost by block coordinate descent with annealed prices and backward elimination."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, final

import numpy as np

from secateur.costs import Cost, FeatureCost
from secateur.errors import InvalidInputError
from secateur.forest.promises import range_of
from secateur.path import Path
from secateur.path.build import Point, trace_points
from secateur.problem import Problem
from secateur.solvers.base import Solver, check_choices, check_penalties, decreasing_penalties
from secateur.solvers.ensemble.additive_model import Additive, additive, not_additive
from secateur.solvers.feature_cost._backward_elimination import Elimination
from secateur.solvers.feature_cost._priced_descent import Found, PricedDescent, PricedDescentSettings
from secateur.solvers.feature_cost._priced_mean import PricedMean

_RANGE = (1e-4, 30.0)
"""Range of penalties, in units of the loss of a constant prediction divided by the cost of the unpruned model."""

_MAX_TREES = int(np.iinfo(np.int16).max) - 1
"""Maximum number of trees: the number of trees in which a row needs a resource is stored as int16."""


@final
@dataclass(frozen=True, repr=False)
class CostDescent(Solver):
    """Prune all trees jointly against the cost of the features a row needs, by block coordinate descent.

    The solver minimises, over all subtrees of all trees, their leaf values and one intercept,

        loss(y, intercept + Σ_trees tree(x)) + penalty · average price of the distinct features of a row
        + node_penalty · splits + ridge / n · Σ_leaves (value − original value)²  [boosters: value²]

    The loss is the one the model was trained for, as in `BlockDescent`: squared error for regression, log loss for
    boosted classifiers. A classification forest that averages its trees stays a mean of trees whose leaves are class
    probabilities, with the Brier score as loss and the class frequencies as the centre of the ridge.

    A feature is bought once per row and is then available to all trees.

    One update replaces a tree by its exact best subtree given the other trees. A feature that two trees need is free to
    each of them, so plain descent never drops it from both. The price is therefore annealed: a tree first pays the
    fraction (1 + number of other trees)^−θ of it, for each θ of `anneal` in turn, and finally the true price. Penalties
    increase, starting from the whole ensemble. In addition, backward elimination drops features one at a time, the one
    with the smallest loss increase per cost saved first. The path contains the points of both searches; the column
    `origin` tells them apart. `max_cost` is met without overshoot by stopping inside a sweep.

    The result is a **local optimum** (a heuristic): no bound is known. A sweep takes O(rows · trees · features on the
    path of a row) time and memory, plus 2 bytes per row and resource.

    Parameters
    ----------
    anneal : tuple of float
        The exponents θ of the annealing stages. An empty tuple uses the true price only.
    values : "refit", "keep" or "free"
        Whether leaf values are refitted or kept. A forest that averages its trees and has a natural range of
        predictions, such as class probabilities, keeps it; "free" gives this up for a sum of trees with an intercept.
    ridge : float
        Shrinkage of refitted leaf values: each leaf is fitted as if `ridge` extra rows had the leaf's original value as
        target. For models that sum their trees instead of averaging them, the target of these rows is 0.
    penalties : int or tuple of float
        The number of penalties, on a logarithmic scale; or the penalties themselves.
    elimination : bool
        Whether to run backward elimination of features as well.
    node_penalty : float
        The cost of a split, in units of the loss.
    max_sweeps : int
        Maximum number of sweeps over all trees at each penalty and stage.
    max_cost : float or tuple of float, optional
        Cost budgets. For each, the path contains a point that just meets it.

    References
    ----------
    Liu and Mazumder (2023), ForestPrune: compact depth-pruned tree ensembles, AISTATS, for block coordinate descent
    over trees. Nan, Wang, Saligrama (2016): Optimally Pruning Decision Tree Ensembles With Feature Cost, for the cost.

    Examples
    --------
    >>> import secateur as sc
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> forest = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X[::2], y[::2])
    >>> solver = sc.solvers.CostDescent(penalties=4, elimination=False, max_cost=4.0)
    >>> path = sc.prune_path(forest, X[1::2], y[1::2], solver=solver)
    >>> bool(((path.table["cost"] > 3) & (path.table["cost"] <= 4)).any())
    True
    """

    anneal: tuple[float, ...] = (1.0, 2.0, 4.0)
    values: Literal["refit", "keep", "free"] = "refit"
    ridge: float = 10.0
    penalties: int | tuple[float, ...] = 16
    elimination: bool = True
    node_penalty: float = 0.0
    max_sweeps: int = 5
    max_cost: float | tuple[float, ...] | None = None

    name = "cost_descent"
    uses_ensemble_loss = True

    def __post_init__(self) -> None:
        check_choices(self, values=("refit", "keep", "free"))
        check_penalties(self.penalties, _RANGE[0])
        _check(self)

    @property
    def keeps_leaves(self) -> bool:
        """Whether `values="keep"`."""
        return self.values == "keep"

    @property
    def changes(self) -> tuple[str, ...]:
        """Leaf values change even with `values="keep"`: they absorb the intercept and the number of trees."""
        return ("value",)

    def default_cost(self) -> Cost | None:
        """Return the default cost: the number of distinct features a row needs."""
        return FeatureCost()

    def with_budget(
        self, *, max_nodes: int | None = None, max_trees: int | None = None, max_cost: float | None = None
    ) -> "CostDescent":
        """Return a copy with this cost budget, unless `max_cost` is set."""
        return self if self.max_cost is not None else replace(self, max_cost=max_cost)

    def unsupported(self, problem: Problem) -> str | None:
        """Return why the problem is unsupported: the model is not additive, or the cost is not shared."""
        reason = not_additive(problem.forest)
        if reason:
            return f"{reason}Use min_cut."
        if not problem.cost.shared:
            return (
                f"it needs a feature cost, but the cost {problem.cost.name!r} is a sum over nodes. Use "
                "cost=FeatureCost(prices), or block_descent."
            )
        if problem.forest.n_trees > _MAX_TREES:
            return f"it supports at most {_MAX_TREES} trees, but this model has {problem.forest.n_trees}. Use min_cut."
        return None

    def path(self, problem: Problem) -> Path:
        """Return the path: the unpruned forest and all points of the searches, by decreasing size."""
        return trace_points(problem, self._points(problem), repr(self), ensemble=True, runs=("origin",))

    def _points(self, problem: Problem) -> Iterator[Point]:
        """Yield the points of the searches, each set of splits once."""
        ensemble = additive(problem)
        seen: set[bytes] = set()
        for descent, found in self._searches(ensemble, problem):
            for origin, penalty, state in found:
                shape = np.packbits(state.status == 1).tobytes()
                if shape in seen:
                    continue
                seen.add(shape)
                keep, value, risk = descent.decide(state, problem)
                yield Point(penalty, keep, value, {"origin": origin}, risk)

    def _searches(self, ensemble: Additive, problem: Problem) -> Iterator[tuple[PricedDescent, Found]]:
        """Yield the searches, each starting from the whole ensemble."""
        settings = replace(self.settings, centre=1.0 if problem.forest.aggregation == "mean" else 0.0)
        natural = None if self.free_values else range_of(problem.forest)
        search = PricedMean if natural is not None and natural.simplex else Elimination
        descent = search(ensemble, problem, settings)
        descent.on_progress = problem.watch("pruning", 0, 1 + self.elimination)
        # The scale is 0 for a constant target.
        unit = (descent.scale or 1.0) / (descent.now.spent or 1.0)
        largest, smallest = _RANGE[1] * unit, _RANGE[0] * unit
        penalties = decreasing_penalties(self.penalties, largest, smallest / largest)[::-1]
        yield descent, descent.anneal(penalties, self.budgets)
        if self.elimination:
            elimination = search(ensemble, problem, settings)
            elimination.on_progress = problem.watch("pruning", 1, 2)
            yield elimination, elimination.eliminate(smallest, self.budgets)

    @property
    def budgets(self) -> tuple[float, ...]:
        """The cost budgets as a tuple."""
        if self.max_cost is None:
            return ()
        return self.max_cost if isinstance(self.max_cost, tuple) else (self.max_cost,)

    @property
    def settings(self) -> PricedDescentSettings:
        """The settings of the descent."""
        return PricedDescentSettings(
            keep=self.values == "keep",
            ridge=self.ridge,
            centre=1.0,
            per_split=self.node_penalty,
            anneal=self.anneal,
            sweeps=self.max_sweeps,
        )


def _check(solver: CostDescent) -> None:
    """Raise InvalidInputError for settings out of range."""
    minimum = {"ridge": 0, "node_penalty": 0, "max_sweeps": 1}
    checks = [(name, getattr(solver, name), least) for name, least in minimum.items()]
    checks += [("max_cost", budget, 0) for budget in solver.budgets]
    for name, value, least in checks:
        if not (np.isfinite(value) and value >= least):
            raise InvalidInputError(
                f"{name}={value!r}, but it must be a finite number of at least {least}. Set {name} to {least} or more."
            )
    if not isinstance(solver.anneal, tuple) or not all(np.isfinite(theta) and theta > 0 for theta in solver.anneal):
        raise InvalidInputError(
            f"anneal={solver.anneal!r}, but it must be a tuple of positive finite numbers. Use for example "
            "anneal=(1.0, 2.0, 4.0)."
        )
