"""Compute sufficient statistics of the rows at each node (weights, counts, sums, squares), and means of leaf values."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.forest import Forest, Leaves

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class NodeStats:
    """Hold the sufficient statistics of the rows at each node.

    Attributes
    ----------
    weight : (n_nodes,)
        Total row weight.
    counts : (n_nodes, sum of n_classes)
        Row weight per class, targets side by side; no columns for regression.
    shift : (n_targets,)
        Approximate mean of y, subtracted before summing to avoid cancellation.
    total, square : (n_nodes, n_targets)
        Sums of `y - shift` and of its square; no columns for classification.
    """

    weight: Floats
    counts: Floats
    shift: Floats
    total: Floats
    square: Floats

    def __add__(self, other: "NodeStats") -> "NodeStats":
        """Return the statistics of the union of both sets of rows; the shifts must be equal."""
        if not np.array_equal(self.shift, other.shift):
            raise ValueError(
                f"Sums with the shifts {self.shift} and {other.shift} cannot be added. Compute both with the same "
                "shift."
            )
        return NodeStats(
            self.weight + other.weight,
            self.counts + other.counts,
            self.shift,
            self.total + other.total,
            self.square + other.square,
        )


def node_weight(forest: Forest, leaves: Leaves, sample_weight: Floats) -> Floats:
    """Return the row weight that reaches each node, (n_nodes,)."""
    sums = np.empty((forest.n_nodes, 1))
    for tree, (start, stop) in enumerate(zip(forest.root, forest.tree_start[1:], strict=True)):
        sums[start:stop, 0] = np.bincount(leaves[tree], sample_weight, stop - start)
    kernels.roll_up(forest.right, sums)
    return sums[:, 0]


def class_stats(forest: Forest, leaves: Leaves, y: NDArray[np.intp], sample_weight: Floats) -> NodeStats:
    """Return the class counts at each node for targets given as class codes, y (n_rows, n_targets)."""
    blocks = []
    for target, n_classes in enumerate(forest.n_classes):
        counts = np.zeros((forest.n_nodes, n_classes))
        kernels.count_classes(leaves, forest.tree_start, y[:, target], sample_weight, counts)
        kernels.roll_up(forest.right, counts)
        blocks.append(counts)
    no_columns = np.empty((forest.n_nodes, 0))
    counts = np.hstack(blocks) if len(blocks) > 1 else blocks[0]
    return NodeStats(blocks[0].sum(axis=1), counts, np.empty(0), no_columns, no_columns)


def value_stats(
    forest: Forest, leaves: Leaves, y: Floats, sample_weight: Floats, shift: Floats | None = None
) -> NodeStats:
    """Return sums and sums of squares of `y - shift` at each node, y (n_rows, n_targets).

    The default shift is the weighted mean of y.
    """
    n_targets = y.shape[1]
    if shift is None:
        shift = sample_weight @ y / (sample_weight.sum() or 1.0)
    sums = np.zeros((forest.n_nodes, 1 + 2 * n_targets))
    kernels.add_moments(leaves, forest.tree_start, y - shift, sample_weight, sums)
    kernels.roll_up(forest.right, sums)
    return NodeStats(
        weight=sums[:, 0],
        counts=np.empty((forest.n_nodes, 0)),
        shift=shift,
        total=sums[:, 1 : 1 + n_targets],
        square=sums[:, 1 + n_targets :],
    )


def output_spread(forest: Forest, weight: Floats) -> Floats:
    """Return Σ w (tree(x) − value)² over the rows at each node: the squared change of output if it becomes a leaf.

    Parameters
    ----------
    forest : Forest
    weight : (n_nodes,)
        Row weight at each node.
    """
    leaf_weight = np.where(forest.is_split, 0.0, weight)[:, None]
    root_value = np.repeat(forest.value[forest.root], np.diff(forest.tree_start), axis=0)
    # Centre the values to avoid cancellation in the squares.
    value = forest.value - root_value
    width = value.shape[1]
    sums = np.hstack([leaf_weight * value, leaf_weight * value**2])
    kernels.roll_up(forest.right, sums)
    # Σ w (leaf − v)² = Σ w leaf² − 2 v Σ w leaf + v² Σ w
    spread = sums[:, width:] - 2 * value * sums[:, :width] + value**2 * weight[:, None]
    scale = np.repeat(forest.tree_weight**2, np.diff(forest.tree_start))
    return np.where(forest.is_split, np.maximum(spread.sum(axis=1), 0.0) * scale, 0.0)


def cover_mean(right: NDArray[np.int32], value: Floats, weight: Floats) -> Floats:
    """Return node values in which every split has the cover-weighted mean of the leaves below it.

    Boosting libraries store another quantity at their splits, or none. If the cover below a split is zero, all its
    leaves count equally.

    Parameters
    ----------
    right : (n_nodes,)
        Right child of each node, -1 at a leaf; nodes in preorder.
    value : (n_nodes, width)
    weight : (n_nodes,)
        Cover of each node: the training weight that reached it.
    """
    is_leaf, width = (right == -1)[:, None], value.shape[1]
    cover = np.maximum(weight, 0.0)[:, None]
    # Sums over leaves with cover, over those without, and their number. Rows of zero cover must not become NaN.
    sums = np.hstack(
        [np.where(cover > 0, cover * value, 0.0), np.where(cover > 0, 0.0, value), cover, np.ones_like(cover)]
    )
    sums[~is_leaf[:, 0]] = 0.0
    kernels.roll_up(right, sums)
    covered, uncovered, cover, n_leaves = np.split(sums, [width, 2 * width, 2 * width + 1], axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(cover > 0, covered / cover, uncovered / n_leaves)
    return np.where(is_leaf, value, mean)
