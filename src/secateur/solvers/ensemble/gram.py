"""Compute the Gram matrix of the tree layers, the sufficient statistics of squared error for depth pruning.

Gram matrices are sums over rows, so those of several partitions can be added. Column c is one layer of one tree, as in
`secateur.kernels.ensemble.gram_descent`: the change in a row's prediction from cutting the tree below this layer
instead of above it. These are the columns of ForestPrune's depth-difference matrices (section 2.1), without the root.

References
----------
Liu and Mazumder (2023), ForestPrune: compact depth-pruned tree ensembles, AISTATS.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.data.rows import LocalRows
from secateur.errors import InvalidInputError, UnsupportedModelError
from secateur.forest import Forest
from secateur.forest.node_sums import node_weight
from secateur.solvers.ensemble.additive_model import as_numbers, not_quadratic, original_contributions, starts

Floats = NDArray[np.float64]
_CHUNK = 2**22
"""Maximum number of entries of a chunk of rows by columns."""


@dataclass(frozen=True, eq=False)
class Gram:
    """Sufficient statistics of squared error: sums over rows, with the row weights as given.

    Two of the same forest can be added. Below, a and b are the values of two columns for one output of a row, and the
    rest is target − start − shift.

    Attributes
    ----------
    inner : (n_columns, n_columns)
        Σ weight · a · b, over rows and outputs.
    match : (n_columns,)
        Σ weight · a · rest, over rows and outputs.
    added : (n_columns, n_outputs)
        Σ weight · a.
    rest : (n_outputs,)
        Σ weight · rest.
    square : float
        Σ weight · rest², over rows and outputs.
    reach : (n_nodes,)
        Row weight at each node.
    weight : float
        Total row weight.
    shift : (n_outputs,)
        The prediction of the forest cut to its roots. It is subtracted from the target to avoid cancellation in the
        sums of squares.
    """

    inner: Floats
    match: Floats
    added: Floats
    rest: Floats
    square: float
    reach: Floats
    weight: float
    shift: Floats

    def __add__(self, other: "Gram") -> "Gram":
        """Return the statistics of the rows of both."""
        if self.inner.shape != other.inner.shape or not np.array_equal(self.shift, other.shift):
            raise InvalidInputError(
                f"The Gram matrices have {len(self.inner)} and {len(other.inner)} layers and root predictions "
                f"{self.shift} and {other.shift}, so they belong to different forests. Add Gram matrices of the same "
                "forest."
            )
        return Gram(
            self.inner + other.inner,
            self.match + other.match,
            self.added + other.added,
            self.rest + other.rest,
            self.square + other.square,
            self.reach + other.reach,
            self.weight + other.weight,
            self.shift,
        )


def no_gram(forest: Forest) -> str | None:
    """Return why the loss of a model is not a function of the Gram matrix, or None if it is."""
    reason = not_quadratic(forest)
    return reason and f"{reason}Use engine='rows' or weakest_link."


def gram_of(forest: Forest, sample: LocalRows) -> Gram:
    """Return the statistics of some rows, possibly none.

    The rows are processed in chunks of at most 2²² entries. Takes O(rows · columns²) time per output and memory for
    columns² floats.

    Raises
    ------
    UnsupportedModelError
        If the model is not additive or its loss is not squared error.
    """
    reason = no_gram(forest)
    if reason:
        raise UnsupportedModelError(f"Cannot compute the Gram matrix of this model: {reason}")
    first_column = columns(forest)
    n_columns, original, shift = int(first_column[-1]), original_contributions(forest), _root_prediction(forest)
    target = as_numbers(forest, sample.y) - starts(forest, sample) - shift
    inner, match = np.zeros((n_columns, n_columns)), np.zeros((n_columns, forest.n_outputs))
    added = np.zeros((n_columns, forest.n_outputs))
    step = max(_CHUNK // max(n_columns, 1), 1)
    for first in range(0, len(sample), step):
        root_weight = np.sqrt(sample.weight[first : first + step, None])
        weighted = root_weight * target[first : first + step]
        steps = np.empty((len(weighted), n_columns))
        for k in range(original.shape[1]):
            outputs = slice(None) if original.shape[1] == 1 else slice(k, k + 1)
            kernels.layer_steps(
                sample.leaves,
                first,
                forest.tree_start,
                first_column,
                forest.parent,
                forest.depth,
                np.ascontiguousarray(original[:, k]),
                steps,
            )
            steps *= root_weight
            inner += steps.T @ steps
            match[:, outputs] += steps.T @ weighted[:, outputs]
            added[:, outputs] += steps.T @ root_weight
    output_mask = _output_mask(forest, first_column)
    if original.shape[1] < forest.n_outputs:
        inner *= output_mask @ output_mask.T
    return Gram(
        inner,
        (match * output_mask).sum(axis=1),
        added * output_mask,
        sample.weight @ target,
        float(sample.weight @ (target**2).sum(axis=1)),
        node_weight(forest, sample.leaves, sample.weight),
        float(sample.weight.sum()),
        shift,
    )


def columns(forest: Forest) -> NDArray[np.int64]:
    """Return the first column of each tree, followed by the number of columns, (n_trees + 1,)."""
    deepest = np.maximum.reduceat(forest.depth, forest.root) if forest.n_trees else np.empty(0, np.int32)
    return np.concatenate([[0], np.cumsum(deepest)]).astype(np.int64)


def _output_mask(forest: Forest, first_column: NDArray[np.int64]) -> Floats:
    """Return 1 where a column contributes to an output, else 0, (n_columns, n_outputs)."""
    output = np.repeat(forest.tree_output, np.diff(first_column))[:, None]
    return ((output < 0) | (output == np.arange(forest.n_outputs))).astype(np.float64)


def _root_prediction(forest: Forest) -> Floats:
    """Return the prediction of the model with every tree cut to its root, (n_outputs,)."""
    prediction = forest.base.copy()
    for tree, output in enumerate(forest.tree_output.tolist()):
        value = forest.tree_weight[tree] * forest.value[forest.root[tree]]
        if output < 0:
            prediction += value
        else:
            prediction[output] += value[0]
    return prediction / forest.divisor
