"""Convert an ensemble to an additive model on the scale of its loss, and a pruned state back to leaf values.

On this scale each tree adds a `contribution` to the score of a row: the prediction for squared error, the logit for log
loss. One unpenalised intercept per output holds everything else: the base of the model and the root values of all
trees. Contributions are therefore relative to the root, and dropping a tree does not shift the mean.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.data.rows import LocalRows
from secateur.forest import Forest
from secateur.forest.links import Logit, Softmax
from secateur.forest.subforest import mean_over
from secateur.kernels import RoutedRows, State, Trees
from secateur.problem import Problem

Floats = NDArray[np.float64]
MAX_TREES_IN_GRAM = 20_000
"""Largest number of trees for a Gram matrix of trees, which then takes 3 GB."""


@dataclass(frozen=True, eq=False)
class Additive:
    """The constant data of a block descent: trees, rows and targets on the scale of the loss.

    Attributes
    ----------
    forest : Forest
    leaves : (n_trees, n_rows)
        The leaf each row reaches, counted from the root of the tree.
    weight : (n_rows,)
        Row weights. They sum to 1, or to 1 / n_targets where the loss is a mean over targets.
    target : (n_rows, n_outputs)
        Regression targets or one-hot class indicators.
    start : (n_rows, n_outputs)
        The offset of each row: its score without trees and intercept.
    slope : float
        Factor from the model's scale to the scale of the loss.
    logits : bool
        Whether scores are logits and the loss is log loss; otherwise the loss is squared error.
    original : (n_nodes, width)
        The contribution of each node as a leaf, minus that of its root.
    node_weight : (n_nodes,)
        Row weight at each node.
    """

    forest: Forest
    leaves: NDArray[np.unsignedinteger]
    weight: Floats
    target: Floats
    start: Floats
    slope: float
    logits: bool
    original: Floats
    node_weight: Floats

    @cached_property
    def rows(self) -> RoutedRows:
        """The rows as the kernels take them."""
        return RoutedRows(self.leaves, self.weight)

    @cached_property
    def trees(self) -> Trees:
        """The trees as the kernels take them."""
        forest = self.forest
        return Trees(forest.tree_start, forest.tree_output, forest.right, forest.depth, self.node_weight, self.original)

    @property
    def weight_per_row(self) -> float:
        """Factor from a penalty on the sum over rows to a penalty on the weighted mean."""
        return float(self.weight.sum()) / len(self.weight)


def not_additive(forest: Forest) -> str | None:
    """Return why the model is not a sum of trees with squared error or log loss, or None if it is."""
    link = forest.response
    if forest.aggregation == "median" or not (link.linear or link.logits):
        return (
            "it needs a sum or mean of trees with an identity, probability or logit link, but this model has "
            f"aggregation {forest.aggregation!r} and link {forest.link!r}. "
        )
    if isinstance(link, Softmax) and (forest.tree_output < 0).any():
        return "it needs one tree per class, but each tree of this model contributes to all classes. "
    return None


def too_many_pairs(forest: Forest) -> str | None:
    """Return why a Gram matrix of the trees would not fit in memory, or None if it would."""
    if forest.n_trees <= MAX_TREES_IN_GRAM:
        return None
    return (
        f"it computes the inner products of all pairs of trees, which takes {8e-9 * forest.n_trees**2:.0f} GB for "
        f"{forest.n_trees} trees; the limit is {MAX_TREES_IN_GRAM} trees. "
    )


def additive(problem: Problem) -> Additive:
    """Return the ensemble and its rows on the scale of the loss, without rows of zero weight."""
    forest, sample = problem.forest, problem.sample
    rows = np.flatnonzero(sample.weight)
    if len(rows) < len(sample):
        sample = sample.take(rows)
    total = sample.total_weight * n_targets(forest)
    return Additive(
        forest,
        sample.leaves,
        sample.weight / total,
        as_numbers(forest, sample.y),
        starts(forest, sample),
        _slope(forest),
        forest.response.logits,
        original_contributions(forest),
        problem.weight / (problem.total_weight * n_targets(forest)),
    )


def without_rows(forest: Forest, node_weight: Floats) -> Additive:
    """Return the ensemble without rows, which suffices for `decide`."""
    none = np.empty((0, forest.n_outputs))
    leaves = np.empty((forest.n_trees, 0), np.uint16)
    logits = forest.response.logits
    return Additive(
        forest, leaves, np.empty(0), none, none, _slope(forest), logits, original_contributions(forest), node_weight
    )


def n_targets(forest: Forest) -> int:
    """Return the number of targets over which the loss is averaged."""
    return len(forest.n_classes) or forest.n_outputs


def original_contributions(forest: Forest) -> Floats:
    """Return the contribution of each node as a leaf, minus that of its root, (n_nodes, width)."""
    tree = np.repeat(np.arange(forest.n_trees), np.diff(forest.tree_start))
    original = forest.value * (_slope(forest) / forest.divisor * forest.tree_weight[tree])[:, None]
    return original - original[forest.root][tree]


def starts(forest: Forest, sample: LocalRows) -> Floats:
    """Return the offset of each row on the scale of the loss, (n_rows, n_outputs)."""
    if sample.offset is None:
        return np.zeros((len(sample), forest.n_outputs))
    return _slope(forest) * sample.offset / forest.divisor


def as_numbers(forest: Forest, y: NDArray[np.generic]) -> Floats:
    """Return regression targets as floats and class targets one-hot encoded, (n_rows, n_outputs).

    A binary classifier with one output gets a single 0/1 column.
    """
    if not forest.n_classes:
        return y.astype(np.float64)
    if forest.n_outputs == 1:
        return (y[:, :1] == 1).astype(np.float64)
    return np.hstack([np.eye(k)[y[:, target]] for target, k in enumerate(forest.n_classes)])


def _slope(forest: Forest) -> float:
    """Return the factor from the model's scale to the scale of the loss."""
    link = forest.response
    return link.slope if isinstance(link, Logit) else 1.0


def empty_state(ensemble: Additive) -> State:
    """Return the state without trees, with the optimal intercept.

    For log loss the intercept takes up to 20 Newton steps from the log odds of the target.
    """
    forest = ensemble.forest
    shape = ensemble.target.shape
    if ensemble.logits:
        intercept = log_odds(ensemble.weight @ ensemble.target / ensemble.weight.sum())
    else:
        intercept = (ensemble.weight @ (ensemble.target - ensemble.start)) / ensemble.weight.sum()
    predicted = predict(ensemble, np.tile(intercept, (shape[0], 1)) + ensemble.start)
    state = State(
        ensemble.weight[:, None] * (ensemble.target - predicted),
        predicted if ensemble.logits else np.empty((0, 0)),
        intercept,
        np.zeros(forest.n_nodes, np.int8),
        np.zeros_like(ensemble.original),
        np.zeros(forest.n_trees),
    )
    for _ in range(20 if ensemble.logits else 1):
        if kernels.move_intercept(ensemble.weight, state) < 1e-15:
            break
    return state


def log_odds(frequency: Floats) -> Floats:
    """Return the logits of class frequencies, clipped away from 0 and 1; for several outputs softmax logits."""
    tiny = 1e-9
    logit = np.log(np.maximum(frequency, tiny))
    return logit - np.log(np.maximum(1 - frequency, tiny)) if len(frequency) == 1 else logit


def full_state(ensemble: Additive) -> State:
    """Return the state of the unpruned ensemble; a tree of one node is absorbed into the intercept."""
    forest = ensemble.forest
    at_root = forest.value[forest.root] * (ensemble.slope / forest.divisor * forest.tree_weight)[:, None]
    intercept = ensemble.slope * forest.base / forest.divisor
    for tree, output in enumerate(forest.tree_output):
        intercept[slice(None) if output < 0 else slice(output, output + 1)] += at_root[tree]
    score = ensemble.start + intercept
    contribution = np.where(forest.is_split[:, None], 0.0, ensemble.original)
    for tree, output in enumerate(forest.tree_output):
        added = contribution[forest.root[tree] + ensemble.leaves[tree].astype(np.intp)]
        score[:, slice(None) if output < 0 else slice(output, output + 1)] += added
    predicted = predict(ensemble, score)
    status = np.where(forest.is_split, 1, 2).astype(np.int8)
    status[forest.root[~forest.is_split[forest.root]]] = 0
    return State(
        ensemble.weight[:, None] * (ensemble.target - predicted),
        predicted if ensemble.logits else np.empty((0, 0)),
        intercept,
        status,
        contribution,
        np.ones(forest.n_trees),
    )


def predict(ensemble: Additive, score: Floats) -> Floats:
    """Return predictions from scores: probabilities for logits, otherwise the scores themselves."""
    return probabilities(score) if ensemble.logits else score


def probabilities(score: Floats) -> Floats:
    """Return the probabilities of logits (sigmoid or softmax), (n_rows, n_outputs)."""
    if score.shape[1] == 1:
        return 1 / (1 + np.exp(-score))
    power = np.exp(score - score.max(axis=1, keepdims=True))
    return power / power.sum(axis=1, keepdims=True)


def loss_of(ensemble: Additive, state: State) -> float:
    """Return the loss being minimised, without penalty: squared error or log loss."""
    if ensemble.logits:
        return log_loss(ensemble.weight, ensemble.target, state.probability)
    residual = state.neg_gradient / ensemble.weight[:, None]
    return float(ensemble.weight @ (residual**2).sum(axis=1))


def log_loss(weight: Floats, target: Floats, probability: Floats) -> float:
    """Return the weighted sum of the rows' log losses."""
    if probability.shape[1] == 1:
        probability = np.where(target == 1, probability, 1 - probability)
    else:
        probability = (probability * target).sum(axis=1, keepdims=True)
    return float(-weight @ np.log(np.maximum(probability[:, 0], 1e-300)))


def risk_of(ensemble: Additive, state: State, problem: Problem) -> float:
    """Return the mean of the problem's loss in this state; NaN for logits, as the state holds no scores."""
    if ensemble.logits:
        return np.nan
    return mean_loss(ensemble, problem, ensemble.target - state.neg_gradient / ensemble.weight[:, None])


def mean_loss(ensemble: Additive, problem: Problem, raw: Floats) -> float:
    """Return the mean of the problem's loss for the raw predictions of the rows of positive weight."""
    has_weight = problem.sample.weight > 0
    y = problem.sample.y if has_weight.all() else problem.sample.y[has_weight]
    return float(np.average(problem.loss.rows(ensemble.forest, raw, y), weights=ensemble.weight))


def with_replacements(ensemble: Additive, state: State) -> NDArray[np.int8]:
    """Return the status of all nodes, with the dropped roots the model needs restored as leaves.

    An output without trees keeps one root to hold its intercept. Where every boosting round has one tree per output, a
    round keeps all of its roots or none.
    """
    forest, status = ensemble.forest, state.status.copy()
    output = forest.tree_output
    kept_trees = status[forest.root] != 0
    for k in range(forest.n_outputs):
        trees = np.flatnonzero((output == k) | (output < 0))
        if len(trees) and not kept_trees[trees].any():
            kept_trees[trees[0]] = True
    round_of = rounds(forest)
    kept_trees = (np.bincount(round_of, kept_trees) > 0)[round_of]
    restored = forest.root[kept_trees & (status[forest.root] == 0)]
    status[restored] = 2
    return status


def rounds(forest: Forest) -> NDArray[np.intp]:
    """Return the boosting round of each tree, (n_trees,).

    Trees of one round are kept or dropped together. Without rounds of one tree per output each tree has its own.
    """
    trees = np.arange(forest.n_trees)
    if forest.n_outputs > 1 and np.array_equal(forest.tree_output, trees % forest.n_outputs):
        return trees // forest.n_outputs
    return trees


def decide(ensemble: Additive, state: State) -> tuple[NDArray[np.bool_], Floats]:
    """Return the keep mask and the node values with which the model predicts what the state predicts.

    The intercept is divided equally among the kept trees of an output.

    Returns
    -------
    keep : (n_nodes,) bool
    value : (n_nodes, width)
        On the model's scale.
    """
    forest = ensemble.forest
    status = with_replacements(ensemble, state)
    trees_of = [np.flatnonzero((forest.tree_output == k) | (forest.tree_output < 0)) for k in range(forest.n_outputs)]
    keep = status > 0
    kept_trees = keep[forest.root]
    divisor = forest.divisor
    if forest.aggregation == "mean":
        divisor = mean_over(forest, forest.tree_weight, kept_trees)
    added_intercept = np.zeros((forest.n_trees, state.contribution.shape[1]))
    for k, trees in enumerate(trees_of):
        kept = trees[kept_trees[trees]]
        if len(kept):
            rest = state.intercept[k] / ensemble.slope - forest.base[k] / divisor
            added_intercept[kept, k if state.contribution.shape[1] > 1 else 0] = rest / len(kept)
    tree = np.repeat(np.arange(forest.n_trees), np.diff(forest.tree_start))
    added = fill_splits(ensemble, status, state.contribution) / ensemble.slope + added_intercept[tree]
    return keep, added * divisor / forest.tree_weight[tree, None]


def fill_splits(ensemble: Additive, status: NDArray[np.int8], contribution: Floats) -> Floats:
    """Return `contribution` with each kept split set to the row-weighted mean of the kept leaves below it."""
    right = ensemble.forest.right
    at_leaf = (status == 2)[:, None]
    sums = np.hstack(
        [np.where(at_leaf, ensemble.node_weight[:, None], 0.0) * contribution, ensemble.node_weight[:, None] * at_leaf]
    )
    kernels.roll_up(np.where(status == 1, right, -1), sums)
    mean = sums[:, :-1] / np.maximum(sums[:, -1:], 1e-300)
    return np.where((status == 1)[:, None], mean, contribution)
