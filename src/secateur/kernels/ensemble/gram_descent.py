"""Sweep over the depths of trees by block coordinate descent on the Gram matrix of their layers.

Column c is one layer of one tree: the change in every row's prediction from cutting the tree below this layer instead
of above it. The columns of a tree are consecutive from layer 1 down, so a tree cut at depth d is the sum of its first d
columns. The state of an ensemble is `cut`, the depth of each tree (−1 for a dropped one), and `neg_gradient`, the inner
product of each column with the current residual.

References
----------
Liu and Mazumder (2023), ForestPrune: compact depth-pruned tree ensembles, AISTATS. Problems (1) and (4); the columns
are those of the depth-difference matrices of section 2.1, without the root.
"""

import numpy as np

from secateur.kernels._jit import kernel


@kernel
def layer_steps(
    leaves: np.ndarray,
    first: int,
    tree_start: np.ndarray,
    column_start: np.ndarray,
    parent: np.ndarray,
    depth: np.ndarray,
    original: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write the columns of row `first + i` to `out[i]`: the differences along its paths, 0 below its leaves.

    `original`, (n_nodes,), is the contribution of a node as a leaf.
    """
    out[:] = 0.0
    for tree in range(leaves.shape[0]):
        start, above = tree_start[tree], column_start[tree] - 1
        for i in range(out.shape[0]):
            v = start + np.int64(leaves[tree, first + i])
            while parent[v] != -1:
                out[i, above + depth[v]] = original[v] - original[parent[v]]
                v = np.int64(parent[v])


@kernel
def sweep_layers(
    gram: np.ndarray,
    column_start: np.ndarray,
    price: np.ndarray,
    may_change: np.ndarray,
    cut: np.ndarray,
    neg_gradient: np.ndarray,
    penalty: float,
    first: int,
    tolerance: float,
) -> tuple:
    """Update the depth of every tree with `may_change` once; return the number of trees changed, and the gain.

    Updates `cut` and `neg_gradient` in place. `price[column_start[t] + t + d]` is the price of tree t cut at depth d.
    An update is accepted if it gains more than `tolerance`; ties go to the smallest depth. An update takes O(depth²),
    and O(columns) per layer added or removed.
    """
    n_trees = cut.shape[0]
    changed, total = 0, 0.0
    # Loop invariant: neg_gradient is the inner product of the columns with the residual of the current cuts.
    for position in range(n_trees):
        tree = (first + position) % n_trees
        if may_change[tree]:
            depth, gain = _best_depth(tree, gram, column_start, price, cut, neg_gradient, penalty)
            if gain > tolerance:
                move_cut(tree, depth, gram, column_start, cut, neg_gradient)
                total += gain
                changed += 1
    return changed, total


@kernel
def _best_depth(
    tree: int,
    gram: np.ndarray,
    column_start: np.ndarray,
    price: np.ndarray,
    cut: np.ndarray,
    neg_gradient: np.ndarray,
    penalty: float,
) -> tuple:
    """Return the optimal depth of a tree given all others (−1 to drop it), and the gain over the current depth."""
    start, deepest = column_start[tree], column_start[tree + 1] - column_start[tree]
    best, least, current, loss = -1, 0.0, 0.0, 0.0
    for d in range(deepest + 1):
        if d > 0:
            # The residual here is that of the other trees and of this tree's first d − 1 layers. Invariant: `loss` is
            # the change in squared error from adding the first d layers of this tree to the other trees.
            c = start + d - 1
            inner = neg_gradient[c]
            for j in range(d - 1, cut[tree]):
                inner += gram[c, start + j]
            for j in range(max(cut[tree], 0), d - 1):
                inner -= gram[c, start + j]
            loss += gram[c, c] - 2.0 * inner
        cost = loss + penalty * price[start + tree + d]
        if d == cut[tree]:
            current = cost
        if cost < least:
            best, least = d, cost
    return best, current - least


@kernel
def move_cut(
    tree: int, depth: int, gram: np.ndarray, column_start: np.ndarray, cut: np.ndarray, neg_gradient: np.ndarray
) -> None:
    """Cut a tree at another depth, −1 to drop it; update `cut` and `neg_gradient`."""
    for j in range(max(cut[tree], 0), max(depth, 0)):
        neg_gradient -= gram[column_start[tree] + j]
    for j in range(max(depth, 0), max(cut[tree], 0)):
        neg_gradient += gram[column_start[tree] + j]
    cut[tree] = depth
