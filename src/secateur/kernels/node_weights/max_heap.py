"""Fit node weights under a max-heap constraint by proximal gradient descent.

The proximal map is isotonic regression on a tree, solved by pooling adjacent violators from the leaves to the root. The
descent is GIST (Gong et al. 2013): a gradient step with Barzilai-Borwein step size, the proximal map, and a
non-monotone line search that compares with the worst of the last few objectives. Before it, an accelerated step with
momentum is tried. The metric is the diagonal of the Hessian, the row weight of each node; otherwise deep nodes, which
few rows reach, would converge slowly.

References
----------
Nie, Lin, Huang, Ramakrishnan, Fan and Ye (2017), Pruning decision trees via max-heap projection, SIAM International
Conference on Data Mining. Problems (3.7) and (3.8).

Gong, Zhang, Lu, Huang and Ye (2013), A general iterative shrinkage and thresholding algorithm for non-convex
regularized optimization problems, ICML.
"""

import numpy as np

from secateur.kernels._jit import kernel


@kernel
def project_max_heap(u: np.ndarray, parent: np.ndarray, metric: np.ndarray) -> np.ndarray:
    """Return the projection of `u` on {w >= 0, w[parent[v]] >= w[v]}, (n_nodes,).

    It minimises Σ_v metric[v] (w[v] − u[v])², metric > 0. `parent[v] < v`, or -1 at a root. There may be any number of
    children and of roots. O(n log n).
    """
    n = u.shape[0]
    w = np.empty(n)
    _project(parent, metric * u, metric.copy(), w, np.empty((3, n), np.int32))
    return w


@kernel
def _project(parent: np.ndarray, total: np.ndarray, count: np.ndarray, w: np.ndarray, links: np.ndarray) -> None:
    """Write into `w` the weighted projection of total / count, with weight `count[v]` for node v.

    Overwrites `total` and `count`; `links` is scratch space.
    """
    left, right, below = links[0], links[1], links[2]
    n = total.shape[0]
    for v in range(n):
        left[v] = right[v] = below[v] = -1
    # Loop invariant: below[v] is a skew heap, largest mean first, of the blocks directly below v's own, all of positive
    # mean. A block of non-positive mean gets the value 0 whatever is above it, so no block above it needs to know it. A
    # block is identified by its topmost node, where w is its mean; w[v] < 0 encodes that v was pooled into block
    # -w[v] - 1.
    for v in range(n - 1, -1, -1):
        h = below[v]
        mean = total[v] / count[v]
        while h != -1 and w[h] > mean:
            total[v] += total[h]
            count[v] += count[h]
            mean = total[v] / count[v]
            w[h] = -1.0 - v
            rest = left[h]
            if right[h] != -1:
                rest = right[h] if rest == -1 else _merge(rest, right[h], w, left, right)
            if below[h] != -1:
                rest = below[h] if rest == -1 else _merge(rest, below[h], w, left, right)
            h = rest
        below[v] = h
        w[v] = max(mean, 0.0)
        above = parent[v]
        if mean > 0.0 and above != -1:
            below[above] = v if below[above] == -1 else _merge(below[above], v, w, left, right)
    for v in range(n):
        if w[v] < 0.0:
            w[v] = w[int(-1.0 - w[v])]
        elif parent[v] != -1 and w[v] > w[parent[v]]:
            # A violation by rounding only.
            w[v] = w[parent[v]]


@kernel
def _merge(a: int, b: int, mean: np.ndarray, left: np.ndarray, right: np.ndarray) -> int:
    """Return the root of the union of two skew heaps, neither empty, ordered by mean, largest first."""
    if mean[a] < mean[b]:
        a, b = b, a
    top = a
    # Loop invariant: mean[a] >= mean[b], and b is still to be merged with a's right subheap. The merged heap becomes
    # a's left subheap, and the former left one its right.
    while True:
        c = right[a]
        right[a] = left[a]
        if c == -1:
            left[a] = b
            return top
        if mean[c] < mean[b]:
            c, b = b, c
        left[a] = c
        a = c


@kernel
def fit_max_heap(
    parent: np.ndarray,
    leaves: np.ndarray,
    weight: np.ndarray,
    target: np.ndarray,
    penalty: float,
    prior: np.ndarray,
    start: np.ndarray,
    tolerance: float,
    growth: float,
    memory: int,
    max_iterations: int,
) -> tuple:
    """Return weights w, intercept b, criticality and the objectives of all iterations of a descent.

    It seeks a critical point of

        ½ Σ_i weight[i] (b + Σ_{v above a leaf of i} w[v] − target[i])² + penalty Σ prior[v] |w[v]|

    with |w[parent[v]]| ≥ |w[v]| and prior > 0.
    `leaves`, (n_trees, n_rows), are node indices; `weight` sums to 1. The intercept is always optimal for the weights.
    The criticality is the largest change of a weight in a proximal step (3.7) with t = 1, relative to the standard
    deviation of the target.
    """
    n = parent.shape[0]
    node_weight, one = _node_weights(parent, leaves, weight), np.ones(n)
    w, g, new, new_g = start.copy(), np.empty(n), np.empty(n), np.empty(n)
    before, before_g, extrapolated, extrapolated_g = np.zeros(n), np.zeros(n), np.empty(n), np.empty(n)
    scratch, links, fit = np.empty((3, n)), np.empty((3, n), np.int32), np.empty(target.shape[0])
    mean = (weight * target).sum()
    scale = max(np.sqrt((weight * (target - mean) ** 2).sum()), 1e-300)
    history = np.empty(max_iterations + 1)
    history[0], b = _objective(parent, leaves, weight, target, penalty, prior, w, g, scratch[0], fit)
    # Upper bound on the Lipschitz constant of the gradient in the metric of the node weights.
    lipschitz = _longest_path(parent, leaves)
    t, largest_t, n_accelerated, done, moved = 1.0, 1.0, 0.0, 0, 0.0
    # Loop invariant: g is the gradient at w, b its optimal intercept, history[done] its objective; `before` and
    # `before_g` are the previous iterate and gradient.
    while True:
        if moved <= tolerance * scale or done == max_iterations:
            _step(w, g, 1.0, one, penalty, prior, parent, new, scratch, links)
            criticality = np.abs(new - w).max() / scale
            if criticality <= tolerance or done == max_iterations:
                return w, b, criticality, history[: done + 1].copy()
        accepted = False
        if n_accelerated > 0.0:
            # Accelerated step from an extrapolated point. The loss is quadratic, so its gradient is extrapolated, too.
            momentum = n_accelerated / (n_accelerated + 3.0)
            for v in range(n):
                extrapolated[v] = w[v] + momentum * (w[v] - before[v])
                extrapolated_g[v] = g[v] + momentum * (g[v] - before_g[v])
            _step(extrapolated, extrapolated_g, largest_t, node_weight, penalty, prior, parent, new, scratch, links)
            objective, b = _objective(parent, leaves, weight, target, penalty, prior, new, new_g, scratch[0], fit)
            moved, square, curvature = _change(w, g, new, new_g, node_weight)
            accepted = objective <= history[done] - 0.5e-5 * largest_t * square
        n_accelerated = n_accelerated + 1.0 if accepted else 1.0
        # Non-monotone line search: t grows until the objective is below the worst of the last `memory` ones.
        worst = history[max(0, done + 1 - memory) : done + 1].max()
        while not accepted:
            _step(w, g, t, node_weight, penalty, prior, parent, new, scratch, links)
            objective, b = _objective(parent, leaves, weight, target, penalty, prior, new, new_g, scratch[0], fit)
            moved, square, curvature = _change(w, g, new, new_g, node_weight)
            accepted = objective <= worst - 0.5e-5 * t * square or t > lipschitz
            t *= growth
        # Barzilai-Borwein initial step size of the next line search.
        t = min(max(curvature / square, 1e-3), lipschitz) if square > 0.0 else 1.0
        largest_t = max(largest_t, t)
        before, w, new = w, new, before
        before_g, g, new_g = g, new_g, before_g
        done += 1
        history[done] = objective


@kernel
def _change(w: np.ndarray, g: np.ndarray, new: np.ndarray, new_g: np.ndarray, node_weight: np.ndarray) -> tuple:
    """Return the largest change of a weight, the squared distance in the metric, and ⟨change of w, change of g⟩."""
    moved, square, curvature = 0.0, 0.0, 0.0
    for v in range(w.shape[0]):
        change = new[v] - w[v]
        moved = max(moved, abs(change))
        square += node_weight[v] * change * change
        curvature += change * (new_g[v] - g[v])
    return moved, square, curvature


@kernel
def _longest_path(parent: np.ndarray, leaves: np.ndarray) -> float:
    """Return the largest number of nodes on the paths of one row through all trees."""
    length = np.empty(parent.shape[0])
    for v in range(parent.shape[0]):
        length[v] = 1.0 + (length[parent[v]] if parent[v] != -1 else 0.0)
    longest = 0.0
    for i in range(leaves.shape[1]):
        total = 0.0
        for tree in range(leaves.shape[0]):
            total += length[leaves[tree, i]]
        longest = max(longest, total)
    return longest


@kernel
def _node_weights(parent: np.ndarray, leaves: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the row weight of each node, kept positive by a tiny constant, (n_nodes,)."""
    node_weight = np.full(parent.shape[0], 1e-300)
    for tree in range(leaves.shape[0]):
        for i in range(weight.shape[0]):
            node_weight[leaves[tree, i]] += weight[i]
    for v in range(parent.shape[0] - 1, -1, -1):
        if parent[v] != -1:
            node_weight[parent[v]] += node_weight[v]
    return node_weight


@kernel
def _step(
    w: np.ndarray,
    g: np.ndarray,
    t: float,
    node_weight: np.ndarray,
    penalty: float,
    prior: np.ndarray,
    parent: np.ndarray,
    new: np.ndarray,
    scratch: np.ndarray,
    links: np.ndarray,
) -> None:
    """Write the proximal step (3.7) from `w` into `new`.

    The signs are those of u = w − g / (t · node_weight), by Lemma 1; the absolute values solve (3.8) by projection.
    """
    total, count, u = scratch[0], scratch[1], scratch[2]
    for v in range(w.shape[0]):
        u[v] = node_weight[v] * w[v] - g[v] / t
        total[v] = abs(u[v]) - penalty * prior[v] / t
        count[v] = node_weight[v]
    _project(parent, total, count, new, links)
    for v in range(w.shape[0]):
        if u[v] < 0.0:
            new[v] = -new[v]


@kernel
def _objective(
    parent: np.ndarray,
    leaves: np.ndarray,
    weight: np.ndarray,
    target: np.ndarray,
    penalty: float,
    prior: np.ndarray,
    w: np.ndarray,
    g: np.ndarray,
    sums: np.ndarray,
    fit: np.ndarray,
) -> tuple:
    """Return the objective at `w` and its optimal intercept; write the gradient of the loss into `g`."""
    absolute = 0.0
    for v in range(w.shape[0]):
        g[v] = 0.0
        sums[v] = w[v] + (sums[parent[v]] if parent[v] != -1 else 0.0)
        absolute += prior[v] * abs(w[v])
    b = 0.0
    for i in range(target.shape[0]):
        fit[i] = -target[i]
        for tree in range(leaves.shape[0]):
            fit[i] += sums[leaves[tree, i]]
        b -= weight[i] * fit[i]
    square = 0.0
    for i in range(target.shape[0]):
        residual = weight[i] * (fit[i] + b)
        square += residual * (fit[i] + b)
        for tree in range(leaves.shape[0]):
            g[leaves[tree, i]] += residual
    for v in range(w.shape[0] - 1, -1, -1):
        if parent[v] != -1:
            g[parent[v]] += g[v]
    return 0.5 * square + penalty * absolute, b


@kernel
def node_gradient(parent: np.ndarray, leaves: np.ndarray, weight: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return the gradient of ½ Σ_i weight[i] (fit − target[i])² with respect to node weights at 0, (n_nodes,)."""
    n = parent.shape[0]
    w, g = np.zeros(n), np.empty(n)
    _objective(parent, leaves, weight, target, 0.0, w, w, g, np.empty(n), np.empty(target.shape[0]))
    return g
