"""Compute losses at the points of a path as sums over rows, which may be in memory, in batches or in a cluster."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.data.rows import LocalRows
from secateur.forest import Forest
from secateur.forest.masks import Masks
from secateur.forest.subforest import Decision, kept_decision
from secateur.losses import Loss

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Decisions:
    """Hold the decisions of all points without the forest, to be sent to remote rows."""

    masks: Masks
    values: list[Floats] | None = None
    tree_weight: Floats | None = None
    base: Floats | None = None

    def at(self, forest: Forest, point: int) -> Decision:
        """Return the decision of a point."""
        keep = self.masks.keep(point)
        changed = Decision(keep) if self.values is None else kept_decision(forest, keep, self.values[point])
        return replace(
            changed,
            tree_weight=None if self.tree_weight is None else self.tree_weight[point],
            base=None if self.base is None else self.base[point],
        )


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
        raw = sample.scores(forest, self.decisions.at(forest, point) if point else None)
        return self.loss.rows(forest, raw, sample.y), forest.response.label(raw, forest.n_classes)


@dataclass(frozen=True, eq=False)
class Compared(LossesAt):
    """Compute the sums from which `columns_of` derives losses and their differences from the unpruned forest."""

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
            changed = weight @ (labels != before).any(axis=1)
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
