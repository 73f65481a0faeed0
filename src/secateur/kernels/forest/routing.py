"""Rows to leaves, and leaves to sums of values."""

import numpy as np

from secateur.kernels._jit import fused, kernel

_LANES = 8


@kernel
def route_numeric(
    X: np.ndarray,
    tree_start: np.ndarray,
    right: np.ndarray,
    feature: np.ndarray,
    threshold: np.ndarray,
    default_left: np.ndarray,
    leaves: np.ndarray,
) -> None:
    """Write to `leaves[t, i]` the node, counted from the root of tree t, in which row i ends.

    Eight rows go down together: their loads do not wait for each other, and a row that has arrived stays where it is,
    so there is no jump the processor would have to guess. Unsigned indices spare a test for negative ones.
    """
    n_rows, one = X.shape[0], np.uint64(1)
    at = np.empty(_LANES, np.uint64)
    row = np.empty(_LANES, np.uint64)
    for tree in range(tree_start.shape[0] - 1):
        root = np.uint64(tree_start[tree])
        for first in range(0, n_rows, _LANES):
            for lane in range(_LANES):
                at[lane] = root
                row[lane] = np.uint64(min(first + lane, n_rows - 1))  # the last lanes may repeat the last row
            moving = True
            while moving:  # after k rounds at[lane] is the node at depth k, or the leaf above it
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
    X: np.ndarray,
    tree_start: np.ndarray,
    right: np.ndarray,
    feature: np.ndarray,
    threshold: np.ndarray,
    default_left: np.ndarray,
    category_row: np.ndarray,
    category_start: np.ndarray,
    category_code: np.ndarray,
    category_left: np.ndarray,
    other_left: np.ndarray,
    leaves: np.ndarray,
) -> None:
    """Do what `route_numeric` does where some splits look for a category in a sorted list, row by row.

    `category_row` gives per node the row of the category lists, or -1.
    """
    for tree in range(tree_start.shape[0] - 1):
        root = tree_start[tree]
        for i in range(X.shape[0]):
            v = root
            while right[v] != -1:
                x = X[i, feature[v]]
                row = category_row[v]
                if np.isnan(x):
                    left = default_left[v]
                elif row == -1:
                    left = x <= threshold[v]
                else:
                    left = category_goes_left(x, row, category_start, category_code, category_left, other_left)
                v = v + 1 if left else right[v]
            leaves[tree, i] = v - root


@kernel
def category_goes_left(
    x: float,
    row: int,
    category_start: np.ndarray,
    category_code: np.ndarray,
    category_left: np.ndarray,
    other_left: np.ndarray,
) -> bool:
    """Return whether a value goes left by the list of categories numbered `row`."""
    category = np.trunc(x)
    low, high = category_start[row], category_start[row + 1]
    while low < high:  # the code, if it is listed, is in [low, high)
        middle = (low + high) // 2
        if category_code[middle] < category:
            low = middle + 1
        else:
            high = middle
    if low < category_start[row + 1] and category_code[low] == category:
        return category_left[low]
    return other_left[row]


@kernel
def lift(parent: np.ndarray, keep: np.ndarray) -> np.ndarray:
    """Return for every node its nearest kept ancestor or itself, -1 in a dropped tree."""
    to = np.empty(parent.shape[0], np.int32)
    for v in range(parent.shape[0]):
        if keep[v]:
            to[v] = v
        else:
            to[v] = to[parent[v]] if parent[v] != -1 else -1
    return to


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
    """Add to `out[i]` the weighted value of the node each tree sends row i to, trees in order.

    `lifted` names the node that speaks for a leaf; `voters[t, i]` says whether tree t may speak for row i, and is empty
    if all may. The order of the additions is the libraries' own and every term is rounded to the type of `out` first,
    so that the sums agree with theirs to the last bit.
    """
    n_trees, n_rows = leaves.shape
    rounded = out.dtype.type
    everyone = voters.shape[0] == 0
    for tree in range(n_trees):
        start, weight, output = np.uint64(tree_start[tree]), tree_weight[tree], tree_output[tree]
        if lifted[start] == -1:
            continue
        for i in range(n_rows):
            if everyone or voters[tree, i]:
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
    """Do what `add_trees` does for one output in the order of Java's `ddot`.

    Four sums take turns, each product added without being rounded first; then they are added, and after them the one to
    three trees that are left.
    """
    standing = [tree for tree in range(leaves.shape[0]) if lifted[tree_start[tree]] != -1]
    n_trees = len(standing)
    four = np.zeros(4)
    for i in range(leaves.shape[1]):
        four[:] = 0.0
        total = 0.0
        for place in range(n_trees):
            tree = standing[place]
            x = value[lifted[tree_start[tree] + leaves[tree, i]], 0]
            if place < n_trees - n_trees % 4:
                four[place % 4] = fused(x, tree_weight[tree], four[place % 4])
                if place == n_trees - n_trees % 4 - 1:
                    total = four[0] + four[1] + four[2] + four[3]
            else:
                total += x * tree_weight[tree]
        out[i, 0] += total
