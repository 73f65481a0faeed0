"""Convert an ensemble to an additive model on the scale of its loss, and a pruned state back to leaf values.

On this scale each tree adds a `contribution` to the score of a row, as `secateur.losses.objectives` defines it: the
prediction for squared error, the logit for log loss, the logarithm of the mean for counts. One unpenalised intercept
per output holds everything else: the base of the model and the root values of all trees. Contributions are therefore
relative to the root, and dropping a tree does not shift the mean.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.data.rows import LocalRows
from secateur.forest import Forest, Leaves
from secateur.forest.links import Logit, OneVsAll
from secateur.forest.promises import constrained_splits
from secateur.forest.subforest import mean_over
from secateur.kernels import RoutedRows, State, Trees, leaves_then_splits
from secateur.losses.objectives import Objective, SquaredObjective, objective_of
from secateur.problem import Problem

Floats = NDArray[np.float64]
MAX_TREES_IN_GRAM = 20_000
"""Largest number of trees for a Gram matrix of trees, which then takes 3 GB."""
_BLOCK = 32_768
"""Number of scores whose losses are evaluated at once, so that all arrays stay in the cache."""


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
        Regression targets on the scale of the objective, or one-hot class indicators.
    start : (n_rows, n_outputs)
        The offset of each row: its score without trees and intercept.
    slope : float
        Factor from the model's scale to the scale of the loss.
    objective : Objective
        The loss of the scores.
    original : (n_nodes, width)
        The contribution of each node as a leaf, minus that of its root.
    node_weight : (n_nodes,)
        Row weight at each node.
    n_rows : float
        The number of rows: the sum of the user's weights, as a row of weight 2 counts as two rows.
    """

    forest: Forest
    leaves: NDArray[np.unsignedinteger]
    weight: Floats
    target: Floats
    start: Floats
    slope: float
    objective: Objective
    original: Floats
    node_weight: Floats
    n_rows: float

    @cached_property
    def rows(self) -> RoutedRows:
        """The rows as the kernels take them."""
        return RoutedRows(self.leaves, self.weight)

    @cached_property
    def trees(self) -> Trees:
        """The trees as the kernels take them."""
        forest = self.forest
        return Trees(
            forest.tree_start,
            forest.tree_output,
            forest.right,
            leaves_then_splits(forest.tree_start, forest.right),
            forest.depth,
            self.node_weight,
            self.original,
            constrained_splits(forest),
        )

    @cached_property
    def ridge_unit(self) -> float:
        """Half the weighted curvature of an extra row: the factor from a number of rows to a ridge penalty."""
        curvature = self.objective.row_curvature(self.target.shape[1])
        if curvature is None:
            score = self.start + self.objective.constant(self.target, self.weight)
            curvature = float(
                np.average(self.objective.parabolas(score, self.target)[1].mean(axis=1), weights=self.weight)
            )
        return 0.5 * curvature * float(self.weight.sum()) / self.n_rows


def not_additive(forest: Forest) -> str | None:
    """Return why the model is not a sum of trees with an objective of its scores, or None if it is."""
    if objective_of(forest) is None:
        return (
            "it needs a sum or mean of trees whose scores have a differentiable loss, but this model has aggregation "
            f"{forest.aggregation!r} and link {forest.link!r}. "
        )
    return None


def not_quadratic(forest: Forest) -> str | None:
    """Return why the predictions of the model are not a sum of trees fitted by squared error, or None if they are."""
    objective = objective_of(forest)
    if objective is not None and not (objective.quadratic and forest.response.linear):
        loss = forest.objective or ("log_loss" if forest.n_classes else "another loss")
        return f"it needs squared error, but the scores of this model have link {forest.link!r} and loss {loss}. "
    return not_additive(forest)


def too_many_pairs(forest: Forest) -> str | None:
    """Return why a Gram matrix of the trees would not fit in memory, or None if it would."""
    if forest.n_trees <= MAX_TREES_IN_GRAM:
        return None
    return (
        f"it computes the inner products of all pairs of trees, which takes {8e-9 * forest.n_trees**2:.0f} GB for "
        f"{forest.n_trees} trees; the limit is {MAX_TREES_IN_GRAM} trees. "
    )


def additive(problem: Problem, *, contributions: bool = True) -> Additive:
    """Return the ensemble and its rows on the scale of the loss, without rows of zero weight.

    Without `contributions`, the array `original` has no rows.
    """
    forest, sample = problem.forest, problem.sample
    rows = np.flatnonzero(sample.weight)
    if len(rows) < len(sample):
        sample = sample.take(rows)
    total = sample.total_weight * n_targets(forest)
    objective = objective_of(forest)
    assert objective is not None, "solvers refuse such models"
    target = objective.target(as_numbers(forest, sample.y))
    # States have one row per output. Losses that are evaluated row by row take targets in the same order.
    target = target if objective.quadratic else np.asfortranarray(target)
    return Additive(
        forest,
        sample.leaves,
        sample.weight / total,
        target,
        starts(forest, sample),
        _slope(forest),
        objective.fitted_to(target, sample.weight),
        original_contributions(forest) if contributions else np.empty((0, forest.value.shape[1])),
        problem.weight / (problem.total_weight * n_targets(forest)),
        float(sample.total_weight),
    )


def without_rows(forest: Forest, node_weight: Floats) -> Additive:
    """Return the ensemble without rows, which suffices for `decide`."""
    none = np.empty((0, forest.n_outputs))
    leaves = np.empty((forest.n_trees, 0), np.uint16)
    objective = SquaredObjective()
    original = original_contributions(forest)
    return Additive(
        forest, leaves, np.empty(0), none, none, _slope(forest), objective, original, node_weight, n_rows=0.0
    )


def n_targets(forest: Forest) -> int:
    """Return the number of targets over which the loss is averaged."""
    return len(forest.n_classes) or forest.n_outputs


def original_contributions(forest: Forest) -> Floats:
    """Return the contribution of each node as a leaf, minus that of its root, (n_nodes, width)."""
    tree = np.repeat(np.arange(forest.n_trees), np.diff(forest.tree_start))
    original = forest.value * (_slope(forest) / forest.divisor * forest.tree_weight[tree])[:, None]
    at_root = original[forest.root]
    for one, (start, stop) in enumerate(zip(forest.root, forest.tree_start[1:], strict=True)):
        original[start:stop] -= at_root[one]
    return original


def starts(forest: Forest, sample: LocalRows) -> Floats:
    """Return the offset of each row on the scale of the loss, (n_rows, n_outputs)."""
    if sample.offset is None:
        return np.zeros((len(sample), forest.n_outputs))
    return _slope(forest) * sample.offset / forest.divisor


def as_numbers(forest: Forest, y: NDArray[np.generic]) -> Floats:
    """Return regression targets as floats and class targets one-hot encoded, (n_rows, n_outputs).

    Binary targets with one output each get a single 0/1 column.
    """
    if not forest.n_classes:
        return y.astype(np.float64)
    if forest.n_outputs == len(forest.n_classes):
        return (y == 1).astype(np.float64)
    return np.hstack([np.eye(k)[y[:, target]] for target, k in enumerate(forest.n_classes)])


def _slope(forest: Forest) -> float:
    """Return the factor from the model's scale to the scale of the loss."""
    link = forest.response
    return link.slope if isinstance(link, Logit | OneVsAll) else 1.0


def empty_state(ensemble: Additive) -> State:
    """Return the state without trees, with the optimal intercept; unless quadratic, after up to 20 Newton steps."""
    forest, objective = ensemble.forest, ensemble.objective
    target = ensemble.target - ensemble.start if objective.quadratic else ensemble.target
    intercept = objective.constant(target, ensemble.weight)
    contribution = np.zeros_like(ensemble.original)
    state = _state_of(
        ensemble,
        ensemble.start + intercept,
        intercept,
        np.zeros(forest.n_nodes, np.int8),
        contribution,
        np.zeros(forest.n_trees),
    )
    if objective.quadratic:
        _move_intercept(ensemble.weight, state)
        return state
    for _ in range(20):
        before = state.copy()
        _move_intercept(ensemble.weight, state)
        gain = before.loss[0] - renew_parabolas(ensemble, state)
        if gain < 1e-15:
            return before if gain < 0 else state
    return state


def _state_of(
    ensemble: Additive,
    score: Floats,
    intercept: Floats,
    status: NDArray[np.int8],
    contribution: Floats,
    factor: Floats,
) -> State:
    """Return the state with these scores; for squared error they are stored as residuals only."""
    quadratic, none = ensemble.objective.quadratic, np.empty((0, 0))
    neg_gradient = np.ascontiguousarray((ensemble.weight[:, None] * (ensemble.target - score)).T)
    rows = (none, none) if quadratic else (np.empty_like(neg_gradient), np.ascontiguousarray(score.T))
    state = State(
        neg_gradient, *rows, np.zeros(1), intercept, status, contribution, factor, np.full(len(factor), np.inf)
    )
    if not quadratic:
        renew_parabolas(ensemble, state)
    return state


def _move_intercept(weight: Floats, state: State) -> None:
    """Move the intercept of every output to the minimum of the parabolas."""
    for k, neg_gradient in enumerate(state.neg_gradient):
        curvature = state.curvature[k] if len(state.curvature) else weight
        # Added one after the other, as in the kernel of a sweep, `move_intercept`.
        gradient, total = (float(np.cumsum(numbers)[-1]) for numbers in (neg_gradient, curvature))
        step = gradient / total if total > 0.0 else 0.0
        neg_gradient -= curvature * step
        if len(state.score):
            state.score[k] += step
        state.intercept[k] += step


def renew_parabolas(ensemble: Additive, state: State, attempt: int = 0) -> float:
    """Let the parabolas of the rows touch the loss at the current scores; return and store the loss.

    Parameters
    ----------
    ensemble : Additive
        Its objective is not quadratic.
    state : State
        Changed in place.
    attempt : int
        Which curvature of the objective to use.
    """
    half, score, loss = 0.5 * ensemble.weight, state.score.T, 0.0
    n_rows, n_outputs = score.shape
    size = max(_BLOCK // n_outputs, 1)
    # Where a sweep went too far, exponentials overflow; the loss is then infinite, and the sweep is undone.
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, n_rows, size):
            block = slice(start, start + size)
            losses, neg_gradient, curvature = ensemble.objective.expand(score[block], ensemble.target[block], attempt)
            np.multiply(neg_gradient.T, half[block], out=state.neg_gradient[:, block])
            np.multiply(curvature.T, half[block], out=state.curvature[:, block])
            loss += float(ensemble.weight[block] @ losses)
    state.loss[0] = loss
    return float(state.loss[0])


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
    status = np.where(forest.is_split, 1, 2).astype(np.int8)
    status[forest.root[~forest.is_split[forest.root]]] = 0
    return _state_of(ensemble, score, intercept, status, contribution, np.ones(forest.n_trees))


def loss_of(ensemble: Additive, state: State) -> float:
    """Return the loss being minimised, without penalty."""
    if not ensemble.objective.quadratic:
        return float(state.loss[0])
    return float(((state.neg_gradient / ensemble.weight) ** 2 @ ensemble.weight).sum())


def raw_of(ensemble: Additive, state: State) -> Floats:
    """Return the raw scores that a state predicts for its rows, on the model's scale, (n_rows, n_outputs)."""
    if ensemble.objective.quadratic:
        return (ensemble.target - (state.neg_gradient / ensemble.weight).T) / ensemble.slope
    return state.score.T / ensemble.slope


def risk_of(ensemble: Additive, state: State, problem: Problem) -> float:
    """Return the mean of the problem's loss in this state."""
    return mean_loss(ensemble, problem, raw_of(ensemble, state))


def add_used_trees(
    forest: Forest, leaves: Leaves, status: NDArray[np.int8], contribution: Floats, score: Floats
) -> None:
    """Add the contributions of all trees that are not dropped to the scores of rows, (n_rows, n_outputs)."""
    node = np.arange(forest.n_nodes, dtype=np.int32)
    node[forest.root[status[forest.root] == 0]] = -1
    weight = np.ones(forest.n_trees)
    kernels.add_trees(
        leaves, forest.tree_start, node, contribution, weight, forest.tree_output, np.empty((0, 0), bool), score
    )


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
    kept_trees = status[forest.root] != 0
    # A tree without an output of its own contributes to all of them.
    shared = forest.tree_output < 0
    if not kept_trees[shared].any():
        has_tree = np.zeros(forest.n_outputs, bool)
        has_tree[forest.tree_output[kept_trees]] = True
        outputs, first = np.unique(forest.tree_output, return_index=True)
        kept_trees[first[outputs < 0] if shared.any() else first[~has_tree[outputs]]] = True
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
    """Return the keep mask and the values of the kept nodes with which the model predicts what the state predicts.

    The intercept is divided equally among the kept trees of an output.

    Returns
    -------
    keep : (n_nodes,) bool
    value : (n_kept, width)
        On the model's scale.
    """
    forest = ensemble.forest
    status = with_replacements(ensemble, state)
    keep = status > 0
    kept_trees = keep[forest.root]
    divisor = forest.divisor
    if forest.aggregation == "mean":
        divisor = mean_over(forest, forest.tree_weight, kept_trees)
    rest = state.intercept / ensemble.slope - forest.base / divisor
    if state.contribution.shape[1] > 1:
        added_intercept = np.tile(rest / max(int(kept_trees.sum()), 1), (forest.n_trees, 1))
    else:
        output = np.maximum(forest.tree_output, 0)
        n_kept = np.bincount(output[kept_trees], minlength=forest.n_outputs)
        added_intercept = (rest / np.maximum(n_kept, 1))[output][:, None]
    tree = np.searchsorted(forest.tree_start, np.flatnonzero(keep), side="right") - 1
    added = kept_contributions(ensemble, status, state.contribution) / ensemble.slope + added_intercept[tree]
    return keep, added * divisor / forest.tree_weight[tree, None]


def kept_contributions(ensemble: Additive, status: NDArray[np.int8], contribution: Floats) -> Floats:
    """Return the contribution of each kept leaf, and at each kept split the row-weighted mean of the kept leaves below.

    The array has a row for each kept node, so that many outputs of a few kept nodes take little memory.
    """
    kept = np.flatnonzero(status)
    return split_means(ensemble.forest, kept, status[kept] == 1, ensemble.node_weight[kept], contribution[kept])


def split_means(
    forest: Forest, kept: NDArray[np.intp], is_split: NDArray[np.bool_], weight: Floats, added: Floats
) -> Floats:
    """Return `added`, (n_kept, width), with the weighted mean of the kept leaves below at each kept split."""
    right = np.full(len(kept), -1, np.int32)
    right[is_split] = np.searchsorted(kept, forest.right[kept[is_split]])
    of_leaves = np.where(is_split, 0.0, weight)[:, None]
    sums = np.hstack([of_leaves * added, of_leaves])
    kernels.roll_up(right, sums)
    mean = sums[:, :-1] / np.maximum(sums[:, -1:], 1e-300)
    return np.where(is_split[:, None], mean, added)


def fill_splits(ensemble: Additive, status: NDArray[np.int8], contribution: Floats) -> Floats:
    """Return `contribution` with each kept split set to the row-weighted mean of the kept leaves below it."""
    filled = contribution.copy()
    filled[status > 0] = kept_contributions(ensemble, status, contribution)
    return filled
