"""Descent over the depths of trees that sees the rows only through inner products of what the layers add.

Column c is one layer of one tree: what cutting the tree below this layer, instead of above it, adds to every row. The
columns of a tree follow each other from layer 1 down, so a tree cut at depth d is the sum of its first d columns. The
state of an ensemble: `cut`, the depth of each tree, −1 for a dropped one, and for each column its `neg_gradient`, the
inner product with what is left of the target.
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
    """Write to `out[i]` what every layer of every tree adds to row `first + i`; 0 below the leaf of the row.

    `original` (n_nodes,) is what a node adds as a leaf.
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
    """Give every tree that may change its best depth, once; return how many did change, and the gain.

    Changes `cut` and `neg_gradient`. `price[column_start[t] + t + d]` is what tree t costs when cut at depth d. An
    update must gain more than `tolerance`; of equally good depths the smallest is taken. O(depth²) per update, and
    O(columns) per layer that comes or goes.
    """
    n_trees = cut.shape[0]
    changed, total = 0, 0.0
    for place in range(n_trees):
        tree = (first + place) % n_trees
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
    """Return the depth at which a tree costs the least, −1 to drop it, and by how much less than now."""
    start, deepest = column_start[tree], column_start[tree + 1] - column_start[tree]
    best, least, now, loss = -1, 0.0, 0.0, 0.0
    for d in range(deepest + 1):
        if d > 0:
            # Layer d wants its gradient, with this tree taken out of the sum and the layers above put back in.
            c = start + d - 1
            wanted = neg_gradient[c]
            for j in range(d - 1, cut[tree]):
                wanted += gram[c, start + j]
            for j in range(max(cut[tree], 0), d - 1):
                wanted -= gram[c, start + j]
            loss += gram[c, c] - 2.0 * wanted
        cost = loss + penalty * price[start + tree + d]
        if d == cut[tree]:
            now = cost
        if cost < least:
            best, least = d, cost
    return best, now - least


@kernel
def move_cut(
    tree: int, depth: int, gram: np.ndarray, column_start: np.ndarray, cut: np.ndarray, neg_gradient: np.ndarray
) -> None:
    """Cut a tree at another depth, −1 to drop it."""
    for j in range(max(cut[tree], 0), max(depth, 0)):
        neg_gradient -= gram[column_start[tree] + j]
    for j in range(max(depth, 0), max(cut[tree], 0)):
        neg_gradient += gram[column_start[tree] + j]
    cut[tree] = depth
