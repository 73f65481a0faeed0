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
    rounded,
    share_out,
    tidied,
)
from secateur.solvers.feature_cost._highs import load, solve, start_highs

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
log = logging.getLogger(__name__)


class ColumnGeneration:
    """Solve (IP3) by Dantzig-Wolfe decomposition for a sequence of penalties, reusing columns and price shares.

    Parameters
    ----------
    question : DecomposedProblem
    tolerance : float
        The gap at which to stop, as a fraction of the objective.
    max_iterations : int
        Maximum number of iterations for each penalty.
    """

    def __init__(self, question: DecomposedProblem, tolerance: float, max_iterations: int) -> None:
        self._question = merged(question)
        self._tolerance, self._max_iterations = tolerance, max_iterations
        self._master = Master(self._question)
        self._share = np.ones(len(self._question.item))
        """The prices of the needs at the best bound so far, (n_needs,)."""
        self._best = tidied(self._question, question.forest.is_split)
        for split in (np.zeros(question.forest.n_nodes, bool), self._best):
            self._master.add(split)

    def solve(self, penalty: float) -> DecomposedSolution:
        """Return a pruning and a lower bound for one penalty.

        The loop terminates even without an iteration limit. If the stabilised prices give no new column, the next
        iteration uses the prices of the master. If these give no new column either, no column has a negative reduced
        cost and the master is optimal.
        """
        question, master = self._question, self._master
        centre, bound, missed, iteration = share_out(question, penalty, self._share), -np.inf, False, 0
        least = question.objective(self._best, penalty)
        stays = np.zeros(0)
        while iteration < self._max_iterations:
            iteration += 1
            stays, duals = master.solve(penalty)
            sought = share_out(question, penalty, duals)
            # Stabilisation weight: 0 uses the prices of the best bound, 1 those of the master.
            far = 1.0 if missed else 0.5 if iteration > 1 else 0.0
            prices = far * sought + (1 - far) * centre
            worth, split = cheapest(question, prices)
            if lower_bound(question, worth) > bound:
                bound, centre = lower_bound(question, worth), prices
            # Every candidate is a feasible pruning; its objective is an upper bound.
            found = [rounded(question, stays, penalty), split, tidied(question, split), self._best]
            self._best = min(found, key=lambda pruning: question.objective(pruning, penalty))
            least = question.objective(self._best, penalty)
            log.debug("penalty %g, iteration %d: objective %g, gap %g", penalty, iteration, least, least - bound)
            if least - bound <= self._tolerance * max(least, 1.0):
                break
            n_new = sum(master.add(pruning) for pruning in found)
            if missed and not n_new:
                break
            missed = not n_new
        self._share = centre
        return DecomposedSolution(tidied(question, self._best), min(bound, least), is_integral(stays), iteration)


class Master:
    """The master program on HiGHS: a convex combination of known prunings for each tree."""

    def __init__(self, question: DecomposedProblem) -> None:
        n_trees, n_needs, n_items = question.forest.n_trees, len(question.item), len(question.price)
        places = (n_trees + np.arange(n_needs), question.item)
        matrix = sparse.csr_array((-np.ones(n_needs), places), (n_trees + n_needs, n_items))
        lower = np.concatenate([np.ones(n_trees), np.full(n_needs, -np.inf)])
        upper = np.concatenate([np.ones(n_trees), np.zeros(n_needs)])
        self._question, self._highs = question, start_highs()
        load(self._highs, np.zeros(n_items), matrix, lower, upper)
        self._columns: dict[tuple[int, bytes], Bools] = {}
        """The splits of the tree for every column, in column order."""

    def add(self, split: Bools) -> int:
        """Add the pruning of each tree as a column; return the number of new columns."""
        question, start = self._question, self._question.forest.tree_start.tolist()
        leaf = question.keep(split) & ~split
        before = len(self._columns)
        for tree, (first, stop) in enumerate(pairwise(start)):
            own = split[first:stop]
            if (tree, own.tobytes()) in self._columns:
                continue
            self._columns[tree, own.tobytes()] = own.copy()
            needs = np.flatnonzero(np.repeat(own, np.diff(question.start[first : stop + 1])))
            rows = np.append(len(start) - 1 + question.start[first] + needs, tree).astype(np.int32)
            errors = float(question.errors[first:stop][leaf[first:stop]].sum())
            self._highs.addCol(errors, 0.0, np.inf, len(rows), rows, np.ones(len(rows)))
        return len(self._columns) - before

    def solve(self, penalty: float) -> tuple[Floats, Floats]:
        """Solve the master program at a penalty.

        Returns
        -------
        stays : (n_nodes,)
            The fraction with which each node is kept as a split.
        duals : (n_needs,)
            The price of each need: the negated duals of the rows Σ_j a_tj needs_tj ≤ w.
        """
        question, n_items = self._question, len(self._question.price)
        self._highs.changeColsCost(n_items, np.arange(n_items, dtype=np.int32), penalty * question.price)
        x, duals = solve(self._highs)
        stays = np.zeros(question.forest.n_nodes)
        for share, ((tree, _), own) in zip(x[n_items:].tolist(), self._columns.items(), strict=True):
            if share > 0:
                first = question.forest.tree_start[tree]
                stays[first : first + len(own)] += share * own
        return stays, -duals[question.forest.n_trees :]
