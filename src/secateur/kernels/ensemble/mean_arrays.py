"""Define the arrays that the kernels of a mean of trees share: rows, trees, range of values, variables and buffers."""

from typing import NamedTuple

import numpy as np

ABSENT, SPLIT, LEAF = 0, 1, 2


class MeanRows(NamedTuple):
    """The rows: leaves (n_trees, n_rows) counted from the root, weight (n_rows,), target (n_rows, n_outputs)."""

    leaves: np.ndarray
    weight: np.ndarray
    target: np.ndarray


class MeanTrees(NamedTuple):
    """The trees: start (n_trees + 1,); by node right, the sums of w, w y and w |y|², the original value and prices.

    `order` (n_nodes,) has the leaves before the splits, and `sign` (n_nodes, n_outputs) the monotonic constraints at
    splits, both as in `secateur.kernels.ensemble.arrays.Trees`.
    """

    start: np.ndarray
    right: np.ndarray
    order: np.ndarray
    weight: np.ndarray
    target: np.ndarray
    target_square: np.ndarray
    original: np.ndarray
    as_leaf: np.ndarray
    as_split: np.ndarray
    sign: np.ndarray


class Range(NamedTuple):
    """The set C of leaf values.

    `center`, `low` and `high` have one entry per output. `block` has the bounds of the outputs of each target whose
    values form a probability simplex; without blocks the values lie between `low` and `high`.
    """

    center: np.ndarray
    low: np.ndarray
    high: np.ndarray
    block: np.ndarray


class MeanArrays(NamedTuple):
    """The variables, updated in place.

    score : (n_rows, n_outputs), the prediction F; score_target, score_square : (n_rows,), F·y and |F|²; status :
    (n_nodes,) int8; value : (n_nodes, n_outputs), repeated at the nodes below a leaf; deviation : (n_trees,),
    Σ_leaves |value − center|²; size : (1,), the number of trees in use; entry : (n_trees,), an estimate of the largest
    penalty at which a dropped tree would enter, infinite where it is not known.
    """

    score: np.ndarray
    score_target: np.ndarray
    score_square: np.ndarray
    status: np.ndarray
    value: np.ndarray
    deviation: np.ndarray
    size: np.ndarray
    entry: np.ndarray


class MeanProblem(NamedTuple):
    """What an update minimises besides the loss, and what it may change.

    `keep_values` keeps the original values, `frozen` keeps the splits in use. An update is accepted if it gains more
    than `tolerance`. Trees that stay dropped are tested for entry at `screening` times the penalty, unless that is 0.
    """

    penalty: float
    ridge: float
    keep_values: bool
    frozen: bool
    tolerance: float
    screening: float = 0.0


class MeanScratch(NamedTuple):
    """Buffers for the nodes of one tree.

    Let f be the prediction without the tree. `sums` (n, n_outputs), `with_target` and `square` (n,) are the sums of
    w f, w f·y and w |f|² over the rows at a node; `fit` (n, n_outputs) the fitted values times 1/m; `cost` (n,) the
    cost of the best subtree; `choice` (n,) int8 its root; `low` and `high` (n, n_outputs) the bounds that monotonic
    constraints set for the value of a node, without rows if there are none.
    """

    sums: np.ndarray
    with_target: np.ndarray
    square: np.ndarray
    fit: np.ndarray
    cost: np.ndarray
    choice: np.ndarray
    low: np.ndarray
    high: np.ndarray
