"""Compute the preorder, subtree ends, parents and depths of binary trees.

All functions but `preorder` and `complete_trees` take a forest in preorder: the left child of a split `v` is `v + 1`,
its right child is `right[v]`, and `right[v] == -1` marks a leaf.
"""

import numpy as np

from secateur.kernels._jit import kernel


@kernel
def preorder(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the nodes reachable from node 0 in preorder, left before right.

    `left` and `right` are int64 node ids in any layout, -1 at a leaf. If a node would be visited twice or a child is
    out of range, the arrays are not a tree and the result is empty.
    """
    n = left.shape[0]
    order = np.empty(n, np.int64)
    # Each visit removes one node and adds at most two, and a node is expanded at most once.
    stack = np.empty(n + 2, np.int64)
    seen = np.zeros(n, np.bool_)
    top, count = 0, 0
    stack[0] = 0
    # Invariant: order[:count] is the preorder of the visited nodes, and stack[:top + 1] holds their unvisited children,
    # the next one on top.
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
    """Fill `end[v]`, one past the last node below `v`; return -1, or a node that violates the preorder."""
    for tree in range(tree_start.shape[0] - 1):
        first, stop = tree_start[tree], tree_start[tree + 1]
        # Invariant: end[u] is final for all nodes u after v in this tree.
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


def tree_parent(right: np.ndarray) -> np.ndarray:
    """Return the parent of every node, -1 at a root. This needs no loop and is not compiled."""
    parent = np.full(right.shape[0], -1, np.int32)
    splits = np.flatnonzero(right != -1)
    parent[splits + 1] = parent[right[splits]] = splits
    return parent


@kernel
def tree_depth(parent: np.ndarray) -> np.ndarray:
    """Return the depth of every node, 0 at a root."""
    depth = np.zeros(parent.shape[0], np.int32)
    # Invariant: depth[u] is final for all nodes u before v, which includes the parent of v.
    for v in range(parent.shape[0]):
        if parent[v] != -1:
            depth[v] = depth[parent[v]] + 1
    return depth


@kernel
def replacements(right: np.ndarray, keep: np.ndarray, replacement: np.ndarray) -> int:
    """Fill `replacement[v]`, the root of the kept part of the subtree at v, -1 if nothing is kept.

    A dropped node with one kept child subtree is replaced by that subtree. Return -1, or a node at which the mask is
    invalid: a kept node with exactly one kept child subtree, or a dropped node with two.
    """
    # Invariant: `replacement` is final for all nodes after v.
    for v in range(right.shape[0] - 1, -1, -1):
        kept_left, kept_right = -1, -1
        if right[v] != -1:
            kept_left, kept_right = replacement[v + 1], replacement[right[v]]
        if keep[v]:
            if (kept_left == -1) != (kept_right == -1):
                return v
            replacement[v] = v
        else:
            if kept_left != -1 and kept_right != -1:
                return v
            replacement[v] = kept_left if kept_left != -1 else kept_right
    return -1


@kernel
def sum_down(parent: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return the sum of `w` over each node and all its ancestors, (n_nodes,)."""
    sums = np.empty(w.shape[0])
    # Invariant: sums[u] is final for all nodes u before v, which includes the parent of v.
    for v in range(w.shape[0]):
        sums[v] = w[v] + (sums[parent[v]] if parent[v] != -1 else 0.0)
    return sums


@kernel
def keeps_levels(tree_start: np.ndarray, depth: np.ndarray, keep: np.ndarray) -> bool:
    """Return whether `keep` keeps or drops every level of every tree as a whole."""
    # The first node of each level of the current tree; in preorder a level is met before any deeper one.
    first = np.empty(depth.shape[0] + 1, np.int64)
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
def complete_trees(depth: np.ndarray, right: np.ndarray, split_level: np.ndarray, leaf: np.ndarray) -> None:
    """Fill in complete trees of the given depths, one after the other in preorder.

    `split_level` is set to the index of a split's level among the levels of all trees, -1 at a leaf. `leaf` is set to
    the index of a leaf among the leaves of all trees, -1 at a split. Bit i of the index within a tree is 1 if the leaf
    is in the right branch at level i.
    """
    root, first_level, first_leaf = 0, 0, 0
    for d in depth:
        end = root + 2 ** (d + 1) - 1
        split_level[root], leaf[root] = first_level, first_leaf
        # Invariant: split_level[v] and leaf[v] hold the level of v and the path from the root when v is visited.
        for v in range(root, end):
            level = split_level[v] - first_level
            if level == d:
                right[v], split_level[v] = -1, -1
                continue
            other = v + 2 ** (d - level)
            right[v] = other
            split_level[v + 1] = split_level[other] = split_level[v] + 1
            leaf[v + 1], leaf[other] = leaf[v], leaf[v] + 2**level
            leaf[v] = -1
        root = end
        first_level += d
        first_leaf += 2**d
