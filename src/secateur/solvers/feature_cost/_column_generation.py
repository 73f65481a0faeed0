"""Solve (IP3) of Nan, Wang and Saligrama (2016) by column generation (Dantzig-Wolfe decomposition, section 5).

The master program chooses among the prunings of each tree found so far, (LP3) of the paper:

    min Σ_t Σ_j errors_tj a_tj + penalty · Σ_items price w,   Σ_j a_tj = 1,   Σ_j a_tj needs_tj ≤ w,   a, w ≥ 0.

The duals of the last constraints split the price of each item among the trees that need it. At those prices, dynamic
programming finds the cheapest pruning of every tree, the subproblem (SUB1) of the paper; it is a new column. The
optimal values of the subproblems sum to a lower bound. The duals of the master oscillate, so the prices are
stabilised: they are a convex combination of those of the best bound so far and those of the master (Wentges 1997).

References
----------
Nan, Wang, Saligrama (2016): Optimally Pruning Decision Tree Ensembles With Feature Cost.
Wentges (1997): Weighted Dantzig-Wolfe Decomposition for Linear Mixed-Integer Programming.
"""

import logging
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from secateur.solvers.feature_cost._decomposition import (
    DecomposedProblem,
    DecomposedSolution,
    cheapest,
    is_integral,
    lower_bound,
    merged,
    reoptimised,
    rounded,
    split_prices,
)
from secateur.solvers.feature_cost._highs import load, solve, start_highs

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
log = logging.getLogger(__name__)


class ColumnGeneration:
    """Solve (IP3) by Dantzig-Wolfe decomposition for a sequence of penalties, reusing columns and price shares.

    Parameters
    ----------
    decomposed : DecomposedProblem
    tolerance : float
        The gap at which to stop, as a fraction of the objective.
    max_iterations : int
        Maximum number of iterations for each penalty.
    """

    def __init__(self, decomposed: DecomposedProblem, tolerance: float, max_iterations: int) -> None:
        self._decomposed = merged(decomposed)
        self._tolerance, self._max_iterations = tolerance, max_iterations
        self._master = Master(self._decomposed)
        self._prices = np.ones(len(self._decomposed.item))
        """The prices of the needs at the best bound so far, (n_needs,)."""
        self._best = reoptimised(self._decomposed, decomposed.forest.is_split)
        for split in (np.zeros(decomposed.forest.n_nodes, bool), self._best):
            self._master.add(split)

    def solve(self, penalty: float) -> DecomposedSolution:
        """Return a pruning and a lower bound for one penalty.

        The loop terminates even without an iteration limit. If the stabilised prices give no new column, the next
        iteration uses the prices of the master. If these give no new column either, no column has a negative reduced
        cost and the master is optimal.
        """
        decomposed, master = self._decomposed, self._master
        centre, bound, no_new_column, iteration = split_prices(decomposed, penalty, self._prices), -np.inf, False, 0
        least = decomposed.objective(self._best, penalty)
        kept_fraction = np.zeros(0)
        while iteration < self._max_iterations:
            iteration += 1
            kept_fraction, duals = master.solve(penalty)
            master_prices = split_prices(decomposed, penalty, duals)
            # Stabilisation weight: 0 uses the prices of the best bound, 1 those of the master.
            step = 1.0 if no_new_column else 0.5 if iteration > 1 else 0.0
            prices = step * master_prices + (1 - step) * centre
            tree_costs, split = cheapest(decomposed, prices)
            if lower_bound(decomposed, tree_costs) > bound:
                bound, centre = lower_bound(decomposed, tree_costs), prices
            # Every candidate is a feasible pruning; its objective is an upper bound.
            candidates = [
                rounded(decomposed, kept_fraction, penalty),
                split,
                reoptimised(decomposed, split),
                self._best,
            ]
            self._best = min(candidates, key=lambda pruning: decomposed.objective(pruning, penalty))
            least = decomposed.objective(self._best, penalty)
            log.debug("penalty %g, iteration %d: objective %g, gap %g", penalty, iteration, least, least - bound)
            if least - bound <= self._tolerance * max(least, 1.0):
                break
            n_new = sum(master.add(pruning) for pruning in candidates)
            if no_new_column and not n_new:
                break
            no_new_column = not n_new
        self._prices = centre
        return DecomposedSolution(
            reoptimised(decomposed, self._best), min(bound, least), is_integral(kept_fraction), iteration
        )


class Master:
    """The master program on HiGHS: a convex combination of known prunings for each tree."""

    def __init__(self, decomposed: DecomposedProblem) -> None:
        n_trees, n_needs, n_items = decomposed.forest.n_trees, len(decomposed.item), len(decomposed.price)
        entries = (n_trees + np.arange(n_needs), decomposed.item)
        matrix = sparse.csr_array((-np.ones(n_needs), entries), (n_trees + n_needs, n_items))
        lower = np.concatenate([np.ones(n_trees), np.full(n_needs, -np.inf)])
        upper = np.concatenate([np.ones(n_trees), np.zeros(n_needs)])
        self._decomposed, self._highs = decomposed, start_highs()
        load(self._highs, np.zeros(n_items), matrix, lower, upper)
        self._columns: dict[tuple[int, bytes], Bools] = {}
        """The splits of the tree for every column, in column order."""

    def add(self, split: Bools) -> int:
        """Add the pruning of each tree as a column; return the number of new columns."""
        decomposed, start = self._decomposed, self._decomposed.forest.tree_start.tolist()
        leaf = decomposed.keep(split) & ~split
        before = len(self._columns)
        for tree, (first, stop) in enumerate(pairwise(start)):
            tree_split = split[first:stop]
            if (tree, tree_split.tobytes()) in self._columns:
                continue
            self._columns[tree, tree_split.tobytes()] = tree_split.copy()
            needs = np.flatnonzero(np.repeat(tree_split, np.diff(decomposed.start[first : stop + 1])))
            rows = np.append(len(start) - 1 + decomposed.start[first] + needs, tree).astype(np.int32)
            errors = float(decomposed.errors[first:stop][leaf[first:stop]].sum())
            self._highs.addCol(errors, 0.0, np.inf, len(rows), rows, np.ones(len(rows)))
        return len(self._columns) - before

    def solve(self, penalty: float) -> tuple[Floats, Floats]:
        """Solve the master program at a penalty.

        Returns
        -------
        kept_fraction : (n_nodes,)
            The fraction with which each node is kept as a split.
        duals : (n_needs,)
            The price of each need: the negated duals of the rows Σ_j a_tj needs_tj ≤ w.
        """
        decomposed, n_items = self._decomposed, len(self._decomposed.price)
        self._highs.changeColsCost(n_items, np.arange(n_items, dtype=np.int32), penalty * decomposed.price)
        x, duals = solve(self._highs)
        kept_fraction = np.zeros(decomposed.forest.n_nodes)
        for fraction, ((tree, _), tree_split) in zip(x[n_items:].tolist(), self._columns.items(), strict=True):
            if fraction > 0:
                first = decomposed.forest.tree_start[tree]
                kept_fraction[first : first + len(tree_split)] += fraction * tree_split
        return kept_fraction, -duals[decomposed.forest.n_trees :]
