"""Prunings made of node weights: every node has a weight, and a leaf's value is the sum of those on the way to it.

Trees become least-squares problems (`Block`) in which rows that nothing tells apart are one row; what is learned at a
penalty (`Weights`) becomes a point of a path. Classes are ±1, one problem per class if there are more than two.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.forest import Forest
from secateur.path import Path
from secateur.path.build import Point, trace_points
from secateur.problem import Problem

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Block:
    """One least-squares problem: a tree, or all trees at once, with one target column per class.

    Attributes
    ----------
    trees : slice
        The forest's trees that are in it.
    nodes : (n_nodes,)
        The forest's nodes that have a weight here, parents before children.
    parent : (n_nodes,) int32
        Counted in this block, -1 at a root.
    leaves : (n_trees, n_rows) int32
        The last node of each row's way.
    weight : (n_rows,)
        Adds up to 1.
    targets : (n_targets, n_rows)
    """

    trees: slice
    nodes: NDArray[np.intp]
    parent: NDArray[np.int32]
    leaves: NDArray[np.int32]
    weight: Floats
    targets: Floats

    def within(self, support: Bools) -> "Block":
        """Return the problem of roots and nodes in `support`, (n_nodes of the forest,); a way ends where they do."""
        keep = support[self.nodes] | (self.parent == -1)
        lifted = kernels.lift(self.parent, keep)
        number = np.cumsum(keep, dtype=np.int32) - np.int32(1)
        parent = self.parent[keep]
        ways = number[lifted[self.leaves]]
        parent = np.where(parent == -1, np.int32(-1), number[parent])
        return Block(self.trees, self.nodes[keep], parent, *_merge_rows(ways, self.weight, self.targets))

    def loss(self, weights: "Weights") -> float:
        """Return the mean squared error, up to what no weights can change, summed over targets."""
        total = 0.0
        for k, target in enumerate(self.targets):
            sums = kernels.sum_down(self.parent, weights.node[k, self.nodes])
            score = weights.intercept[k, self.trees][0] + sums[self.leaves].sum(axis=0)
            total += float(self.weight @ (score - target) ** 2)
        return total


@dataclass(frozen=True, eq=False)
class Weights:
    """What was learned at one penalty.

    Attributes
    ----------
    penalty : float
    node : (n_targets, n_nodes)
    intercept : (n_targets, n_trees)
    criticality : float
        How far one more step would move the weights.
    """

    penalty: float
    node: Floats
    intercept: Floats
    criticality: float

    @property
    def support(self) -> Bools:
        """The nodes that have a weight for some target, (n_nodes,)."""
        return (self.node != 0).any(axis=0)


def cannot_weigh(problem: Problem, joint: bool) -> str | None:
    """Return why node weights cannot be learned here, or None if they can."""
    forest = problem.forest
    if not forest.response.linear or forest.aggregation == "median":
        return "weights are learned by least squares, and this model is no sum of predictions. Use weakest_link."
    if len(forest.n_classes) > 1 or (not forest.n_classes and forest.n_outputs > 1):
        return "weights are learned for one target, and this model has several. Use weakest_link."
    if not joint and not forest.trees_predict_target:
        return "its trees predict only a share of the target. Use joint=True, which learns all trees at once."
    return None


def blocks(problem: Problem, joint: bool) -> list[Block]:
    """Return the least-squares problems: one per tree, or one for all trees."""
    if joint:
        return [_joint_block(problem)]
    return [_tree_block(problem, tree) for tree in range(problem.forest.n_trees)]


def _joint_block(problem: Problem) -> Block:
    """Return the problem of all trees."""
    forest, sample = problem.forest, problem.sample
    rows = np.flatnonzero(sample.weight)
    y = sample.y[rows]
    if forest.n_classes:
        rest = np.array([np.where(y[:, 0] == code, 1.0, -1.0) for code in _learned_classes(forest)])
    else:  # trees add to where the sum starts; probabilities start at 0
        start = forest.base if sample.offset is None else forest.base + sample.offset[rows]
        rest = np.ascontiguousarray((y - start / forest.divisor).T)
    ways = (sample.leaves[:, rows] + forest.root[:, None]).astype(np.int32)
    weight = sample.weight[rows] / sample.total_weight
    return Block(slice(None), np.arange(forest.n_nodes), forest.parent, ways, weight, rest)


def _tree_block(problem: Problem, tree: int) -> Block:
    """Return the problem of one tree, its leaves the rows."""
    forest, stats = problem.forest, problem.stats
    start, stop = forest.tree_start[tree], forest.tree_start[tree + 1]
    parent = np.where(forest.parent[start:stop] == -1, -1, forest.parent[start:stop] - start).astype(np.int32)
    leaves = np.flatnonzero((stats.weight[start:stop] > 0) & ~forest.is_split[start:stop])
    weight = stats.weight[start + leaves]
    if forest.n_classes:
        mean = 2 * stats.counts[start + leaves][:, _learned_classes(forest)].T / weight - 1
    else:
        mean = stats.total[start + leaves].T / weight + stats.shift[:, None]
    ways = leaves[None].astype(np.int32)
    share = weight / weight.sum()
    return Block(slice(tree, tree + 1), np.arange(start, stop), parent, ways, share, np.ascontiguousarray(mean))


def _learned_classes(forest: Forest) -> list[int]:
    """Return the classes that have weights of their own: of two only the second."""
    n_classes = forest.n_classes[0]
    return [1] if n_classes == 2 else list(range(n_classes))


def _merge_rows(ways: NDArray[np.int32], weight: Floats, columns: Floats) -> tuple[NDArray[np.int32], Floats, Floats]:
    """Return ways, weights and targets with rows that go the same way made one."""
    different, index = np.unique(ways, axis=1, return_inverse=True)
    index = index.ravel()
    total = np.bincount(index, weight).astype(np.float64)
    means = [np.bincount(index, weight * column) / total for column in columns]
    return np.ascontiguousarray(different), total, np.array(means)


Fit = Callable[[Block, int, float, Floats], tuple[Floats, float, float]]
"""From a block, the number of a target, a penalty and weights to start from: weights, intercept, criticality."""


def learn_falling(whole: list[Block], penalties: Floats, forest: Forest, fit: Fit) -> Iterator[Weights]:
    """Yield the weights at each penalty, each descent starting from the one before."""
    n_targets = len(whole[0].targets) if whole else 1
    node = np.zeros((n_targets, forest.n_nodes))
    intercept = np.zeros((n_targets, forest.n_trees))
    for penalty in penalties:
        node, worst = node.copy(), 0.0
        for block in whole:
            for k in range(n_targets):
                w, b, criticality = fit(block, k, penalty, node[k, block.nodes])
                node[k, block.nodes] = w
                intercept[k, block.trees] = b
                worst = max(worst, criticality)
        yield Weights(penalty, node, intercept.copy(), worst)


def keep_of(forest: Forest, support: Bools) -> Bools:
    """Return the smallest pruning that has every node of `support`: what is above them, and their siblings."""
    needed = support[:, None].astype(np.float64)
    kernels.roll_up(forest.right, needed)
    split = forest.is_split.copy()
    split[split] = needed[np.flatnonzero(split) + 1, 0] + needed[forest.right[split], 0] > 0
    keep = np.zeros(forest.n_nodes, bool)
    keep[forest.root] = True
    keep[np.flatnonzero(split) + 1] = keep[forest.right[split]] = True
    return keep


def values_of(forest: Forest, weights: Weights, joint: bool) -> Floats:
    """Return the value of every node as a leaf, (n_nodes, width), from which the model predicts the score learned.

    A score s of a class is the probability (1 + s) / 2. Trees that stand alone have it cut at 0 and 1, and with more
    than two classes scaled to add up to 1; of trees learned together only the sum has a meaning, so it is left alone.
    """
    tree = np.repeat(np.arange(forest.n_trees), np.diff(forest.tree_start))
    score = np.array([kernels.sum_down(forest.parent, w) for w in weights.node]).T
    intercept = weights.intercept.T[tree]
    if forest.n_classes:
        if forest.n_outputs == 2:
            score, intercept = np.hstack([-score, score]), np.hstack([-intercept, intercept])
        score, intercept = score / 2, (1 + intercept) / 2
    if joint:
        return (score + intercept / forest.n_trees) * forest.divisor / forest.tree_weight[tree, None]
    value = score + intercept
    if forest.n_classes:
        value = np.maximum(value, 0.0)
        total = value.sum(axis=1, keepdims=True)
        value = np.divide(value, total, out=np.full_like(value, 1 / value.shape[1]), where=total > 0)
    return value * forest.unit


def path_of(problem: Problem, learned: Iterable[Weights], solver: str, *, joint: bool, keep_values: bool) -> Path:
    """Return the unpruned forest and what was learned, the largest pruning first."""
    forest = problem.forest

    def points() -> Iterator[Point]:
        for weights in learned:
            value = None if keep_values else values_of(forest, weights, joint)
            more = {"criticality": weights.criticality}
            yield Point(weights.penalty, keep_of(forest, weights.support), value, more)

    return trace_points(problem, points(), solver, ensemble=joint)
