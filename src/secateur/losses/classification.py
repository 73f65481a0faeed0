"""Define the losses for classification: Brier score, log loss, zero-one loss and 1 − AUC."""

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.errors import InvalidInputError
from secateur.forest import Forest
from secateur.forest.node_sums import NodeStats
from secateur.losses.base import Floats, Loss

_SMALLEST_PROBABILITY = float(np.finfo(np.float64).eps)


class ClassLoss(Loss):
    """Base class of losses that depend only on predicted probabilities and the true label."""

    task = "classification"

    @abstractmethod
    def labels(self, p: Floats) -> Floats:
        """Return the loss for each possible true label, given the probabilities `p`, both (n_nodes, n_classes)."""


class Brier(ClassLoss):
    """Brier score Σ_k (p_k − 1[y = k])², between 0 and 2."""

    name = "brier"

    def labels(self, p: Floats) -> Floats:
        """Return 1 − 2 p + Σ p²."""
        return 1 - 2 * p + (p**2).sum(axis=1, keepdims=True)

    def rows(self, forest: Forest, raw: Floats, y: NDArray[Any]) -> Floats:
        """Return 1 − 2 p(class) + Σ p², averaged over targets."""
        return _mean_over_targets(
            [
                1 - 2 * p[np.arange(len(p)), codes] + (p**2).sum(axis=1)
                for p, codes in zip(forest.response.mean(raw, forest.n_classes), y.T, strict=True)
            ]
        )

    def nodes(self, forest: Forest, stats: NodeStats) -> Floats:
        """Return W (1 + Σ p²) − 2 Σ n p at each node, with row weight W and class counts n."""
        return _mean_over_targets(
            [
                np.maximum(stats.weight * (1 + (p**2).sum(axis=1)) - 2 * (n * p).sum(axis=1), 0.0)
                for p, n in _targets(forest, stats)
            ]
        )


class LogLoss(ClassLoss):
    """Log loss −log p_y in nats, with p_y clipped from below at 2⁻⁵² so that the loss is finite."""

    name = "log_loss"

    def labels(self, p: Floats) -> Floats:
        """Return −log p."""
        return -np.log(np.maximum(p, _SMALLEST_PROBABILITY))

    def rows(self, forest: Forest, raw: Floats, y: NDArray[Any]) -> Floats:
        """Return −log p(class), averaged over targets."""
        return _mean_over_targets(
            [
                -np.log(np.maximum(p[np.arange(len(p)), codes], _SMALLEST_PROBABILITY))
                for p, codes in zip(forest.response.mean(raw, forest.n_classes), y.T, strict=True)
            ]
        )

    def nodes(self, forest: Forest, stats: NodeStats) -> Floats:
        """Return −Σ n log p at each node."""
        return _mean_over_targets([(n * self.labels(p)).sum(axis=1) for p, n in _targets(forest, stats)])


class ZeroOne(ClassLoss):
    """Zero-one loss: 1 for a wrong label, 0 for a correct one."""

    name = "zero_one"
    counts_errors = True

    def labels(self, p: Floats) -> Floats:
        """Return 0 for the most probable label (the first of several), 1 for all others."""
        return (np.arange(p.shape[1]) != p.argmax(axis=1)[:, None]).astype(np.float64)

    def rows(self, forest: Forest, raw: Floats, y: NDArray[Any]) -> Floats:
        """Return whether the label is wrong, averaged over targets."""
        return (forest.response.label(raw, forest.n_classes) != y).mean(axis=1)

    def nodes(self, forest: Forest, stats: NodeStats) -> Floats:
        """Return the weight of the misclassified rows at each node."""
        rows = np.arange(forest.n_nodes)
        return _mean_over_targets([stats.weight - n[rows, p.argmax(axis=1)] for p, n in _targets(forest, stats)])


class RankingError(Brier):
    """Ranking error: 1 − AUC, the fraction of row pairs of opposite class that are ranked in the wrong order.

    It serves to select a point of a path. It is not a sum over nodes, so the path itself is computed with the Brier
    score.
    """

    name = "auc"
    additive = False

    def unsupported(self, forest: Forest) -> str | None:
        """Return a reason unless the model has one binary target."""
        if forest.n_classes in ((2,), ()):
            return super().unsupported(forest)
        found = ", ".join(map(str, forest.n_classes))
        return f"The loss auc needs one binary target, but the targets have {found} classes. Use brier or log_loss."

    def rows(self, forest: Forest, raw: Floats, y: NDArray[Any]) -> Floats:
        """Return each row's fraction of wrongly ranked pairs, scaled so that the mean over rows is 1 − AUC.

        Raises
        ------
        InvalidInputError
            If all rows are of one class.
        """
        score = forest.response.mean(raw, forest.n_classes)[0][:, 1]
        second = y[:, 0] == 1
        if second.all() or not second.any():
            raise InvalidInputError(
                f"All {len(y)} rows are of one class, so there are no pairs to rank and the AUC is undefined. "
                "Pass rows of both classes, or use another loss."
            )
        losses = np.empty(len(y))
        for these, others, sign in ((second, ~second, -1.0), (~second, second, 1.0)):
            # Ties count half, as in the area under the ROC curve.
            ranked = np.sort(sign * score[others])
            below, up_to = (np.searchsorted(ranked, sign * score[these], side=side) for side in ("left", "right"))
            losses[these] = (below + up_to) / (2 * len(ranked)) * len(y) / (2 * these.sum())
        return losses


def _targets(forest: Forest, stats: NodeStats) -> list[tuple[Floats, Floats]]:
    """Return the predicted probabilities and the class counts of each node, one pair of arrays per target."""
    cuts = np.cumsum(forest.n_classes)[:-1]
    return list(zip(np.split(forest.value, cuts, axis=1), np.split(stats.counts, cuts, axis=1), strict=True))


def _mean_over_targets(losses: list[Floats]) -> Floats:
    return losses[0] if len(losses) == 1 else np.mean(losses, axis=0)
