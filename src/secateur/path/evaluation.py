"""Evaluate the points of a path: their losses on given rows, and the points of a fold's path that stand for them.

Losses are sums over rows, which may be in memory, in batches or in a cluster. Cross-validation scores a point by the
point of a fold's path that the same selection would give, so the points of two paths of a solver are matched.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from secateur.data.row_source import RowSource
from secateur.data.rows import LocalRows
from secateur.forest import Forest
from secateur.forest.masks import Masks
from secateur.forest.subforest import Decision, kept_decision
from secateur.libraries.adapter import Adapter
from secateur.losses import Loss

if TYPE_CHECKING:
    from secateur.path.path import Path

Floats = NDArray[np.float64]

MEASURED = ("loss", "loss_se", "changed", "increase_se")
"""Columns of an evaluated path."""

_TIE = 1e-3
"""Weight of the penalty if points are matched by size: it only breaks ties."""


@dataclass(frozen=True, eq=False)
class Decisions:
    """Hold the decisions of all points without the forest, to be sent to remote rows."""

    masks: Masks
    values: list[Floats] | None = None
    tree_weight: Floats | None = None
    base: Floats | None = None

    def at(self, forest: Forest, point: int) -> Decision:
        """Return the decision of a point."""
        decision = self._without_values(point)
        if self.values is None:
            return decision
        return replace(decision, value=kept_decision(forest, decision.keep, self.values[point]).value)

    def scores(self, forest: Forest, sample: LocalRows, point: int) -> Floats:
        """Return the raw scores of rows at a point, (n_rows, n_outputs); point 0 is the unpruned forest.

        They are computed from the values of the kept nodes alone, which for many classes are few of all values.
        """
        if point == 0:
            return sample.scores(forest)
        return sample.scores(forest, self._without_values(point), None if self.values is None else self.values[point])

    def _without_values(self, point: int) -> Decision:
        return Decision(
            self.masks.keep(point),
            tree_weight=None if self.tree_weight is None else self.tree_weight[point],
            base=None if self.base is None else self.base[point],
        )


@dataclass(frozen=True, eq=False)
class PointOnRows:
    """Hold what a point predicts for rows in memory.

    Attributes
    ----------
    source : Adapter
        The model that the point prunes.
    sample : LocalRows
        The rows, routed through that model.
    raw : (n_rows, n_outputs)
        Raw scores of the rows.
    output : (n_rows, n_outputs)
        What the adapter computes predictions from: the raw scores, or sums over trees if the model returns those.
    decision : callable
        Returns the decision of the point, to predict other rows.
    """

    source: Adapter
    sample: LocalRows
    raw: Floats
    output: NDArray[np.floating]
    decision: Callable[[], Decision]

    def losses(self, loss: Loss) -> Floats:
        """Return the loss of each row, (n_rows,)."""
        return loss.rows(self.source.forest, self.raw, self.sample.y)

    def labels(self) -> NDArray[Any]:
        """Return the predicted labels or values, (n_rows, n_targets)."""
        forest = self.source.forest
        return self.source.decode(forest.response.label(self.raw, forest.n_classes)).reshape(len(self.sample), -1)


def point_on_rows(source: Adapter, decisions: Decisions, point: int, sample: LocalRows) -> PointOnRows:
    """Return what a point predicts for rows that are routed through the model."""
    forest = source.forest
    raw = decisions.scores(forest, sample, point)
    total = decisions.scores(replace(forest, divisor=1.0), sample, point) if source.raw_is_total else raw
    decision = partial(decisions.at, forest, point)
    return PointOnRows(source, sample, raw, total.astype(forest.sum_dtype, copy=False), decision)


@dataclass(frozen=True, eq=False)
class LossesAt:
    """Compute the total loss of rows at some points, (n_points,); point 0 is the unpruned forest."""

    decisions: Decisions
    points: tuple[int, ...]
    loss: Loss

    def __call__(self, forest: Forest, sample: LocalRows) -> Floats:
        """Return the total loss of the given rows at each point, (n_points,)."""
        return np.array([sample.weight @ self.losses_and_labels(forest, sample, point)[0] for point in self.points])

    def losses_and_labels(self, forest: Forest, sample: LocalRows, point: int) -> tuple[Floats, NDArray[Any]]:
        """Return the loss of each row at a point, and its predicted label or value."""
        raw = self.decisions.scores(forest, sample, point)
        return self.loss.rows(forest, raw, sample.y), forest.response.label(raw, forest.n_classes)


@dataclass(frozen=True, eq=False)
class Compared(LossesAt):
    """Compute the sums from which `columns_of` derives losses and their differences from the unpruned forest.

    A predicted number counts as changed if it differs by more than `tolerance`.
    """

    tolerance: float = 0.0

    def __call__(self, forest: Forest, sample: LocalRows) -> Floats:
        """Return the sums over the given rows, (n_points, 9).

        The columns are Σw, Σw², the weight of changed predictions, and Σwx, Σw²x, Σw²x² for the losses x and for their
        differences from the unpruned forest.
        """
        reference, before = self.losses_and_labels(forest, sample, 0)
        weight = sample.weight
        sums = np.empty((len(self.points), 9))
        for place, point in enumerate(self.points):
            losses, labels = self.losses_and_labels(forest, sample, point)
            changed = weight @ changed_rows(labels, before, self.tolerance)
            moments = [_moments(weight, column) for column in (losses, losses - reference)]
            sums[place] = [weight.sum(), weight @ weight, changed, *moments[0], *moments[1]]
        return sums


def _moments(weight: Floats, column: Floats) -> tuple[float, float, float]:
    squared = weight**2
    return float(weight @ column), float(squared @ column), float(squared @ column**2)


def columns_of(sums: Floats) -> Floats:
    """Return the columns loss, loss_se, changed and increase_se, (4, n_points), from the sums of `Compared`."""
    total, squares, changed, *moments = sums.T
    mean, loss_se = _mean_and_error(total, squares, *moments[:3])
    _, increase_se = _mean_and_error(total, squares, *moments[3:])
    return np.array([mean, loss_se, changed / total, increase_se])


def _mean_and_error(
    total: Floats, squares: Floats, first: Floats, first_squared: Floats, second: Floats
) -> tuple[Floats, Floats]:
    """Return means and their standard errors, √(Σ weight² (x − mean)²) / Σ weight."""
    mean = first / total
    return mean, np.sqrt(np.maximum(second - 2 * mean * first_squared + mean**2 * squares, 0.0)) / total


def changed_rows(labels: NDArray[Any], before: NDArray[Any], tolerance: float) -> NDArray[np.bool_]:
    """Return whether each row's labels differ, or its numbers by more than a tolerance, (n_rows,)."""
    differ = np.asarray(np.abs(labels - before) > tolerance if tolerance else labels != before)
    return np.asarray(differ.any(axis=1))


def compare(
    pruned: tuple[Floats, NDArray[Any]],
    unpruned: tuple[Floats, NDArray[Any]],
    weight: Floats,
    tolerance: float = 0.0,
    groups: NDArray[np.intp] | None = None,
) -> tuple[float, float, float, float]:
    """Return the columns loss, loss_se, changed and increase_se of one point, compared with the unpruned model.

    `pruned` and `unpruned` are pairs of losses, (n_rows,), and predictions, (n_rows, n_targets). `weight` is the
    normalised weight of each row. With `groups`, errors are those of sums over groups.
    """
    (losses, predictions), (reference, before) = pruned, unpruned
    mean, mean_before = float(weight @ losses), float(weight @ reference)
    return (
        mean,
        error_of_mean(weight, losses - mean, groups),
        float(weight @ changed_rows(predictions, before, tolerance)),
        error_of_mean(weight, losses - reference - mean + mean_before, groups),
    )


def error_of_mean(weight: Floats, deviations: Floats, groups: NDArray[np.intp] | None) -> float:
    """Return the standard error of a mean, √(Σ (weight · deviation)²), with sums over groups of dependent rows."""
    if groups is None:
        return float(np.sqrt(weight**2 @ deviations**2))
    sums = np.bincount(groups, weight * deviations)
    return float(np.sqrt(sums @ sums))


@dataclass(frozen=True, eq=False)
class Fold:
    """Hold a path fitted without the rows of a fold, and these rows.

    The path belongs to the given model or to a clone refitted without the fold.
    """

    path: "Path"
    validation_rows: RowSource


def match_by_penalty(path: "Path", other: "Path") -> NDArray[np.intp]:
    """Return for each point the point of `other` that is optimal at the same penalty, (n_points,).

    Without a monotone sequence of penalties, points are matched by their size relative to the unpruned model.
    """
    penalty, theirs = path.table["penalty"], other.table["penalty"]
    if not np.isnan(penalty).any() and (np.diff(theirs) >= 0).all():
        match = np.maximum(np.searchsorted(theirs, penalty, side="right") - 1, 0)
        match[0] = 0
        return match
    if len(path) == len(other) == 2:
        return np.arange(2)
    unpruned = path.table["n_nodes"][0] / other.table["n_nodes"][0]
    return _size_distance(path, other, unpruned).argmin(axis=1)


def match_by_parameter(path: "Path", other: "Path") -> NDArray[np.intp]:
    """Return for each point the point of `other` with the nearest penalty, and for the unpruned model itself.

    This is for penalties that are the settings of runs, so that points of the same setting correspond.
    """
    penalty, theirs = (np.nan_to_num(one.table["penalty"], nan=-np.inf) for one in (path, other))
    match = np.abs(penalty[1:, None] - theirs).argmin(axis=1)
    return np.append(0, match)


def match_by_cost(path: "Path", other: "Path") -> NDArray[np.intp]:
    """Return for each point the point of `other` with the nearest relative cost, preferably of the same origin."""
    spent, theirs = (one.table["cost"] / max(one.table["cost"][0], 1e-300) for one in (path, other))
    distance = np.abs(spent[:, None] - theirs)
    # Relative costs differ by at most 1.
    distance[path.table["origin"][:, None] != other.table["origin"]] += 1.0
    return distance.argmin(axis=1)


def match_runs(path: "Path", other: "Path", *, same_size: bool) -> NDArray[np.intp]:
    """Return for each point the point of the same run of `other` with the nearest penalty, or size (`same_size`)."""
    penalty = np.nan_to_num(path.table["penalty"], nan=1.0)
    distance = np.abs(np.log(penalty[:, None] / other.table["penalty"]))
    if same_size:
        distance = _size_distance(path, other) + _TIE * distance
    for name in path.info.runs:
        distance[path.table[name][:, None] != other.table[name]] = np.inf
    match = np.nan_to_num(distance, nan=np.inf).argmin(axis=1)
    match[0] = 0
    return match


def points_of_known_runs(path: "Path", other: "Path") -> NDArray[np.intp]:
    """Return the points whose run has a point on another path, so that `match_runs` can match them."""
    known = {tuple(other.table[name][point] for name in path.info.runs) for point in range(1, len(other))}
    runs = [tuple(path.table[name][point] for name in path.info.runs) for point in range(len(path))]
    return np.flatnonzero([point == 0 or run in known for point, run in enumerate(runs)])


def _size_distance(path: "Path", other: "Path", usual: float = 1.0) -> Floats:
    """Return |log(size ratio / usual)| for each pair of points, (n_points, n_points of `other`)."""
    ratio: Floats = path.table["n_nodes"][:, None] / other.table["n_nodes"] / usual
    return np.abs(np.log(ratio))
