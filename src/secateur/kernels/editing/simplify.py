"""Find the nodes that no row can reach, and merge sibling leaves with equal values.

Numbers are represented by ranks: order-preserving integers of the floats of the forest's input dtype, neighbours one
apart. So the numbers that a split routes to one side form a closed interval of ranks, and an interval that contains no
float is empty.
"""

import numpy as np

from secateur.kernels._jit import kernel


@kernel
def reachable(
    tree_start: np.ndarray,
    right: np.ndarray,
    parent: np.ndarray,
    end: np.ndarray,
    feature: np.ndarray,
    last_left: np.ndarray,
    numeric: np.ndarray,
    default_left: np.ndarray,
    limits: tuple[int, int],
    n_features: int,
    max_depth: int,
) -> np.ndarray:
    """Return the mask of the nodes that some row can reach, (n_nodes,).

    `last_left` (n_nodes,) is the largest rank that a split routes left; `limits` are the ranks of minus and plus
    infinity. A split that is not `numeric` is treated as routing every number to both sides. Missing values follow
    `default_left`.

    The traversal is depth-first and without recursion. It visits each reachable node once and skips unreachable
    subtrees.
    """
    reached = np.zeros(right.shape[0], np.bool_)
    low = np.full(n_features, limits[0], np.int64)
    high = np.full(n_features, limits[1], np.int64)
    missing = np.ones(n_features, np.bool_)
    path = np.empty(max_depth + 1, np.int64)
    saved_low = np.empty(max_depth + 1, np.int64)
    saved_high = np.empty(max_depth + 1, np.int64)
    saved_missing = np.empty(max_depth + 1, np.bool_)
    # Invariant: path[: depth + 1] are the nodes from the root to the current node. low[f], high[f] and missing[f] are
    # the ranks and missing values of feature f that can reach it. saved_*[d] undo the step from path[d - 1] to path[d].
    for tree in range(tree_start.shape[0] - 1):
        depth = 0
        v = path[0] = tree_start[tree]
        reached[v] = True
        v += 1
        while v < tree_start[tree + 1] or depth > 0:
            done = v >= tree_start[tree + 1]
            # Backtrack to the parent of v.
            if done or path[depth] != parent[v]:
                f = feature[path[depth - 1]]
                low[f], high[f], missing[f] = saved_low[depth], saved_high[depth], saved_missing[depth]
                depth -= 1
                continue
            u = path[depth]
            f = feature[u]
            goes_left = v == u + 1
            new_low, new_high = low[f], high[f]
            if numeric[u] and goes_left:
                new_high = min(new_high, last_left[u])
            elif numeric[u]:
                new_low = max(new_low, last_left[u] + 1)
            new_missing = missing[f] and default_left[u] == goes_left
            # No number and no missing value reaches v: skip its subtree.
            if new_low > new_high and not new_missing:
                v = end[v]
                continue
            depth += 1
            path[depth] = v
            saved_low[depth], saved_high[depth], saved_missing[depth] = low[f], high[f], missing[f]
            low[f], high[f], missing[f] = new_low, new_high, new_missing
            reached[v] = True
            v += 1
    return reached


@kernel
def merge_leaves(
    right: np.ndarray, code: np.ndarray, tolerance: int, may_change: bool, keep: np.ndarray, source: np.ndarray
) -> None:
    """Prune, bottom-up, below every split whose two children are leaves with equal codes, within `tolerance`.

    Updates `keep` (a valid mask, in which a node may have replaced its parent) and `source[v]`, the node whose value v
    takes. A merged split keeps its original value if that has the same code. Otherwise it takes the value of its left
    child if `may_change`, and is not merged if not.
    """
    n = right.shape[0]
    top = np.empty(n, np.int64)
    leaf = np.ones(n, np.bool_)
    # Invariant: reverse preorder visits descendants first. For all nodes after v, top is the kept node at the node's
    # position (the node itself or the descendant that replaces it), -1 if there is none; leaf marks kept nodes without
    # kept descendants.
    for v in range(n - 1, -1, -1):
        a, b = -1, -1
        if right[v] != -1:
            a, b = top[v + 1], top[right[v]]
        if not keep[v]:
            top[v] = a if a != -1 else b
            continue
        top[v] = v
        if a == -1:
            continue
        leaf[v] = False
        if not (leaf[a] and leaf[b] and _same(code, source[a], source[b], tolerance)):
            continue
        if not _same(code, v, source[a], tolerance):
            if not may_change:
                continue
            source[v] = source[a]
        keep[a] = keep[b] = False
        leaf[v] = True


@kernel
def _same(code: np.ndarray, a: int, b: int, tolerance: int) -> bool:
    for k in range(code.shape[1]):
        # abs(x - y) would overflow for ranks of numbers far apart.
        if code[a, k] > code[b, k] + tolerance or code[b, k] > code[a, k] + tolerance:
            return False
    return True
