"""Nodes no row can reach, and sibling leaves that say the same.

Numbers are ranks: integers that order as the floats of the forest's input type do, neighbours one apart. So the numbers
that pass a split are a closed interval of ranks, and an interval that holds no float is empty.
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
    """Return which nodes some row can reach.

    `last_left` is the largest rank that goes left at a split; `limits` are the ranks of minus and plus infinity. A
    split that is not `numeric` is taken to let every number pass on both sides. Missing values go by `default_left`.

    On the way down `low`, `high` and `missing` say what a row at the current node may hold, per feature; a step changes
    one feature, and `path` and `saved` hold what it takes to undo the steps.
    """
    reached = np.zeros(right.shape[0], np.bool_)
    low = np.full(n_features, limits[0], np.int64)
    high = np.full(n_features, limits[1], np.int64)
    missing = np.ones(n_features, np.bool_)
    path = np.empty(max_depth + 1, np.int64)
    saved_low = np.empty(max_depth + 1, np.int64)
    saved_high = np.empty(max_depth + 1, np.int64)
    saved_missing = np.empty(max_depth + 1, np.bool_)
    for tree in range(tree_start.shape[0] - 1):
        depth = 0
        v = path[0] = tree_start[tree]
        reached[v] = True
        v += 1
        while v < tree_start[tree + 1] or depth > 0:
            done = v >= tree_start[tree + 1]
            if done or path[depth] != parent[v]:  # one step up
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
    """Cut, bottom-up, below every split whose two sides are leaves of the same code, within `tolerance`.

    Changes `keep` (a valid mask, raised nodes included) and `source[v]`, the node whose value v takes. A split keeps
    its own value if that has the same code; else it takes its left side's, or is left alone unless `may_change`.

    Going backwards, when v is met all below it is settled: `top[v]` is what stands in the place of v, -1 for nothing,
    and `leaf` says whether that has nothing below it.
    """
    n = right.shape[0]
    top = np.empty(n, np.int64)
    leaf = np.ones(n, np.bool_)
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
        # Not abs(x - y), which overflows for ranks of numbers far apart.
        if code[a, k] > code[b, k] + tolerance or code[b, k] > code[a, k] + tolerance:
            return False
    return True
