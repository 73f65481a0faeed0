"""Coordinate partitions by dual decomposition: subgradient steps on split profits, bounds, best feasible pruning."""

from math import floor, fsum, log2
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.data.row_source import RowSource
from secateur.problem import Problem
from secateur.solvers.feature_cost._partition_closure import (
    FirstPass,
    PartitionProblem,
    PartitionSolution,
    Pass,
    sums_by,
)
from secateur.solvers.feature_cost._partition_integers import Counted
from secateur.solvers.feature_cost.primal_dual import largest_penalty

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Bools = NDArray[np.bool_]
Levels = list[tuple[NDArray[np.uint8], int]]
_MAX_PROFIT = 2.0**57
"""Upper limit on the sum of profits, in the integer unit in which they are moved."""
_MAX_MOVED = 2.0**60
"""Upper limit on the sum of absolute profits moved in a partition."""
_SCALE = 2**20
"""Fixed-point scale of the step direction."""
_N_LEVELS = 48
"""Maximum number of thresholds tried when rounding."""
_PATIENCE = 3
"""Passes without a better bound after which the step length is halved."""
_MIN_AVERAGE_WEIGHT = 0.1
"""Minimum weight of the latest closures in their running average."""


class SplitCopies:
    """The copies of the splits in all partitions, concatenated by partition, and the profit moved off each copy.

    Invariant: the profits moved off the copies of a split sum to 0, so the sum of the partitions' optima is an upper
    bound on the gain of every pruning.
    """

    def __init__(self, part_numbers: list[int], reached: list[NDArray[np.int32]], n: int) -> None:
        self.part_numbers = part_numbers
        self.split = np.concatenate(reached)
        sizes = [len(nodes) for nodes in reached]
        self.bounds = np.cumsum(sizes)
        self.part = np.repeat(np.arange(len(reached)), sizes)
        self.count = np.bincount(self.split, minlength=n)
        self.moved = np.zeros(len(self.split), np.int64)
        self.reset_momentum()

    def by_part(self) -> dict[int, Integers]:
        """Return the profits moved off the copies of each partition."""
        return dict(zip(self.part_numbers, np.split(self.moved, self.bounds[:-1]), strict=True))

    def inside(self, solutions: list[PartitionSolution]) -> Bools:
        """Return which copies are in the closures of their partitions."""
        bits = {solution.number: solution.inside for solution in solutions}
        sizes = np.diff(self.bounds, prepend=0).tolist()
        return np.concatenate(
            [np.unpackbits(bits[k], count=size).astype(bool) for k, size in zip(self.part_numbers, sizes, strict=True)]
        )

    def n_inside(self, inside: Bools) -> Integers:
        """Return the number of partitions whose closure contains each split, (n,)."""
        return np.bincount(self.split[inside], minlength=len(self.count))

    def reset_momentum(self) -> None:
        """Reset the momentum."""
        self.direction = np.zeros(len(self.split), np.int64)

    def move(self, inside: Bools, excess: float) -> bool:
        """Take one subgradient step with momentum; return whether it succeeded.

        The step moves profit off the copies that are inside the closures. `excess` is the intended decrease of the
        partitions' total gain and sets Polyak's step length. Integer arithmetic keeps the invariant: each copy moves
        by an integer times the number of copies, less the sum of these integers over the copies of the split, which
        sums to 0 for every split. The step fails if it rounds to 0 or would overflow.
        """
        # The direction is the subgradient plus half the previous direction.
        self.direction = (self.direction >> 1) + inside * _SCALE
        spread = self._sums(self.direction**2) - self._sums(self.direction) ** 2 / np.maximum(self.count, 1)
        length = excess * _SCALE / max(float(spread.sum()), 1e-3)
        if length * 2 * _SCALE > _MAX_MOVED:
            return False
        step = np.rint(length * self.direction / self.count[self.split]).astype(np.int64)
        change = self.count[self.split] * step - self._sums(step)[self.split]
        moved = self.moved + change
        if not change.any() or sums_by(self.part, np.abs(moved), len(self.bounds)).max() > _MAX_MOVED:
            return False
        self.moved = moved
        return True

    def _sums(self, values: Integers) -> Integers:
        """Return the sums over the copies of each split, (n,)."""
        total = np.zeros(len(self.count), np.int64)
        np.add.at(total, self.split, values)
        return total


class Search:
    """Evaluate the partitions, maintain upper bounds on the gain, and keep the best prunings.

    Penalties and gains are in units of errors.
    """

    def __init__(self, problem: Problem, row_source: RowSource, counted: Counted, tolerance: float) -> None:
        self.problem, self.row_source, self.splits = problem, row_source, counted.splits
        self.tolerance = tolerance
        self.partition_problem = PartitionProblem(
            uuid4().hex, counted.error_counter, counted.cost, self.splits.split_index
        )
        self.root_errors = int(counted.errors[problem.forest.root].sum())
        most = 2.0 * float(counted.errors[self.splits.split_index >= 0].sum(dtype=np.float64))
        self.factor = 2 ** max(0, floor(log2(_MAX_PROFIT / max(most, 1.0))))
        first_passes = sorted(
            row_source.each(problem.forest, FirstPass(self.partition_problem)), key=lambda result: result[0]
        )
        n = len(self.splits.parent)
        self.copies = SplitCopies(
            [number for number, _, _ in first_passes], [reached for _, reached, _ in first_passes], n
        )
        self.paid = np.concatenate([paid for _, _, paid in first_passes])
        self.levels: Levels = [(np.ones(n, np.uint8), 1)]

    def largest_penalty(self) -> float:
        """Return a penalty from which on no split with a cost is kept, from equal shares of the prices."""
        # Sort, so that floating-point sums do not depend on the order of the partitions.
        order = np.lexsort((self.paid, self.copies.split))
        paid = sums_by(self.copies.split[order], self.paid[order], len(self.splits.parent))
        return largest_penalty(self.splits.parent, self.splits.profit.astype(np.float64), paid)

    def least(self, most: int) -> float:
        """Return the objective, errors plus cost, that corresponds to a gain `most` in units of 1 / factor."""
        return (self.root_errors * self.factor - most) / self.factor

    def n_kept(self) -> NDArray[np.intp]:
        """Return the number of penalties at which the best pruning contains each split, (n,)."""
        return np.sum(self.best, axis=0, dtype=np.intp)

    def run(self, penalties: Floats, passes: int) -> tuple[list[int], list[int]]:
        """Return an upper bound on the gain at each penalty, times the factor, and the number of passes used."""
        self.penalties = penalties
        self.gain = np.zeros(len(penalties))
        self.best = [np.zeros(len(self.splits.parent), bool) for _ in penalties]
        report_progress = self.problem.watch("pruning")
        found = []
        for k in range(len(penalties)):
            if report_progress is not None:
                report_progress(k, len(penalties))
            found.append(self._solve_penalty(k, passes))
        # A final pass without closures, to price the last threshold sets.
        self._solve_partitions(None)
        return [bound for bound, _ in found], [n for _, n in found]

    def _solve_penalty(self, k: int, passes: int) -> tuple[int, int]:
        """Return the lowest upper bound found at a penalty, and the number of passes."""
        copies = self.copies
        copies.reset_momentum()
        bound, length, stalled = None, 1.0, 0
        average = np.zeros(len(copies.count))
        for n in range(1, passes + 1):
            solutions = self._solve_partitions(k)
            gain = sum(solution.gain for solution in solutions)
            inside = copies.inside(solutions)
            stalled += 1
            if bound is None or gain < bound:
                bound, stalled = gain, 0
                found = copies.moved, inside
            n_inside = copies.n_inside(inside)
            fraction = n_inside / np.maximum(copies.count, 1)
            average += max(_MIN_AVERAGE_WEIGHT, 1.0 / n) * (fraction - average)
            self.levels = [
                _levels(values, self.splits.parent) for values in ((fraction, average) if n > 1 else (fraction,))
            ]
            gap = bound / self.factor - self.gain[k]
            if ((n_inside == 0) | (n_inside == copies.count)).all() or gap <= self.tolerance * (
                self.root_errors - self.gain[k]
            ):
                break
            if stalled == _PATIENCE:
                # Halve the step length and restart from the profits of the best bound.
                length, stalled, gain = length / 2, 0, bound
                copies.moved, inside = found
                copies.reset_momentum()
            if n < passes and not copies.move(inside, length * (gain - self.factor * self.gain[k])):
                break
        copies.moved = found[0]
        return bound or 0, n

    def _solve_partitions(self, k: int | None) -> list[PartitionSolution]:
        """Return the partitions' closures at a penalty, and record the cost of the previous pass's threshold sets."""
        rate = None if k is None else float(self.penalties[k]) * self.factor
        levels = self.levels
        this_pass = Pass(self.partition_problem, self.factor, rate, self.copies.by_part(), levels)
        solutions = self.row_source.each(self.problem.forest, this_pass)
        for index, (level, n) in enumerate(levels):
            paid = np.array([fsum(solution.paid[index][c] for solution in solutions) for c in range(n)])
            self._record_best(level, n, paid)
        return solutions

    def _record_best(self, level: NDArray[np.uint8], n: int, paid: Floats) -> None:
        """Keep the nested sets of splits that improve the best known gain at any penalty."""
        profit = np.zeros(n + 1, np.int64)
        np.add.at(profit, level, self.splits.profit)
        total = np.cumsum(profit[::-1])[::-1][1:]
        gain = total[:, None] - paid[:, None] * self.penalties
        for k in np.flatnonzero(gain.max(axis=0, initial=0.0) > self.gain).tolist():
            best_level = int(gain[:, k].argmax())
            self.gain[k] = gain[best_level, k]
            self.best[k] = level > best_level


def _levels(values: Floats, parent: NDArray[np.int32]) -> tuple[NDArray[np.uint8], int]:
    """Return the number of thresholds that each split reaches, and the number of thresholds.

    Values are first lowered to those of their parents, so the splits that reach any threshold form a closure. The
    thresholds are the distinct positive values, at most `_N_LEVELS` of them.
    """
    values = kernels.no_more_than_parent(values, parent)
    levels = np.unique(values[values > 0])
    if len(levels) > _N_LEVELS:
        levels = levels[np.linspace(0, len(levels) - 1, _N_LEVELS).round().astype(np.intp)]
    return np.searchsorted(levels, values, side="right").astype(np.uint8), len(levels)
