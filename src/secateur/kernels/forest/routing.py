"""Route rows to leaves and sum leaf values over trees."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from secateur.kernels._jit import fused, kernel

_LANES = 8


class SplitArrays(NamedTuple):
    """The splits of a forest, each (n_nodes,); a split routes a row left if `x <= threshold`.

    Attributes
    ----------
    right : int32 or int64
        The right child, −1 at a leaf; the left child is the next node.
    feature : int32
    threshold : float64
    default_left : bool
        Whether missing values are routed left.
    """

    right: NDArray[np.signedinteger]
    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    default_left: NDArray[np.bool_]


class CategoryLists(NamedTuple):
    """The categorical splits of a forest, with the attributes of `secateur.forest.Categories`."""

    row: NDArray[np.int32]
    start: NDArray[np.int64]
    code: NDArray[np.int32]
    left: NDArray[np.bool_]
    other_left: NDArray[np.bool_]


@kernel
def route_numeric(X: np.ndarray, tree_start: np.ndarray, splits: SplitArrays, leaves: np.ndarray) -> None:
    """Write to `leaves[t, i]` the leaf that row i reaches in tree t, counted from the root of the tree.

    Eight rows descend together, so that their memory loads overlap. A row that has reached its leaf stays there, which
    avoids unpredictable branches. Unsigned indices avoid the check for negative ones.
    """
    right, feature, threshold, default_left = splits
    n_rows, one = X.shape[0], np.uint64(1)
    at = np.empty(_LANES, np.uint64)
    row = np.empty(_LANES, np.uint64)
    for tree in range(tree_start.shape[0] - 1):
        root = np.uint64(tree_start[tree])
        for first in range(0, n_rows, _LANES):
            for lane in range(_LANES):
                at[lane] = root
                # The last lanes may repeat the last row.
                row[lane] = np.uint64(min(first + lane, n_rows - 1))
            moving = True
            # Invariant: after k rounds at[lane] is the node at depth k on the row's path, or the leaf above it.
            while moving:
                moving = False
                for lane in range(_LANES):
                    v = at[lane]
                    split = right[v] != -1
                    x = X[row[lane], np.uint32(max(feature[v], 0))]
                    left = (x <= threshold[v]) | (default_left[v] & (x != x))
                    below = v + one if left else np.uint64(right[v])
                    at[lane] = below if split else v
                    moving |= split
            for lane in range(_LANES):
                leaves[tree, row[lane]] = at[lane] - root


@kernel
def route_categorical(
    X: np.ndarray, tree_start: np.ndarray, splits: SplitArrays, categories: CategoryLists, leaves: np.ndarray
) -> None:
    """Route rows like `route_numeric` in forests with categorical splits, one row at a time."""
    right = splits.right
    for tree in range(tree_start.shape[0] - 1):
        root = tree_start[tree]
        for i in range(X.shape[0]):
            v = root
            while right[v] != -1:
                x = X[i, splits.feature[v]]
                row = categories.row[v]
                if np.isnan(x):
                    left = splits.default_left[v]
                elif row == -1:
                    left = x <= splits.threshold[v]
                else:
                    left = category_goes_left(x, row, categories)
                v = v + 1 if left else right[v]
            leaves[tree, i] = v - root


@kernel
def category_goes_left(x: float, row: int, categories: CategoryLists) -> bool:
    """Return whether the list of categories with index `row` routes the value x to the left."""
    category = np.trunc(x)
    low, high = categories.start[row], categories.start[row + 1]
    # Invariant of the bisection: codes before `low` are smaller than the category, codes from `high` on are not.
    while low < high:
        middle = (low + high) // 2
        if categories.code[middle] < category:
            low = middle + 1
        else:
            high = middle
    if low < categories.start[row + 1] and categories.code[low] == category:
        return categories.left[low]
    return categories.other_left[row]


@kernel
def lift(parent: np.ndarray, keep: np.ndarray) -> np.ndarray:
    """Return the nearest kept node at or above every node, -1 in a dropped tree, (n_nodes,)."""
    nearest = np.empty(parent.shape[0], np.int32)
    # Invariant: nearest[u] is final for all nodes u before v, which includes the parent of v.
    for v in range(parent.shape[0]):
        if keep[v]:
            nearest[v] = v
        else:
            nearest[v] = nearest[parent[v]] if parent[v] != -1 else -1
    return nearest


@kernel
def lift_to_kept(parent: np.ndarray, keep: np.ndarray) -> np.ndarray:
    """Return the number, among the kept nodes, of the nearest kept node at or above every node, (n_nodes,).

    The number is -1 for the nodes of a dropped tree.
    """
    number = np.empty(parent.shape[0], np.int32)
    n_kept = 0
    # Invariant: number[u] is final for all nodes u before v, which includes the parent of v.
    for v in range(parent.shape[0]):
        if keep[v]:
            number[v] = n_kept
            n_kept += 1
        else:
            number[v] = number[parent[v]] if parent[v] != -1 else -1
    return number


@kernel
def add_trees(
    leaves: np.ndarray,
    tree_start: np.ndarray,
    lifted: np.ndarray,
    value: np.ndarray,
    tree_weight: np.ndarray,
    tree_output: np.ndarray,
    voters: np.ndarray,
    out: np.ndarray,
) -> None:
    """Add to `out[i]` the weighted value of the node that row i reaches in each tree, in the order of the trees.

    `lifted` maps each leaf to the kept node at or above it. `voters[t, i]` is whether tree t contributes to row i; an
    empty array means that all trees do. The order of the additions is that of the model's library, and every term is
    rounded to the type of `out` first, so that the sums match the library's bit for bit.
    """
    n_trees, n_rows = leaves.shape
    rounded = out.dtype.type
    all_vote = voters.shape[0] == 0
    for tree in range(n_trees):
        start, weight, output = np.uint64(tree_start[tree]), tree_weight[tree], tree_output[tree]
        if lifted[start] == -1:
            continue
        for i in range(n_rows):
            if all_vote or voters[tree, i]:
                v = np.uint64(lifted[start + np.uint64(leaves[tree, i])])
                if output >= 0:
                    out[i, output] += rounded(weight * value[v, 0])
                else:
                    for k in range(out.shape[1]):
                        out[i, k] += rounded(weight * value[v, k])


@kernel
def add_trees_by_fours(
    leaves: np.ndarray,
    tree_start: np.ndarray,
    lifted: np.ndarray,
    value: np.ndarray,
    tree_weight: np.ndarray,
    out: np.ndarray,
) -> None:
    """Sum trees like `add_trees` for one output, in the order of Java's `ddot`.

    Four interleaved partial sums accumulate the products by fused multiply-add. Then the partial sums are added, and
    after them the products of the remaining one to three trees.
    """
    kept_trees = [tree for tree in range(leaves.shape[0]) if lifted[tree_start[tree]] != -1]
    n_trees = len(kept_trees)
    partial = np.zeros(4)
    for i in range(leaves.shape[1]):
        partial[:] = 0.0
        total = 0.0
        for position in range(n_trees):
            tree = kept_trees[position]
            x = value[lifted[tree_start[tree] + leaves[tree, i]], 0]
            if position < n_trees - n_trees % 4:
                partial[position % 4] = fused(x, tree_weight[tree], partial[position % 4])
                if position == n_trees - n_trees % 4 - 1:
                    total = partial[0] + partial[1] + partial[2] + partial[3]
            else:
                total += x * tree_weight[tree]
        out[i, 0] += total
