"""Run block descent over remote rows, using only sums over them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.problem import Problem
from secateur.solvers.ensemble._node_descent import NodeDescent
from secateur.solvers.ensemble._remote_sums import KnownSums
from secateur.solvers.ensemble._row_sums import Kept, Step, first_sums, kept_leaves
from secateur.solvers.ensemble.additive_model import State, log_odds, without_rows
from secateur.solvers.ensemble.descent_path import DescentSettings

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Choice:
    """What may become of a tree.

    Attributes
    ----------
    gain : float
        For squared error of the objective, for logits of penalty and ridge alone.
    status, contribution : (n_nodes of the tree,) and (n_nodes of the tree, width)
    factor : float
    """

    gain: float
    status: NDArray[np.int8]
    contribution: Floats
    factor: float


class DistantDescent(NodeDescent):
    """One sequence of descents from the empty ensemble: the trees in the order of `Descent`, with its answers.

    Trees that stay as they are cost a part of a pass over the rows, and a tree that changes costs one; for squared
    error next to nothing, once the overlaps of its leaves with those of others are known.

    Parameters
    ----------
    problem : Problem
    settings : Settings
    known : KnownSums, optional
        What another descent has learned from the same rows.
    """

    def __init__(self, problem: Problem, settings: DescentSettings, known: KnownSums | None = None) -> None:
        forest, row_source = problem.forest, problem.row_source
        sums = row_source.total(forest, first_sums)
        self.known = known or KnownSums(forest, row_source, problem.weight)
        self.prepare(without_rows(forest, self.known.share), problem, settings, self.known.total / sums[0])
        largest, width = int(np.diff(forest.tree_start).max(initial=1)), forest.value.shape[1]
        self.scratch = np.empty((4, largest, width)), np.empty((3, largest)), np.empty(largest, np.int8)
        self.state = self.empty(*np.split(sums[1:] / problem.total_weight, 2))
        for _ in range(20 if self.ensemble.logits else 1):
            if self.move_intercept() < 1e-15:
                break
        self.scale = self.loss()
        self.enough = 0.0 if settings.values == "keep" else 1e-5 * self.scale

    def empty(self, target: Floats, wanted: Floats) -> State:
        """Return the ensemble without trees, given the means of the target and of what rows want."""
        forest = self.ensemble.forest
        return State(
            np.empty((0, forest.n_outputs)),
            np.empty((0, 0)),
            log_odds(target) if self.ensemble.logits else wanted,
            np.zeros(forest.n_nodes, np.int8),
            np.zeros_like(self.ensemble.original),
            np.zeros(forest.n_trees),
        )

    def sweep(self, penalty: float, trees: NDArray[np.bool_], first: int, frozen: bool) -> tuple[bool, float]:
        """Update some trees once, then the intercept."""
        order = np.roll(np.arange(len(trees)), -first)
        order = order[(trees & self.used() if frozen else trees)[order]]
        update = self.update_logits if self.ensemble.logits else self.update_squares
        changed, total = False, 0.0
        for place, tree in enumerate(order.tolist()):
            self.known.know(self.state, order[place:])
            gain = update(tree, order[place + 1 :], penalty, frozen)
            changed, total = changed or gain > 0.0, total + gain
        moved = self.move_intercept()
        return not changed and moved <= self.tolerance, total + moved

    @property
    def tolerance(self) -> float:
        """What an update must gain."""
        return 1e-12 * self.scale

    def update_squares(self, tree: int, rest: Ints, penalty: float, frozen: bool) -> float:
        """Give a tree its best subtree; return the gain, 0 if it stays as it is."""
        choice = self.choose(tree, penalty, frozen)
        if choice is None:
            return 0.0
        self.put(tree, choice)
        if self.settings.layered:
            self.move_intercept()  # its gain is in the cost of the layer
        return choice.gain

    def update_logits(self, tree: int, rest: Ints, penalty: float, frozen: bool) -> float:
        """Do the same where only rows can tell what a step gains; they are asked about the trees to come, too."""
        here = self.nodes_of(tree)
        choices = [self.choose(tree, penalty, frozen, bounded=bounded) for bounded in (False, True)]
        found = [choice for choice in choices if choice is not None]
        was = self.state.status[here], self.state.contribution[here]
        if all(np.array_equal(c.status, was[0]) and np.array_equal(c.contribution, was[1]) for c in found):
            return 0.0
        column = max(int(self.ensemble.forest.tree_output[tree]), 0)
        steps = [Step(tree, column, kept_leaves(c.status, c.contribution, here.start)) for c in found]
        trees = self.known.next_of(rest)
        now, *after = self.known.ask(self.state, trees, *steps)
        for choice, told in zip(found, after, strict=True):
            if choice.gain + told.gain > self.tolerance:
                self.put(tree, choice)
                self.known.note(trees, told)
                return choice.gain + told.gain
        self.known.note(trees, now)
        return 0.0

    def choose(self, tree: int, penalty: float, frozen: bool, *, bounded: bool = False) -> Choice | None:
        """Return the best subtree of a tree, None where it gains nothing; for logits always one, by a parabola."""
        forest, state, logits = self.ensemble.forest, self.state, self.ensemble.logits
        here = self.nodes_of(tree)
        n = here.stop - here.start
        scratch, numbers, status = self.scratch
        scratch[0, :n], numbers[0, :n] = self.known.pulled[here], self.known.hessian[here]
        prices = self.as_leaf, self.as_split
        gain, times = kernels.choose_subtree(
            tree,
            here.start,
            here.stop,
            forest.right,
            forest.depth,
            self.ensemble.share,
            self.ensemble.original,
            *prices,
            state.status,
            state.contribution,
            state.factor,
            penalty,
            self.ridge,
            0.0,
            self.values,
            self.settings.layered,
            frozen,
            self.tolerance,
            logits,
            bounded,
            *self.scratch,
        )
        if logits:
            changes = state.status, state.contribution, status, scratch[3]
            gain = kernels.price_gain(
                here.start, n, self.ensemble.original, *prices, *changes, penalty, self.ridge, 0.0
            )
        elif gain <= self.tolerance:
            return None
        return Choice(float(gain), status[:n].copy(), scratch[3, :n].copy(), times if status[0] != 0 else 0.0)

    def put(self, tree: int, choice: Choice) -> None:
        """Change a tree."""
        state, here = self.state, self.nodes_of(tree)
        self.known.tree_changes(state, tree, choice.contribution - state.contribution[here])
        state.status[here], state.contribution[here], state.factor[tree] = (
            choice.status,
            choice.contribution,
            choice.factor,
        )

    def move_intercept(self) -> float:
        """Move the intercept of every output to where the loss is least, or nearer; return the gain."""
        if self.ensemble.logits:
            return sum(self.move_logit(k) for k in range(self.ensemble.forest.n_outputs))
        step = self.known.of_all(self.state).slope / self.known.total
        self.known.intercept_changes(self.state, step)
        self.state.intercept[:] += step
        return self.known.total * float(step @ step)

    def move_logit(self, column: int) -> float:
        """Move the intercept of one output by a parabola, if the loss falls; return the gain."""
        known, none = self.known, np.empty(0, np.int64)
        now = known.of_all(self.state)
        lengths = [now.slope[column] / bend if bend > 0.0 else 0.0 for bend in (now.bend[column], 0.25 * known.total)]
        steps = [Step(-1, column, Kept(none.astype(np.int32), np.full((1, 1), length))) for length in lengths]
        for length, told in zip(lengths, known.ask(self.state, none, *steps)[1:], strict=True):
            if told.gain > 0.0:
                self.state.intercept[column] += length
                known.intercept_changes(self.state, now.slope)
                known.note(none, told)
                return told.gain
        return 0.0

    def nodes_of(self, tree: int) -> slice:
        """Return where the nodes of a tree are."""
        start = self.ensemble.forest.tree_start
        return slice(int(start[tree]), int(start[tree + 1]))

    def loss(self) -> float:
        """Return the loss, without penalty."""
        return self.known.of_all(self.state, loss=True).loss

    def rises(self) -> Floats:
        """Return by how much the loss rises, to second order, when a tree is dropped, (n_trees,)."""
        forest, contribution = self.ensemble.forest, self.state.contribution
        self.known.know_all(self.state, np.flatnonzero(self.used()))
        hessian, half = (self.known.hessian, 0.5) if self.ensemble.logits else (self.ensemble.share, 1.0)
        rise = half * (contribution * (2 * self.known.pulled + hessian[:, None] * contribution)).sum(axis=1)
        tree = np.repeat(np.arange(forest.n_trees), np.diff(forest.tree_start))
        rise[forest.is_split | ~self.used()[tree]] = 0.0
        return np.bincount(tree, rise, forest.n_trees).astype(np.float64)

    def drop(self, tree: int) -> None:
        """Take one tree out."""
        contribution = self.state.contribution[self.nodes_of(tree)]
        self.put(tree, Choice(0.0, np.zeros(len(contribution), np.int8), np.zeros_like(contribution), 0.0))

    def weakest(self) -> tuple[Ints, Floats, Floats]:
        """Return for each tree the split to collapse, -1 if there is none, what that costs per price, the new value."""
        forest, state, ensemble = self.ensemble.forest, self.state, self.ensemble
        node, rate = np.full(forest.n_trees, -1), np.full(forest.n_trees, np.inf)
        value = np.zeros((forest.n_trees, state.contribution.shape[1]))
        trees = np.flatnonzero(state.status[forest.root] == 1)
        self.known.know_all(self.state, trees)
        for tree in trees.tolist():
            here = self.nodes_of(tree)
            node[tree], rate[tree] = kernels.weakest_collapse(
                here.start,
                here.stop - here.start,
                forest.right,
                ensemble.share,
                ensemble.original,
                self.as_leaf,
                self.as_split,
                state.status,
                state.contribution,
                self.ridge,
                self.values,
                ensemble.logits,
                self.known.pulled[here].copy(),
                self.known.hessian[here].copy(),
                value[tree],
            )
        return node, rate, value

    def collapse(self, tree: int, node: int, value: Floats) -> None:
        """Make a split a leaf with a value; a root goes altogether."""
        here, state = self.nodes_of(tree), self.state
        status, contribution = state.status[here].copy(), state.contribution[here].copy()
        below = slice(node - here.start, int(self.ensemble.forest.end[node]) - here.start)
        status[below], contribution[below] = 0, value
        if below.start:
            status[below.start] = 2
        self.put(tree, Choice(0.0, status, contribution, float(state.factor[tree])))
