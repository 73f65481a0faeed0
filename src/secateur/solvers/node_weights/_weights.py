"""Pose trees as sparse regressions on node weights, and convert fitted weights to prunings.

Every node has a weight, and the score of a leaf is the sum of the weights on its path from the root. A `Block` is one
regression, by squared error or by log loss; rows with the same path can be merged into one. The `Weights` fitted at a
penalty become a point of a path. Classes are encoded as ±1, with one problem per class if there are more than two.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from secateur import kernels
from secateur.errors import InvalidInputError
from secateur.forest import Forest
from secateur.path import Path
from secateur.path.build import Point, trace_points
from secateur.problem import Problem
from secateur.solvers.ensemble.additive_model import not_quadratic

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
FitLoss = Literal["squared_error", "log_loss"]
"""The loss by which weights are fitted. With the log loss a score is the log odds of a class."""
Prior = tuple[float, ...] | Callable[[Forest], Floats]
"""Factors of the penalty, one per node; or a function that returns them for a forest."""


@dataclass(frozen=True, eq=False)
class Block:
    """One regression: a single tree, or all trees jointly, with one target per class.

    Attributes
    ----------
    trees : slice
        The trees of the forest in this block.
    nodes : (n_nodes,)
        The nodes of the forest in this block, parents before children.
    parent : (n_nodes,) int32
        The index of the parent within the block, -1 at a root.
    leaves : (n_trees, n_rows) int32
        The last node on each row's path through each tree.
    weight : (n_rows,)
        Row weights, which sum to 1.
    targets : (n_targets, n_rows)
    prior : (n_nodes,)
        Factor of the penalty of each node.
    loss : "squared_error" or "log_loss"
    """

    trees: slice
    nodes: NDArray[np.intp]
    parent: NDArray[np.int32]
    leaves: NDArray[np.int32]
    weight: Floats
    targets: Floats
    prior: Floats
    loss: FitLoss

    def within(self, support: Bools) -> "Block":
        """Return the problem restricted to the roots and the nodes in `support`.

        Paths are cut at the last node of the support, and rows with equal paths are merged.

        Parameters
        ----------
        support : (n_nodes of the forest,) bool
        """
        keep = support[self.nodes] | (self.parent == -1)
        last_kept = kernels.lift(self.parent, keep)
        number = np.cumsum(keep, dtype=np.int32) - np.int32(1)
        parent = self.parent[keep]
        leaf_nodes = number[last_kept[self.leaves]]
        parent = np.where(parent == -1, np.int32(-1), number[parent])
        rows = _merge_rows(leaf_nodes, self.weight, self.targets)
        return Block(self.trees, self.nodes[keep], parent, *rows, self.prior[keep], self.loss)

    def score(self, w: Floats) -> Floats:
        """Return the sum of the weights on the paths of each row, without the intercept, (n_rows,)."""
        return np.asarray(kernels.sum_down(self.parent, w)[self.leaves].sum(axis=0))

    def mean_loss(self, k: int, score: Floats) -> float:
        """Return the mean loss of one target, up to a constant that does not depend on the scores."""
        target = self.targets[k]
        if self.loss == "squared_error":
            return float(self.weight @ (score - target) ** 2)
        return float(self.weight @ (np.logaddexp(0.0, score) - (1 + target) / 2 * score))

    def gradient(self, k: int) -> Floats:
        """Return the gradient with respect to node weights where all are 0 and the intercept is optimal, (n_nodes,).

        It is that of half the squared error, or of the log loss.
        """
        gradient = kernels.node_gradient(self.parent, self.leaves, self.weight, self.targets[k])
        return gradient if self.loss == "squared_error" else gradient / 2


@dataclass(frozen=True, eq=False)
class Weights:
    """Node weights fitted at one penalty.

    Attributes
    ----------
    penalty : float
    node : (n_targets, n_nodes)
    intercept : (n_targets, n_trees)
    criticality : float
        Residual of the optimality conditions, as defined by the solver.
    """

    penalty: float
    node: Floats
    intercept: Floats
    criticality: float

    @property
    def support(self) -> Bools:
        """Whether a node has a non-zero weight for some target, (n_nodes,)."""
        return (self.node != 0).any(axis=0)


def cannot_weigh(problem: Problem, joint: bool, loss: FitLoss) -> str | None:
    """Return why node weights cannot be fitted to this problem, or None if they can."""
    forest = problem.forest
    reason = not_quadratic(forest)
    if reason:
        return f"it fits node weights to targets or labels; {reason}Use weakest_link."
    if len(forest.n_classes) > 1 or (not forest.n_classes and forest.n_outputs > 1):
        return "it fits node weights for one target, but this model has several. Use weakest_link."
    if not joint and not forest.trees_predict_target:
        return (
            "it fits each tree to the target, but a tree of this model predicts only a contribution to the target. Use "
            "joint=True, which fits all trees together."
        )
    if loss == "log_loss" and not forest.n_classes:
        return 'loss="log_loss" is defined for classes, but this model predicts numbers. Use loss="squared_error".'
    if loss == "log_loss" and joint and forest.n_trees > 1:
        return (
            "jointly fitted trees would add up their log odds, but this model averages the probabilities of its trees. "
            'Use joint=False, or loss="squared_error".'
        )
    return None


def freeze_prior(prior: Prior | Iterable[float] | None) -> Prior | None:
    """Return a prior as a tuple, which a solver can keep, compare and show; functions and None as they are."""
    return prior if prior is None or callable(prior) else tuple(float(factor) for factor in prior)


def check_prior(prior: Prior | None, forest: Forest) -> Floats:
    """Return the factor of the penalty of each node, (n_nodes,); raise InvalidInputError for an invalid `prior`."""
    if prior is None:
        return np.ones(forest.n_nodes)
    factors = np.asarray(prior(forest) if callable(prior) else prior, np.float64)
    if factors.shape != (forest.n_nodes,):
        raise InvalidInputError(
            f"prior has the shape {factors.shape}, but this model has {forest.n_nodes} nodes. Pass one number per "
            "node, in the order of as_forest(model), or a function of a Forest that returns them; only a function fits "
            "the clones of a cross-validation."
        )
    if not (np.isfinite(factors).all() and factors.min() > 0):
        raise InvalidInputError(
            f"prior has numbers from {factors.min()} to {factors.max()}, but they must be positive and finite. Use a "
            "large number for nodes that should be pruned."
        )
    return factors


def blocks(problem: Problem, joint: bool, loss: FitLoss = "squared_error", prior: Prior | None = None) -> list[Block]:
    """Return the regressions: one per tree, or one for all trees jointly."""
    factors = check_prior(prior, problem.forest)
    if joint:
        return [_joint_block(problem, factors, loss)]
    return [_tree_block(problem, tree, factors, loss) for tree in range(problem.forest.n_trees)]


def _joint_block(problem: Problem, prior: Floats, loss: FitLoss) -> Block:
    """Return the joint problem of all trees."""
    forest, sample = problem.forest, problem.sample
    rows = np.flatnonzero(sample.weight)
    y = sample.y[rows]
    if forest.n_classes:
        rest = np.array([np.where(y[:, 0] == code, 1.0, -1.0) for code in _learned_classes(forest)])
    else:
        # The trees explain the target minus base and offset; class probabilities start at 0.
        start = forest.base if sample.offset is None else forest.base + sample.offset[rows]
        rest = np.ascontiguousarray((y - start / forest.divisor).T)
    leaf_nodes = (sample.leaves[:, rows] + forest.root[:, None]).astype(np.int32)
    weight = sample.weight[rows] / sample.total_weight
    return Block(slice(None), np.arange(forest.n_nodes), forest.parent, leaf_nodes, weight, rest, prior, loss)


def _tree_block(problem: Problem, tree: int, prior: Floats, loss: FitLoss) -> Block:
    """Return the problem of one tree, with one row per leaf: the mean target and the weight of its rows."""
    forest, stats = problem.forest, problem.stats
    start, stop = forest.tree_start[tree], forest.tree_start[tree + 1]
    parent = np.where(forest.parent[start:stop] == -1, -1, forest.parent[start:stop] - start).astype(np.int32)
    leaves = np.flatnonzero((stats.weight[start:stop] > 0) & ~forest.is_split[start:stop])
    weight = stats.weight[start + leaves]
    if forest.n_classes:
        mean = 2 * stats.counts[start + leaves][:, _learned_classes(forest)].T / weight - 1
    else:
        mean = stats.total[start + leaves].T / weight + stats.shift[:, None]
    rows = leaves[None].astype(np.int32), weight / weight.sum(), np.ascontiguousarray(mean)
    return Block(slice(tree, tree + 1), np.arange(start, stop), parent, *rows, prior[start:stop], loss)


def _learned_classes(forest: Forest) -> list[int]:
    """Return the classes with separate weights: all, or only the second of two."""
    n_classes = forest.n_classes[0]
    return [1] if n_classes == 2 else list(range(n_classes))


def _merge_rows(
    leaf_nodes: NDArray[np.int32], weight: Floats, columns: Floats
) -> tuple[NDArray[np.int32], Floats, Floats]:
    """Return paths, weights and targets with rows of equal paths merged; targets become weighted means."""
    distinct, index = np.unique(leaf_nodes, axis=1, return_inverse=True)
    index = index.ravel()
    total = np.bincount(index, weight).astype(np.float64)
    means = [np.bincount(index, weight * column) / total for column in columns]
    return np.ascontiguousarray(distinct), total, np.array(means)


Fit = Callable[[Block, int, float, Floats], tuple[Floats, float, float]]
"""Maps a block, a target index, a penalty and initial weights to weights, intercept and criticality."""


def fit_path(tree_blocks: list[Block], penalties: Floats, forest: Forest, fit: Fit) -> Iterator[Weights]:
    """Yield the weights at each penalty, with warm starts; `penalties` should decrease."""
    n_targets = len(tree_blocks[0].targets) if tree_blocks else 1
    node = np.zeros((n_targets, forest.n_nodes))
    intercept = np.zeros((n_targets, forest.n_trees))
    for penalty in penalties:
        node, worst = node.copy(), 0.0
        for block in tree_blocks:
            for k in range(n_targets):
                w, b, criticality = fit(block, k, penalty, node[k, block.nodes])
                node[k, block.nodes] = w
                intercept[k, block.trees] = b
                worst = max(worst, criticality)
        yield Weights(penalty, node, intercept.copy(), worst)


def keep_of(forest: Forest, support: Bools) -> Bools:
    """Return the smallest pruning that contains every node of `support`, (n_nodes,).

    It consists of the support, its ancestors, the siblings of both, and all roots.
    """
    needed = support[:, None].astype(np.float64)
    kernels.roll_up(forest.right, needed)
    split = forest.is_split.copy()
    split[split] = needed[np.flatnonzero(split) + 1, 0] + needed[forest.right[split], 0] > 0
    keep = np.zeros(forest.n_nodes, bool)
    keep[forest.root] = True
    keep[np.flatnonzero(split) + 1] = keep[forest.right[split]] = True
    return keep


def values_of(forest: Forest, weights: Weights, joint: bool, loss: FitLoss = "squared_error") -> Floats:
    """Return node values with which the model predicts the fitted scores, (n_nodes, width).

    A class score s is converted to the probability (1 + s) / 2, or 1 / (1 + exp(−s)) by the log loss. For trees fitted
    separately, probabilities are clipped at 0 and normalised to sum to 1. For trees fitted jointly only the sum over
    trees is a probability, so the values are not clipped.
    """
    tree = np.repeat(np.arange(forest.n_trees), np.diff(forest.tree_start))
    score = np.array([kernels.sum_down(forest.parent, w) for w in weights.node]).T
    intercept = weights.intercept.T[tree]
    if loss == "log_loss":
        # Continue as if this were the score of a squared error, twice the probability minus 1.
        score, intercept, joint = 2 * expit(score + intercept) - 1, np.zeros_like(intercept), False
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


def path_of(
    problem: Problem, learned: Iterable[Weights], solver: str, *, joint: bool, keep_values: bool, loss: FitLoss
) -> Path:
    """Return a path of the unpruned forest and the fitted prunings, by decreasing size."""
    forest = problem.forest

    def points() -> Iterator[Point]:
        for weights in learned:
            keep = keep_of(forest, weights.support)
            value = None if keep_values else values_of(forest, weights, joint, loss)[keep]
            yield Point(weights.penalty, keep, value, {"criticality": weights.criticality})

    return trace_points(problem, points(), solver, ensemble=joint)
