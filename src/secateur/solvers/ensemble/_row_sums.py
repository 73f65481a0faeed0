"""Compute the sums over remote rows that a descent needs: gradients at the leaves of trees, and gains of steps.

No state is kept with the rows between passes. A query carries the current ensemble, as its kept leaves, and each row
computes its gradient from the leaves it reaches; see `secateur.kernels.ensemble.block_descent`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.data.rows import LocalRows
from secateur.forest import Forest
from secateur.solvers.ensemble.additive_model import as_numbers, chances, log_loss, starts

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Kept:
    """The leaves some trees are left with, in an order of their own, and what they add.

    Attributes
    ----------
    node : (n_kept,)
    value : (n_kept, width)
    """

    node: NDArray[np.int32]
    value: Floats

    def spread(self, forest: Forest, nodes: slice) -> Floats:
        """Return what each of some nodes adds: what the kept leaf at or above it does, else nothing; (n, width)."""
        contribution = np.zeros((nodes.stop - nodes.start, self.value.shape[1]))
        first = self.node - nodes.start
        length = forest.end[self.node] - self.node
        place = np.arange(length.sum()) + np.repeat(first - np.cumsum(length) + length, length)
        contribution[place] = np.repeat(self.value, length, axis=0)
        return contribution

    def trees(self, forest: Forest) -> Ints:
        """Return the trees they are in, by number."""
        return np.unique(np.searchsorted(forest.tree_start, self.node, "right") - 1)


def kept_leaves(status: NDArray[np.int8], contribution: Floats, start: int = 0) -> Kept:
    """Return the kept leaves among some nodes, the first of which has the number `start`."""
    node = np.flatnonzero(status == 2)
    return Kept((node + start).astype(np.int32), contribution[node])


@dataclass(frozen=True, eq=False)
class Step:
    """A change that may be made: a tree gets other leaves, or the sum for one output grows by a number.

    Attributes
    ----------
    tree : int
        -1 for the intercept.
    column : int
        Which output grows.
    kept : Kept
        The new leaves of the tree; of the intercept a single value.
    """

    tree: int
    column: int
    kept: Kept

    def of_rows(self, forest: Forest, sample: LocalRows, contribution: Floats) -> Floats:
        """Return by how much the sum of each row grows, (n_rows,); `contribution` is what nodes add now."""
        if self.tree < 0:
            return np.full(len(sample), self.kept.value[0, 0])
        here = slice(*forest.tree_start[self.tree : self.tree + 2].tolist())
        return (self.kept.spread(forest, here) - contribution[here])[sample.leaves[self.tree].astype(np.intp), 0]


@dataclass(frozen=True, eq=False)
class RowSums:
    """The question: sums over rows now, and for losses of logits after each of some steps.

    Attributes
    ----------
    kept : Kept
    intercept : (n_outputs,)
    unit : float
        What weights are multiplied by, so that all of them add up to 1 / n_targets.
    trees : (n_asked,)
        Whose leaves to sum over.
    steps : tuple of Step
        Each from the ensemble as it stands.
    """

    kept: Kept
    intercept: Floats
    unit: float
    trees: Ints
    steps: tuple[Step, ...] = ()

    def __call__(self, forest: Forest, sample: LocalRows) -> Floats:
        """Return all sums over some rows in one array; `read` takes it apart."""
        weight, target = sample.weight * self.unit, as_numbers(forest, sample.y)
        score, contribution = (
            starts(forest, sample) + self.intercept,
            self.kept.spread(forest, slice(0, forest.n_nodes)),
        )
        kernels.add_parts(
            sample.leaves, forest.tree_start, forest.tree_output, self.kept.trees(forest), contribution, score
        )
        if not forest.response.logits:
            neg_gradient = weight[:, None] * (target - score)
            loss = float(weight @ ((target - score) ** 2).sum(axis=1))
            return np.concatenate(
                [[0.0, loss], neg_gradient.sum(axis=0), self._sums(forest, sample, weight, neg_gradient)]
            )
        probability = chances(score)
        neg_gradient = weight[:, None] * (target - probability)
        answers = []
        for step in (None, *self.steps):
            pulled, likely, gain = neg_gradient.copy(), probability.copy(), 0.0
            if step is not None:
                gain = kernels.shift_rows(
                    step.of_rows(forest, sample, contribution), weight, pulled, likely, step.column
                )
            hessian = weight @ (likely * (1 - likely))
            answers += [[gain, log_loss(weight, target, likely)], pulled.sum(axis=0), hessian]
            answers += [self._sums(forest, sample, weight, pulled, likely)]
        return np.concatenate(answers)

    def _sums(
        self, forest: Forest, sample: LocalRows, weight: Floats, neg_gradient: Floats, probability: Floats | None = None
    ) -> Floats:
        """Return the gradient, and for logits the curvature, of the rows in each node, one tree after the other."""
        n_nodes = n_nodes_of(forest, self.trees)
        pulled, hessian = np.zeros((n_nodes, forest.value.shape[1])), np.zeros(n_nodes)
        likely = np.empty((0, 0)) if probability is None else probability
        kernels.sum_trees(
            sample.leaves,
            weight,
            neg_gradient,
            likely,
            forest.tree_start,
            forest.tree_output,
            self.trees,
            pulled,
            hessian,
        )
        return pulled.ravel() if probability is None else np.concatenate([pulled.ravel(), hessian])

    def read(self, forest: Forest, answer: Floats) -> "list[Told]":
        """Return what was said of the ensemble as it stands, then of it after each step."""
        n_nodes, n_outputs, width = n_nodes_of(forest, self.trees), forest.n_outputs, forest.value.shape[1]
        curved = forest.response.logits
        lengths = [1, 1, n_outputs, n_outputs * curved, n_nodes * width, n_nodes * curved]
        told = []
        for contribution in np.split(answer, 1 + len(self.steps)):
            gain, loss, slope, bend, pulled, hessian = np.split(contribution, np.cumsum(lengths)[:-1])
            told.append(Told(float(gain[0]), float(loss[0]), slope, bend, pulled.reshape(n_nodes, width), hessian))
        return told


@dataclass(frozen=True, eq=False)
class Told:
    """Sums over all rows.

    Attributes
    ----------
    gain : float
        By how much the step lowers the loss; 0 without a step.
    loss : float
    slope, bend : (n_outputs,)
        Pull and curvature of all rows; without logits there is no curvature.
    pulled, hessian : (n_nodes of the trees asked for, width) and (n_nodes of the trees asked for,)
        The same of the rows in each leaf, one tree after the other.
    """

    gain: float
    loss: float
    slope: Floats
    bend: Floats
    pulled: Floats
    hessian: Floats

    def over_all(self, slope: Floats, loss: float) -> "Told":
        """Return other sums over all rows, and none over leaves."""
        return Told(0.0, loss, slope, self.bend, self.pulled[:0], self.hessian[:0])


def n_nodes_of(forest: Forest, trees: Ints) -> int:
    """Return how many nodes some trees have together."""
    return int((forest.tree_start[trees + 1] - forest.tree_start[trees]).sum())


def first_sums(forest: Forest, sample: LocalRows) -> Floats:
    """Return the number of rows that count, then for each output the sums of the target and of what is to be added."""
    target = as_numbers(forest, sample.y)
    wanted = target - starts(forest, sample)
    return np.concatenate([[np.count_nonzero(sample.weight)], sample.weight @ target, sample.weight @ wanted])
