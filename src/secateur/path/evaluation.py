"""What rows lose at the points of a path, asked in sums: the rows may be in memory, in parts, or in a cluster."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.data.rows import LocalRows
from secateur.forest import Forest
from secateur.forest.masks import Masks
from secateur.forest.subforest import Decision
from secateur.losses import Loss

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Decisions:
    """What the points of a path keep and change, without the forest: what is sent to where the rows are."""

    masks: Masks
    values: list[Floats] | None = None
    tree_weight: Floats | None = None
    base: Floats | None = None

    def at(self, forest: Forest, point: int) -> Decision:
        """Return what a point keeps and changes."""
        keep = self.masks.keep(point)
        value = None
        if self.values is not None:
            value = forest.value.copy()
            value[keep] = self.values[point]
        return Decision(
            keep,
            value,
            None if self.tree_weight is None else self.tree_weight[point],
            None if self.base is None else self.base[point],
        )


@dataclass(frozen=True, eq=False)
class LossesAt:
    """Ask what rows lose at some points, in total, (n_points,); point 0 is the unpruned forest."""

    decisions: Decisions
    points: tuple[int, ...]
    loss: Loss

    def __call__(self, forest: Forest, sample: LocalRows) -> Floats:
        """Return what these rows lose."""
        return np.array([sample.weight @ self.told(forest, sample, point)[0] for point in self.points])

    def told(self, forest: Forest, sample: LocalRows, point: int) -> tuple[Floats, NDArray[Any]]:
        """Return the loss of each row at a point, and the label or value it is given."""
        raw = sample.scores(forest, self.decisions.at(forest, point) if point else None)
        return self.loss.rows(forest, raw, sample.y), forest.response.label(raw, forest.n_classes)


@dataclass(frozen=True, eq=False)
class Compared(LossesAt):
    """Ask how the losses at some points compare with those of the unpruned forest: sums `columns_of` understands."""

    def __call__(self, forest: Forest, sample: LocalRows) -> Floats:
        """Return the sums over these rows, (n_points, 9)."""
        reference, before = self.told(forest, sample, 0)
        weight = sample.weight
        sums = np.empty((len(self.points), 9))
        for place, point in enumerate(self.points):
            losses, said = self.told(forest, sample, point)
            changed = weight @ (said != before).any(axis=1)
            moments = [_moments(weight, column) for column in (losses, losses - reference)]
            sums[place] = [weight.sum(), weight @ weight, changed, *moments[0], *moments[1]]
        return sums


def _moments(weight: Floats, column: Floats) -> tuple[float, float, float]:
    squared = weight**2
    return float(weight @ column), float(squared @ column), float(squared @ column**2)


def columns_of(sums: Floats) -> Floats:
    """Return the mean loss, its standard error, the share of rows that changed, and the error of the difference.

    (4, n_points), from the sums of `Compared` over all rows.
    """
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
