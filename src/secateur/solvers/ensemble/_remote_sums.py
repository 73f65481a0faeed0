"""Cache the sums over remote rows that a descent has computed, for as long as they are valid."""

import numpy as np
from numpy.typing import NDArray

from secateur.data.row_source import RowSource
from secateur.forest import Forest
from secateur.solvers.ensemble._leaf_overlaps import Overlaps
from secateur.solvers.ensemble._row_sums import RowSums, Step, Told, kept_leaves
from secateur.solvers.ensemble.additive_model import State, n_targets

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_FEW, _SOME = 4, 64
"""How many trees are asked for at least, and at most, after one changed."""
_NUMBERS = 2**18
"""How many sums to ask for at once at most, unless a single tree has more: 2 MB."""
_NO_TREES = np.empty(0, np.int64)


class KnownSums:
    """Sums over the rows for an ensemble that changes.

    One question is one pass over the rows. It asks for several trees at once, more of them the longer nothing has
    changed.

    Attributes
    ----------
    pulled, hessian : (n_nodes, width) and (n_nodes,)
        Pull and, for logits, curvature of the rows in each leaf of the trees that are held.
    held : (n_trees,) bool
        Whose sums are known.
    share : (n_nodes,)
        Row weight at each node, `reach`, on the scale of the loss.
    total : float
        The weight of all rows on that scale.
    overlaps : Overlaps, or None
        For squared error: trees whose sums can be brought up to date when one of them changes.
    """

    def __init__(self, forest: Forest, row_source: RowSource, reach: Floats) -> None:
        self.forest, self.row_source = forest, row_source
        self.total = 1.0 / n_targets(forest)
        self.unit = self.total / row_source.total_weight
        self.share = reach * self.unit
        self.logits = forest.response.logits
        self.pulled, self.hessian = np.zeros_like(forest.value), np.zeros(forest.n_nodes)
        self.held = np.zeros(forest.n_trees, bool)
        self.feeds = np.repeat(np.maximum(forest.tree_output, 0), np.diff(forest.tree_start))
        self.overlaps = Overlaps(forest, row_source, self.unit) if not self.logits else None
        self._asked = 0
        self._all: Told | None = None
        self._state: State | None = None
        self._reach, self._quiet = _FEW, 0

    @property
    def passes(self) -> int:
        """How many questions were asked so far."""
        return self._asked + (self.overlaps.passes if self.overlaps else 0)

    def of_all(self, state: State, *, loss: bool = False) -> Told:
        """Return the sums over all rows; the loss may be missing if it is not asked for."""
        self._turn_to(state)
        if self._all is None or (loss and np.isnan(self._all.loss)):
            self._all = self.ask(state, _NO_TREES)[0]
        return self._all

    def know(self, state: State, trees: Ints) -> None:
        """Make sure that the sums of the first of some trees are known."""
        self._turn_to(state)
        if not self.held[trees[0]]:
            some = self.next_of(trees)
            self.note(some, self.ask(state, some)[0])
            self._reach *= 2
        self._quiet += 1

    def know_all(self, state: State, trees: Ints) -> None:
        """Make sure that the sums of all of some trees are known."""
        self._turn_to(state)
        while not self.held[trees].all():
            some = _within_limits(self.forest, trees[~self.held[trees]])
            self.note(some, self.ask(state, some)[0])

    def next_of(self, trees: Ints) -> Ints:
        """Return the first few of some trees: as many as will likely be looked at while their sums hold."""
        soon = np.arange(len(trees)) < self._reach
        if self.overlaps is not None:
            soon |= self.overlaps.known[trees]
        return _within_limits(self.forest, trees[soon])

    def ask(self, state: State, trees: Ints, *steps: Step) -> list[Told]:
        """Return what the rows say of some trees, now and after each of some steps."""
        question = RowSums(kept_leaves(state.status, state.contribution), state.intercept, self.unit, trees, steps)
        self._asked += 1
        return question.read(self.forest, self.row_source.total(self.forest, question))

    def note(self, trees: Ints, told: Told) -> None:
        """Remember what the rows said of the ensemble as it is now."""
        first = 0
        for tree in trees.tolist():
            here = self.forest.tree_start[tree], self.forest.tree_start[tree + 1]
            last = first + here[1] - here[0]
            self.pulled[here[0] : here[1]] = told.pulled[first:last]
            if self.logits:
                self.hessian[here[0] : here[1]] = told.hessian[first:last]
            first = last
        self._all, self.held[trees] = told, True

    def tree_changes(self, state: State, tree: int, step: Floats) -> None:
        """Forget what no longer holds when the leaves of a tree add more by `step`, (n_nodes of the tree, width).

        For squared error what is known of all rows, of the tree's own leaves, and of trees with known overlaps can be
        brought up to date.
        """
        self._turn_to(state)
        before, held = self._all, self.held.copy()
        self._forget()
        if before is not None and self.overlaps is not None:
            self._bring_up_to_date(self.overlaps, tree, step, before, held)
        self._reach, self._quiet = min(max(_FEW, 2 * self._quiet), _SOME), 0

    def _bring_up_to_date(
        self, overlaps: Overlaps, tree: int, step: Floats, before: Told, held: NDArray[np.bool_]
    ) -> None:
        here, output = slice(*self.forest.tree_start[tree : tree + 2]), self.forest.tree_output[tree]
        lost = np.where(self.forest.is_split[here], 0.0, self.share[here])[:, None] * step
        slope = before.slope.copy()
        slope[slice(None) if output < 0 else slice(output, output + 1)] -= lost.sum(axis=0)
        loss = before.loss + float((lost * step - 2 * self.pulled[here] * step)[~self.forest.is_split[here]].sum())
        self._all = before.over_all(slope, loss if held[tree] else np.nan)
        overlaps.learn(tree)
        if overlaps.known[tree]:
            nodes, shift = overlaps.shifts(tree, step)
            self.pulled[nodes] -= shift
            self.held[:] = held & overlaps.known
        else:
            self.pulled[here] -= lost
            self.held[tree] = held[tree]

    def intercept_changes(self, state: State, step: Floats) -> None:
        """Bring all that is known up to date when the intercept grows by the mean of what rows want, (n_outputs,)."""
        if self.logits:
            self._forget()
            return
        before = self.of_all(state)
        self.pulled -= self.share[:, None] * (step if self.pulled.shape[1] > 1 else step[self.feeds, None])
        loss = before.loss + float(self.total * step @ step - 2 * before.slope @ step)
        self._all = before.over_all(before.slope - self.total * step, loss)

    def _turn_to(self, state: State) -> None:
        """Forget what was said of another state."""
        if self._state is not state:
            self._forget()
            self._state = state

    def _forget(self) -> None:
        self._all, self.held[:] = None, False


def _within_limits(forest: Forest, trees: Ints) -> Ints:
    """Return the first of some trees, as many as may be asked for at once."""
    numbers = np.cumsum(forest.tree_start[trees + 1] - forest.tree_start[trees]) * forest.value.shape[1]
    return trees[: max(1, int(np.searchsorted(numbers, _NUMBERS, "right")))]
