"""The middle of parts that are pruned each by itself: profits moved between them, bounds, and the best prunings."""

from math import floor, fsum, log2
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.data.row_source import RowSource
from secateur.problem import Problem
from secateur.solvers.feature_cost._partition_closure import (
    FirstLook,
    PartitionProblem,
    PartitionSolution,
    Pass,
    sums_by,
)
from secateur.solvers.feature_cost._partition_integers import Counted
from secateur.solvers.feature_cost.primal_dual import largest_penalty

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Bools = NDArray[np.bool_]
Levels = list[tuple[NDArray[np.uint8], int]]
_MOST = 2.0**57  # profits, in the unit they are moved in, add up to no more
_MOST_MOVED = 2.0**60  # and what is moved, in each part
_WHOLE = 2**20  # of which directions are multiples
_N_LEVELS = 48
_PATIENCE = 3  # passes without a better bound after which steps are halved
_MEMORY = 0.1  # the weight of the latest sets of splits in their running average, at least


class SplitCopies:
    """The splits of all parts in a row, each part's after those of the one before, and the profits moved."""

    def __init__(self, numbers: list[int], held: list[NDArray[np.int32]], n: int) -> None:
        self.numbers = numbers
        self.split = np.concatenate(held)
        sizes = [len(nodes) for nodes in held]
        self.bounds = np.cumsum(sizes)
        self.part = np.repeat(np.arange(len(held)), sizes)
        self.count = np.bincount(self.split, minlength=n)
        self.moved = np.zeros(len(self.split), np.int64)
        self.halt()

    def by_part(self) -> dict[int, Whole]:
        """Return what was taken off the profits of each part."""
        return dict(zip(self.numbers, np.split(self.moved, self.bounds[:-1]), strict=True))

    def inside(self, answers: list[PartitionSolution]) -> Bools:
        """Return which copies are in the closures of their parts."""
        bits = {answer.number: answer.inside for answer in answers}
        sizes = np.diff(self.bounds, prepend=0).tolist()
        return np.concatenate(
            [np.unpackbits(bits[k], count=size).astype(bool) for k, size in zip(self.numbers, sizes, strict=True)]
        )

    def wanted(self, inside: Bools) -> Whole:
        """Return how many parts want each split, (n,)."""
        return np.bincount(self.split[inside], minlength=len(self.count))

    def halt(self) -> None:
        """Forget which way profits were moved last."""
        self.way = np.zeros(len(self.split), np.int64)

    def move(self, inside: Bools, excess: float) -> bool:
        """Take profit off copies that are inside, or were lately; return whether that was possible.

        `excess` is what the parts together should gain less, which makes Polyak's step. Copies are moved by whole
        numbers times how many copies there are, less the sum of these numbers: that adds up to 0 for every split.
        """
        self.way = (self.way >> 1) + inside * _WHOLE
        spread = self._sums(self.way**2) - self._sums(self.way) ** 2 / np.maximum(self.count, 1)
        length = excess * _WHOLE / max(float(spread.sum()), 1e-3)
        if length * 2 * _WHOLE > _MOST_MOVED:
            return False
        step = np.rint(length * self.way / self.count[self.split]).astype(np.int64)
        change = self.count[self.split] * step - self._sums(step)[self.split]
        moved = self.moved + change
        if not change.any() or sums_by(self.part, np.abs(moved), len(self.bounds)).max() > _MOST_MOVED:
            return False
        self.moved = moved
        return True

    def _sums(self, values: Whole) -> Whole:
        """Return the sums over the copies of each split, (n,)."""
        total = np.zeros(len(self.count), np.int64)
        np.add.at(total, self.split, values)
        return total


class Search:
    """The middle of the parts: asks them, bounds, and keeps the best prunings.

    Penalties are in units of errors here; gains, too.
    """

    def __init__(self, problem: Problem, row_source: RowSource, counted: Counted, tolerance: float) -> None:
        self.problem, self.row_source, self.splits = problem, row_source, counted.splits
        self.tolerance = tolerance
        self.question = PartitionProblem(uuid4().hex, counted.judge, counted.cost, self.splits.place)
        self.root_errors = int(counted.errors[problem.forest.root].sum())
        most = 2.0 * float(counted.errors[self.splits.place >= 0].sum(dtype=np.float64))
        self.factor = 2 ** max(0, floor(log2(_MOST / max(most, 1.0))))
        looks = sorted(row_source.each(problem.forest, FirstLook(self.question)), key=lambda look: look[0])
        n = len(self.splits.parent)
        self.copies = SplitCopies([number for number, _, _ in looks], [held for _, held, _ in looks], n)
        self.paid = np.concatenate([paid for _, _, paid in looks])
        self.levels: Levels = [(np.ones(n, np.uint8), 1)]

    def largest_penalty(self) -> float:
        """Return a penalty from which on no split that costs anything is worth it, from equal shares of the prices."""
        order = np.lexsort((self.paid, self.copies.split))  # so that sums do not depend on the order of parts
        paid = sums_by(self.copies.split[order], self.paid[order], len(self.splits.parent))
        return largest_penalty(self.splits.parent, self.splits.profit.astype(np.float64), paid)

    def least(self, most: int) -> float:
        """Return the errors and prices that are left if so much is gained, in units of 1 / factor."""
        return (self.root_errors * self.factor - most) / self.factor

    def stays(self) -> NDArray[np.intp]:
        """Return at how many penalties each split is in the best pruning, (n,)."""
        return np.sum(self.best, axis=0, dtype=np.intp)

    def run(self, penalties: Floats, passes: int) -> tuple[list[int], list[int]]:
        """Return the most that can be gained at each penalty, times the factor, and how many passes that took."""
        self.penalties = penalties
        self.gain = np.zeros(len(penalties))
        self.best = [np.zeros(len(self.splits.parent), bool) for _ in penalties]
        tell = self.problem.watch("pruning")
        found = []
        for k in range(len(penalties)):
            if tell is not None:
                tell(k, len(penalties))
            found.append(self._agree(k, passes))
        self._ask(None)  # only for what the last sets cost
        return [bound for bound, _ in found], [n for _, n in found]

    def _agree(self, k: int, passes: int) -> tuple[int, int]:
        """Return the least bound found at a penalty, and after how many passes."""
        copies = self.copies
        copies.halt()
        bound, length, since = None, 1.0, 0
        average = np.zeros(len(copies.count))
        for n in range(1, passes + 1):
            answers = self._ask(k)
            worth = sum(answer.worth for answer in answers)
            inside = copies.inside(answers)
            since += 1
            if bound is None or worth < bound:
                bound, since = worth, 0
                found = copies.moved, inside
            wanted = copies.wanted(inside)
            share = wanted / np.maximum(copies.count, 1)
            average += max(_MEMORY, 1.0 / n) * (share - average)
            self.levels = [_levels(values, self.splits.parent) for values in ((share, average) if n > 1 else (share,))]
            left = bound / self.factor - self.gain[k]
            if ((wanted == 0) | (wanted == copies.count)).all() or left <= self.tolerance * (
                self.root_errors - self.gain[k]
            ):
                break
            if since == _PATIENCE:
                length, since, worth = length / 2, 0, bound
                copies.moved, inside = found  # and on from where it was best
                copies.halt()
            if n < passes and not copies.move(inside, length * (worth - self.factor * self.gain[k])):
                break
        copies.moved = found[0]
        return bound or 0, n

    def _ask(self, k: int | None) -> list[PartitionSolution]:
        """Ask all parts for their closures at a penalty, and learn what the sets of the pass before cost."""
        rate = None if k is None else float(self.penalties[k]) * self.factor
        levels = self.levels
        question = Pass(self.question, self.factor, rate, self.copies.by_part(), levels)
        answers = self.row_source.each(self.problem.forest, question)
        for place, (level, n) in enumerate(levels):
            paid = np.array([fsum(answer.paid[place][c] for answer in answers) for c in range(n)])
            self._learn(level, n, paid)
        return answers

    def _learn(self, level: NDArray[np.uint8], n: int, paid: Floats) -> None:
        """Keep sets of splits that gain more than what was known, at whatever penalty."""
        profit = np.zeros(n + 1, np.int64)
        np.add.at(profit, level, self.splits.profit)
        total = np.cumsum(profit[::-1])[::-1][1:]
        gain = total[:, None] - paid[:, None] * self.penalties
        for k in np.flatnonzero(gain.max(axis=0, initial=0.0) > self.gain).tolist():
            which = int(gain[:, k].argmax())
            self.gain[k] = gain[which, k]
            self.best[k] = level > which


def _levels(values: Floats, parent: NDArray[np.int32]) -> tuple[NDArray[np.uint8], int]:
    """Return above how many levels of some values each split is, and how many there are; none is above its parent."""
    values = kernels.no_more_than_parent(values, parent)
    levels = np.unique(values[values > 0])
    if len(levels) > _N_LEVELS:
        levels = levels[np.linspace(0, len(levels) - 1, _N_LEVELS).round().astype(np.intp)]
    return np.searchsorted(levels, values, side="right").astype(np.uint8), len(levels)
