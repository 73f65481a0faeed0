"""Column generation for (IP3), section 5 of Nan, Wang and Saligrama 2016: trees pruned alone, at prices of a master.

The master program chooses among the prunings of each tree found so far, (LP3) of the paper:

    min Σ_t Σ_j errors_tj a_tj + penalty · Σ_items price w,   Σ_j a_tj = 1,   Σ_j a_tj needs_tj ≤ w,   a, w ≥ 0.

The duals of the last rows share out the price of each item among the trees that need it; at those prices every tree has
a cheapest pruning, found by dynamic programming, which is a new column. What these cost together is a lower bound. The
duals jump about, so the prices tried lie between those of the best bound so far and those of the master (Wentges 1997).
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
    """(IP3) by Dantzig-Wolfe decomposition, for one penalty after another; columns and shares are kept between them.

    Parameters
    ----------
    question : Question
    tolerance : float
        The gap at which it ends, as a share of the objective.
    max_iterations : int
        For each penalty.
    """

    def __init__(self, question: DecomposedProblem, tolerance: float, max_iterations: int) -> None:
        self._question = merged(question)
        self._tolerance, self._max_iterations = tolerance, max_iterations
        self._master = Master(self._question)
        self._share = np.ones(len(self._question.item))
        """How the prices were shared out at the best bound so far, (n_needs,)."""
        self._best = tidied(self._question, question.forest.is_split)
        for split in (np.zeros(question.forest.n_nodes, bool), self._best):
            self._master.add(split)

    def solve(self, penalty: float) -> DecomposedSolution:
        """Return a pruning, and how good it is at least, for one penalty.

        It ends. Where prices between the two give no column that is new, those of the master are tried; where these
        give none, no column is missing and the master has the optimum.
        """
        question, master = self._question, self._master
        centre, bound, missed, iteration = share_out(question, penalty, self._share), -np.inf, False, 0
        least = question.objective(self._best, penalty)
        stays = np.zeros(0)
        while iteration < self._max_iterations:
            iteration += 1
            stays, duals = master.solve(penalty)
            sought = share_out(question, penalty, duals)
            far = 1.0 if missed else 0.5 if iteration > 1 else 0.0  # how far to go from the centre to what is sought
            prices = far * sought + (1 - far) * centre
            worth, split = cheapest(question, prices)
            if lower_bound(question, worth) > bound:
                bound, centre = lower_bound(question, worth), prices
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
    """The master program on HiGHS: which prunings of single trees to mix, and in what proportion."""

    def __init__(self, question: DecomposedProblem) -> None:
        n_trees, n_needs, n_items = question.forest.n_trees, len(question.item), len(question.price)
        places = (n_trees + np.arange(n_needs), question.item)
        matrix = sparse.csr_array((-np.ones(n_needs), places), (n_trees + n_needs, n_items))
        lower = np.concatenate([np.ones(n_trees), np.full(n_needs, -np.inf)])
        upper = np.concatenate([np.ones(n_trees), np.zeros(n_needs)])
        self._question, self._highs = question, start_highs()
        load(self._highs, np.zeros(n_items), matrix, lower, upper)
        self._columns: dict[tuple[int, bytes], Bools] = {}
        """The splits of a tree in every column, in their order."""

    def add(self, split: Bools) -> int:
        """Add each tree of a pruning as a column, and return how many of them are new."""
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
        """Return the share with which every node stays a split, (n_nodes,), and the duals of the needs, (n_needs,)."""
        question, n_items = self._question, len(self._question.price)
        self._highs.changeColsCost(n_items, np.arange(n_items, dtype=np.int32), penalty * question.price)
        x, duals = solve(self._highs)
        stays = np.zeros(question.forest.n_nodes)
        for share, ((tree, _), own) in zip(x[n_items:].tolist(), self._columns.items(), strict=True):
            if share > 0:
                first = question.forest.tree_start[tree]
                stays[first : first + len(own)] += share * own
        return stays, -duals[question.forest.n_trees :]
