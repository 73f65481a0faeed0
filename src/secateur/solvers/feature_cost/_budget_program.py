"""Find the pruning with the fewest errors within a feature budget, by integer programming on HiGHS.

A penalty reaches only the corners of the trade-off. Within a budget that no penalty reaches, the program is

    max Σ_h gain_h s_h   with   s_h ≤ s_parent,   s_u ≤ w_item for the first split u of a tree that needs an item,
                                Σ_items price w_item ≤ budget,   s in {0, 1},

with gain_h the errors of node h as a leaf minus those of its children. Without the budget its relaxation is integral
(Nan, Wang and Saligrama 2016, Theorem 4.2), so the bound at the root of the search is the Lagrangian bound of the path.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from secateur.solvers.feature_cost._decomposition import DecomposedProblem, merged, reoptimised

Bools = NDArray[np.bool_]
_SLACK = 1e-6
"""The tolerance of HiGHS: how far a constraint may be violated, and by how much its bound is lowered."""
_ROUNDING = 1e-9


class BudgetSolution(NamedTuple):
    """A pruning within a budget, and a lower bound on the errors of all prunings within it.

    Attributes
    ----------
    split : (n_nodes,) bool
    bound : float
    """

    split: Bools
    bound: float


def best_within(decomposed: DecomposedProblem, budget: float, time_limit: float) -> BudgetSolution:
    """Return the best pruning whose price is at most `budget`, in the units of the problem, and a lower bound.

    The pruning is optimal if its errors equal the bound up to rounding, as they do unless time runs out.
    """
    nothing = reoptimised(decomposed, np.zeros(decomposed.forest.n_nodes, bool))
    everything = reoptimised(decomposed, decomposed.forest.is_split)
    if decomposed.value(everything)[1] <= budget * (1 + _ROUNDING):
        return BudgetSolution(everything, decomposed.value(everything)[0])
    if budget <= 0:
        return BudgetSolution(nothing, decomposed.value(nothing)[0])
    small = merged(decomposed)
    split, bound = _solve(small, budget, time_limit)
    found = [nothing]
    if split is not None and _fits(decomposed, split, budget):
        found.append(reoptimised(decomposed, split))
    elif split is not None:
        # The solution exceeds the budget by the tolerance of HiGHS.
        tighter, _ = _solve(small, budget * (1 - 10 * _SLACK), time_limit)
        found += [] if tighter is None or not _fits(decomposed, tighter, budget) else [reoptimised(decomposed, tighter)]
    best = min(found, key=lambda split: decomposed.value(split)[0])
    return BudgetSolution(best, min(bound, decomposed.value(best)[0]))


def _fits(decomposed: DecomposedProblem, split: Bools, budget: float) -> bool:
    return decomposed.value(split)[1] <= budget * (1 + _ROUNDING)


def _solve(decomposed: DecomposedProblem, budget: float, time_limit: float) -> tuple[Bools | None, float]:
    """Return the splits of the best solution found, None if there is none, and a lower bound on the errors."""
    forest, errors = decomposed.forest, decomposed.errors
    splits = np.flatnonzero(forest.is_split)
    number = np.full(forest.n_nodes, -1)
    number[splits] = np.arange(len(splits))
    gain = errors[splits] - errors[splits + 1] - errors[forest.right[splits]]
    n_splits, n_items = len(splits), len(decomposed.price)
    inner = splits[forest.parent[splits] != -1]
    below = np.concatenate([number[inner], number[decomposed.node]])
    above = np.concatenate([number[forest.parent[inner]], n_splits + decomposed.item])
    row, ones = np.arange(len(below)), np.ones(len(below))
    order = sparse.csr_array((ones, (row, below)), (len(row), n_splits + n_items))
    order -= sparse.csr_array((ones, (row, above)), (len(row), n_splits + n_items))
    # The budget is scaled to 1, so that tolerances are relative to it.
    price = sparse.csr_array(np.append(np.zeros(n_splits), decomposed.price / budget)[None])
    found = milp(
        np.append(-gain, np.zeros(n_items)),
        integrality=np.append(np.ones(n_splits), np.zeros(n_items)),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(sparse.vstack([order, price]), -np.inf, np.append(np.zeros(len(row)), 1.0)),
        options={"mip_rel_gap": 0.0, "time_limit": time_limit},
    )
    at_roots = float(errors[forest.root].sum())
    least = getattr(found, "mip_dual_bound", None)
    bound = 0.0 if least is None or not np.isfinite(least) else at_roots + float(least) - _SLACK * max(1.0, at_roots)
    split = None
    if found.x is not None:
        split = np.zeros(forest.n_nodes, bool)
        split[splits] = found.x[:n_splits] > 0.5
    return split, max(bound, 0.0)
