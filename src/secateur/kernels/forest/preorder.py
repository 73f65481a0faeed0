"""The shape of binary trees: preorder, subtree ends, parents and depths.

All but `preorder` work on a preorder forest, where the left child of a split `v` is `v + 1` and its right child
is `right[v]`; `right[v] == -1` marks a leaf.
"""

import numpy as np

from secateur.kernels._jit import kernel


@kernel
def preorder(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the nodes reachable from node 0 in preorder, left before right.

    `left` and `right` are int64 node ids of any layout, -1 at a leaf. A node that would be visited twice, or a
    child out of range, gives an empty array: the arrays are not a tree.
    """
    n = left.shape[0]
    order = np.empty(n, np.int64)
    stack = np.empty(n + 2, np.int64)  # one node leaves and two enter per node visited, each at most once
    seen = np.zeros(n, np.bool_)
    top, count = 0, 0
    stack[0] = 0
    while top >= 0:
        v = stack[top]
        top -= 1
        if v < 0 or v >= n or seen[v]:
            return np.empty(0, np.int64)
        seen[v] = True
        order[count] = v
        count += 1
        if left[v] != -1:
            stack[top + 1] = right[v]
            stack[top + 2] = left[v]
            top += 2
    return order[:count]


@kernel
def subtree_end(tree_start: np.ndarray, right: np.ndarray, end: np.ndarray) -> int:
    """Fill `end[v]`, one past the last node below `v`; return -1, or a node where the preorder is broken."""
    for tree in range(tree_start.shape[0] - 1):
        first, stop = tree_start[tree], tree_start[tree + 1]
        for v in range(stop - 1, first - 1, -1):
            if right[v] == -1:
                end[v] = v + 1
            elif right[v] <= v + 1 or right[v] >= stop or end[v + 1] != right[v]:
                return v
            else:
                end[v] = end[right[v]]
        if end[first] != stop:
            return first
    return -1


@kernel
def tree_parent(tree_start: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the parent of every node, -1 at a root."""
    parent = np.empty(right.shape[0], np.int32)
    for tree in range(tree_start.shape[0] - 1):
        parent[tree_start[tree]] = -1
    for v in range(right.shape[0]):
        if right[v] != -1:
            parent[v + 1] = v
            parent[right[v]] = v
    return parent


@kernel
def tree_depth(parent: np.ndarray) -> np.ndarray:
    """Return the depth of every node, 0 at a root."""
    depth = np.zeros(parent.shape[0], np.int32)
    for v in range(parent.shape[0]):
        if parent[v] != -1:
            depth[v] = depth[parent[v]] + 1
    return depth


@kernel
def replacements(right: np.ndarray, keep: np.ndarray, replacement: np.ndarray) -> int:
    """Fill `replacement[v]`, the kept node at the top of what stays of the subtree at v, -1 if nothing stays.

    A dropped node of which one side stays is replaced by that side. Return -1, or a node where the mask is broken: a
    kept node that loses just one side, or a dropped one that would keep both.
    """
    for v in range(right.shape[0] - 1, -1, -1):
        left_stays, right_stays = -1, -1
        if right[v] != -1:
            left_stays, right_stays = replacement[v + 1], replacement[right[v]]
        if keep[v]:
            if (left_stays == -1) != (right_stays == -1):
                return v
            replacement[v] = v
        else:
            if left_stays != -1 and right_stays != -1:
                return v
            replacement[v] = left_stays if left_stays != -1 else right_stays
    return -1


@kernel
def sum_down(parent: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return for every node the sum of `w` over it and all nodes above it, (n_nodes,)."""
    sums = np.empty(w.shape[0])
    for v in range(w.shape[0]):
        sums[v] = w[v] + (sums[parent[v]] if parent[v] != -1 else 0.0)
    return sums


@kernel
def keeps_levels(tree_start: np.ndarray, depth: np.ndarray, keep: np.ndarray) -> bool:
    """Return whether every level of every tree stays or goes as a whole."""
    first = np.empty(depth.shape[0] + 1, np.int64)  # the first node of each level of the tree
    for tree in range(tree_start.shape[0] - 1):
        n_levels = 0
        for v in range(tree_start[tree], tree_start[tree + 1]):
            if depth[v] == n_levels:
                first[n_levels] = v
                n_levels += 1
            elif keep[v] != keep[first[depth[v]]]:
                return False
    return True


@kernel
def complete_trees(depth: np.ndarray, right: np.ndarray, question: np.ndarray, leaf: np.ndarray) -> None:
    """Fill in complete trees of some depths, one behind the other in preorder.

    `question` gets the place of a split's level among the levels of all trees, -1 at a leaf. `leaf` gets the place of a
    leaf among the leaves of all trees, where bit i says whether it lies right at level i; -1 at a split.
    """
    root, first_level, first_leaf = 0, 0, 0
    for d in depth:
        end = root + 2 ** (d + 1) - 1
        question[root], leaf[root] = first_level, first_leaf
        for v in range(root, end):
            level = question[v] - first_level
            if level == d:
                right[v], question[v] = -1, -1
                continue
            other = v + 2 ** (d - level)
            right[v] = other
            question[v + 1] = question[other] = question[v] + 1
            leaf[v + 1], leaf[other] = leaf[v], leaf[v] + 2**level
            leaf[v] = -1
        root = end
        first_level += d
        first_leaf += 2**d
