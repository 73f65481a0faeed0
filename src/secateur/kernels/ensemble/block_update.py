"""Solve one block of the descent: find the optimal subtree and leaf values of a tree given all other trees.

The input is sums of gradient and Hessian over the leaves of the tree; the rows are not needed. At a node, let H be the
sum of the Hessian, and S the sum of the negative gradient plus Hessian · current contribution, so that S does not
depend on this tree for squared error. A leaf with a refitted value costs −S² / (H + ridge) + penalty · price (the first
term halved for log loss). The optimal subtree is found by a dynamic program from the leaves to the root. The arrays are
those of `secateur.kernels.ensemble.block_descent`.

References
----------
Liu and Mazumder (2023), ForestPrune: compact depth-pruned tree ensembles, AISTATS. Problem (4), and with tree weights
Problems (6) and (7).
"""

import numpy as np

from secateur.kernels._jit import kernel

KEEP, REFIT, SCALE, SCALE_SPARSE = 0, 1, 2, 3
"""Contribution of a kept leaf: the original value, a value refitted with a ridge, or the original value times a weight
of the tree (with a penalty on the squared weight, or on the presence of the tree)."""


@kernel
def choose_subtree(
    tree: int,
    start: int,
    stop: int,
    right: np.ndarray,
    depth: np.ndarray,
    node_weight: np.ndarray,
    original: np.ndarray,
    as_leaf: np.ndarray,
    as_split: np.ndarray,
    status: np.ndarray,
    contribution: np.ndarray,
    factor: np.ndarray,
    penalty: float,
    ridge: float,
    centre: float,
    values: int,
    layered: bool,
    frozen: bool,
    tolerance: float,
    newton: bool,
    bounded: bool,
    scratch: np.ndarray,
    numbers: np.ndarray,
    state: np.ndarray,
) -> tuple:
    """Find the optimal subtree of a tree; return the gain and the weight of the tree.

    For log loss the gain is that of the quadratic approximation. `scratch[0]` and `numbers[0]` hold the sums of
    negative gradient and Hessian of the rows in each leaf; `bounded` replaces the latter by its upper bound, ¼ of the
    row weight. Writes the status of the nodes into `state` and their contributions into `scratch[3]`; for squared error
    only if the gain exceeds `tolerance`. O(nodes).
    """
    n, width = stop - start, contribution.shape[1]
    pulled, sums, fitted, fresh = scratch[0], scratch[1], scratch[2], scratch[3]
    hessian, flow, best = numbers[0], numbers[1], numbers[2]
    half = 0.5 if newton else 1.0
    # Reverse preorder. Invariant: for every node w > v, `sums[w]` and `flow[w]` are S and H of the module docstring,
    # and `best[w]` is the cost of its optimal subtree (for layers: of a leaf), relative to a contribution of 0. `old`
    # accumulates the cost of the current tree on the same scale.
    old = _cost_of_factor(status[start], factor[tree], ridge, values, half)
    for v in range(n - 1, -1, -1):
        u = start + v
        if right[u] == -1:
            if newton:
                flow[v] = 0.25 * node_weight[u] if bounded else hessian[v]
            else:
                flow[v] = node_weight[u]
            for k in range(width):
                sums[v, k] = pulled[v, k] + flow[v] * contribution[u, k]
                old += half * contribution[u, k] * (flow[v] * contribution[u, k] - 2.0 * sums[v, k])
        else:
            b = right[u] - start
            flow[v] = flow[v + 1] + flow[b]
            for k in range(width):
                sums[v, k] = sums[v + 1, k] + sums[b, k]
        cost = 0.0
        for k in range(width):
            if values == REFIT:
                bend, home = flow[v] + ridge, centre * original[u, k]
                wanted = sums[v, k] + ridge * home
                fitted[v, k] = wanted / bend if bend > 0.0 else 0.0
                cost += ridge * home * home - fitted[v, k] * wanted
            else:
                fitted[v, k] = original[u, k]
                cost += original[u, k] * (flow[v] * original[u, k] - 2.0 * sums[v, k])
        best[v] = half * cost + penalty * as_leaf[u]
        state[v] = 2
        if status[u] == 1:
            old += penalty * as_split[u]
        elif status[u] == 2:
            old += penalty * as_leaf[u]
            if values == REFIT:
                for k in range(width):
                    old += half * ridge * (contribution[u, k] - centre * original[u, k]) ** 2
        if right[u] != -1 and not layered:
            both = best[v + 1] + best[right[u] - start] + penalty * as_split[u]
            if (frozen and status[u] == 1) or (not frozen and both < best[v]):
                best[v] = both
                state[v] = 1
    new, times = best[0], 1.0
    if layered:
        # Whether the intercept is re-optimised together with the tree.
        free = not newton and values <= REFIT and not frozen
        new, times = _best_layer(
            start,
            n,
            right,
            depth,
            original,
            as_leaf,
            as_split,
            sums,
            flow,
            fitted,
            best,
            state,
            penalty,
            ridge,
            values,
            free,
        )
    elif new >= 0.0 and not frozen:
        new, state[0] = 0.0, 0
    gain = old - new
    if gain > tolerance or newton:
        _spread_values(start, n, right, state, fitted, times, fresh)
    return gain, times


@kernel
def _best_layer(
    start: int,
    n: int,
    right: np.ndarray,
    depth: np.ndarray,
    original: np.ndarray,
    as_leaf: np.ndarray,
    as_split: np.ndarray,
    sums: np.ndarray,
    flow: np.ndarray,
    fitted: np.ndarray,
    best: np.ndarray,
    state: np.ndarray,
    penalty: float,
    ridge: float,
    values: int,
    free: bool,
) -> tuple:
    """Find the optimal depth of a tree; return its cost and the weight of the tree.

    This enumerates the depths, as ForestPrune does for Problem (4), and with tree weights for Problem (6); the weight
    at a fixed depth solves Problem (7) in closed form. `best` holds the costs of the nodes as leaves with the values
    `fitted`. With `free` the cost includes the gain (Σ residuals)² / Σ weights of moving the intercept to the mean
    residual afterwards; the intercept must be optimal before the update. Writes the new status into `state`.
    """
    deepest = 0
    for v in range(n):
        deepest = max(deepest, depth[start + v])
    # For each depth d, with the tree cut below d:
    # ends: cost of the tree; price: its penalty; match and norm: the inner products of the original values with the
    # residual and with themselves; added: Σ weight · value over the rows.
    ends = np.zeros(deepest + 1)
    price = np.zeros(deepest + 1)
    match = np.zeros(deepest + 1)
    norm = np.zeros(deepest + 1)
    added = np.zeros((deepest + 1, original.shape[1]))
    for v in range(n):
        u = start + v
        last = deepest if right[u] == -1 else depth[u]
        inner, square = 0.0, 0.0
        if values >= SCALE:
            for k in range(original.shape[1]):
                inner += original[u, k] * sums[v, k]
                square += original[u, k] * original[u, k] * flow[v]
        for d in range(depth[u], last + 1):
            ends[d] += best[v]
            price[d] += penalty * as_leaf[u]
            match[d] += inner
            norm[d] += square
            for k in range(original.shape[1]):
                added[d, k] += flow[v] * fitted[v, k]
        if right[u] != -1:
            for d in range(depth[u] + 1, deepest + 1):
                ends[d] += penalty * as_split[u]
                price[d] += penalty * as_split[u]
    least, cut, times = 0.0, -1, 1.0
    if free:
        for k in range(original.shape[1]):
            least -= sums[0, k] ** 2 / flow[0]
    for d in range(deepest + 1):
        cost, factor = ends[d], 1.0
        if free:
            for k in range(original.shape[1]):
                cost -= (sums[0, k] - added[d, k]) ** 2 / flow[0]
        if values == SCALE:
            factor = match[d] / (norm[d] + ridge) if norm[d] + ridge > 0.0 else 0.0
            cost = price[d] - factor * match[d]
        elif values == SCALE_SPARSE:
            factor = match[d] / norm[d] if norm[d] > 0.0 else 0.0
            cost = price[d] - factor * match[d] + ridge
        if cost < least:
            least, cut, times = cost, d, factor
    for v in range(n):
        u = start + v
        if depth[u] > cut:
            state[v] = 0
        else:
            state[v] = 2 if depth[u] == cut or right[u] == -1 else 1
    return least, times


@kernel
def _spread_values(
    start: int, n: int, right: np.ndarray, state: np.ndarray, fitted: np.ndarray, times: float, fresh: np.ndarray
) -> None:
    """Clear the status of the nodes below kept leaves, and write the contribution of every node into `fresh`.

    Nodes below a kept leaf get its contribution; splits and nodes of a dropped tree get 0.
    """
    width = fitted.shape[1]
    for v in range(n):
        if v == 0 or state[v] == 2:
            for k in range(width):
                fresh[v, k] = times * fitted[v, k] if state[v] == 2 else 0.0
        elif state[v] == 1:
            for k in range(width):
                fresh[v, k] = 0.0
        # Below a leaf or an absent node: the children are absent and inherit the contribution.
        if right[start + v] != -1 and state[v] != 1:
            a, b = v + 1, right[start + v] - start
            state[a] = state[b] = 0
            for k in range(width):
                fresh[a, k] = fresh[b, k] = fresh[v, k]


@kernel
def _cost_of_factor(status: int, factor: float, ridge: float, values: int, half: float) -> float:
    """Return the penalty on the weight of a tree, 0 for a dropped tree."""
    if status != 0 and values == SCALE:
        return half * ridge * factor * factor
    if status != 0 and values == SCALE_SPARSE:
        return half * ridge
    return 0.0


@kernel
def price_gain(
    start: int,
    n: int,
    original: np.ndarray,
    as_leaf: np.ndarray,
    as_split: np.ndarray,
    status: np.ndarray,
    contribution: np.ndarray,
    state: np.ndarray,
    fresh: np.ndarray,
    penalty: float,
    ridge: float,
    centre: float,
) -> float:
    """Return the decrease in penalty plus ridge term, for log loss with refitted or original values."""
    gain = 0.0
    for v in range(n):
        u = start + v
        if status[u] == 1:
            gain += penalty * as_split[u]
        elif status[u] == 2:
            gain += penalty * as_leaf[u] + 0.5 * ridge * (contribution[u, 0] - centre * original[u, 0]) ** 2
        if state[v] == 1:
            gain -= penalty * as_split[u]
        elif state[v] == 2:
            gain -= penalty * as_leaf[u] + 0.5 * ridge * (fresh[v, 0] - centre * original[u, 0]) ** 2
    return gain
